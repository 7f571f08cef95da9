//! Places where this process can be made to die, or to fail, on purpose (feature `failpoints`): for tests of what a crash
//! leaves behind.
//!
//! The environment variable `DLQ_FAILPOINTS`, or [`set`], names them: `finish.before_commit=kill:3,park.between=full`. After
//! `=` stands what happens:
//!
//! | | |
//! |---|---|
//! | `kill` | the process says `died at NAME` on stderr and is gone, without an orderly end of anything |
//! | `error`, `busy`, `full`, `corrupt` | the statement fails as SQLite does: with an I/O error, a lock held by others, a full disk, a damaged file |
//! | `pause@PATH` | waits until there is a file of that name |
//!
//! With `:N` it happens only the Nth time the place is passed, otherwise each time. [`POINTS`] are the places. Those that end in
//! `.before` and `.between` are passed in an open transaction, before the first change and in the middle of them;
//! `.before_commit` and `.after_commit` around the commit that makes a change of that name durable, before anybody is
//! answered.
//!
//! ```
//! use dlq_sqlite::failpoints;
//!
//! failpoints::set("claim.after_commit=error:2")?;
//! assert!(failpoints::set("claim.sometime=kill").is_err());
//! failpoints::set("")?;
//! # Ok::<(), String>(())
//! ```
//!
//! Without the feature there is nothing of this in the library.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::ffi;

/// Changes that are made in transactions.
const CHANGES: &[&str] = &[
    "park",
    "import",
    "claim",
    "finish",
    "extend",
    "release",
    "hand",
    "edit",
    "reap",
    "operation.start",
    "operation.claim",
    "operation.advance",
];

/// Every place. `hand` is what an operator does to one letter, but for its payload.
pub const POINTS: &[&str] = &[
    "park.before",
    "park.between",
    "park.before_commit",
    "park.after_commit",
    "import.before",
    "import.between",
    "import.before_commit",
    "import.after_commit",
    "import.before_done",
    "claim.before",
    "claim.between",
    "claim.before_commit",
    "claim.after_commit",
    "finish.before",
    "finish.between",
    "finish.before_commit",
    "finish.after_commit",
    "extend.before",
    "extend.before_commit",
    "extend.after_commit",
    "release.before",
    "release.before_commit",
    "release.after_commit",
    "hand.before",
    "hand.between",
    "hand.before_commit",
    "hand.after_commit",
    "edit.before",
    "edit.between",
    "edit.before_commit",
    "edit.after_commit",
    "reap.before",
    "reap.between",
    "reap.before_commit",
    "reap.after_commit",
    "operation.start.before",
    "operation.start.between",
    "operation.start.before_commit",
    "operation.start.after_commit",
    "operation.claim.before",
    "operation.claim.between",
    "operation.claim.before_commit",
    "operation.claim.after_commit",
    "operation.advance.before",
    "operation.advance.between",
    "operation.advance.before_commit",
    "operation.advance.after_commit",
    "migrate.between",
    "migrate.before_commit",
    "migrate.after_commit",
    "set_aside.between",
    "blob.unfinished",
    "blob.written",
    "blob.before_removal",
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Kill,
    Fail(i32),
    Pause(PathBuf),
}

#[derive(Debug)]
struct Armed {
    name: &'static str,
    action: Action,
    only: Option<u64>,
    passed: u64,
}

/// `None`: the environment was not asked yet.
static ARMED: Mutex<Option<Vec<Armed>>> = Mutex::new(None);

thread_local! {
    /// What the open transaction of this thread changes.
    static CHANGED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Replaces what is to happen, for the whole process, whatever the environment says.
///
/// # Errors
/// The part that makes no sense, and what is accepted. Nothing is changed then.
pub fn set(list: &str) -> Result<(), String> {
    let armed = parse(list)?;
    *armed_points() = Some(armed);
    Ok(())
}

fn armed_points() -> MutexGuard<'static, Option<Vec<Armed>>> {
    ARMED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parse(list: &str) -> Result<Vec<Armed>, String> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty()).map(parse_one).collect()
}

fn parse_one(part: &str) -> Result<Armed, String> {
    let wrong = |what: &str| format!("failpoint `{part}`: {what}");
    let (name, rest) = part.split_once('=').ok_or_else(|| wrong("`NAME=ACTION` is accepted"))?;
    let name = POINTS.iter().find(|point| **point == name).ok_or_else(|| wrong("no such place, see `POINTS`"))?;
    if let Some(path) = rest.strip_prefix("pause@") {
        return Ok(Armed { name, action: Action::Pause(path.into()), only: None, passed: 0 });
    }
    let (action, only) = match rest.split_once(':') {
        Some((action, n)) => (action, Some(n.parse().map_err(|_| wrong("a number is accepted after `:`"))?)),
        None => (rest, None),
    };
    let action = match action {
        "kill" => Action::Kill,
        "error" => Action::Fail(ffi::SQLITE_IOERR),
        "busy" => Action::Fail(ffi::SQLITE_BUSY),
        "full" => Action::Fail(ffi::SQLITE_FULL),
        "corrupt" => Action::Fail(ffi::SQLITE_CORRUPT),
        _ => return Err(wrong("`kill`, `error`, `busy`, `full`, `corrupt` and `pause@PATH` are accepted")),
    };
    Ok(Armed { name, action, only, passed: 0 })
}

/// What is to happen at this place now.
fn passing(name: &str) -> Option<Action> {
    let mut armed = armed_points();
    let armed = armed.get_or_insert_with(|| {
        let list = std::env::var("DLQ_FAILPOINTS").unwrap_or_default();
        parse(&list).unwrap_or_else(|why| {
            // A test that cannot say what it means must not pass.
            die(&why)
        })
    });
    let mut at = armed.iter_mut().filter(|armed| armed.name == name);
    let due = |armed: &mut Armed| {
        armed.passed += 1;
        armed.only.is_none_or(|only| only == armed.passed).then(|| armed.action.clone())
    };
    at.find_map(due)
}

fn die(at: &str) -> ! {
    let _said = writeln!(std::io::stderr().lock(), "died at {at}");
    std::process::abort()
}

/// A place is passed.
pub(crate) fn hit(name: &str) -> rusqlite::Result<()> {
    match passing(name) {
        None => Ok(()),
        Some(Action::Kill) => die(name),
        Some(Action::Fail(code)) => {
            let message = format!("failpoint {name}");
            Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(message)))
        }
        Some(Action::Pause(path)) => {
            wait_for(&path);
            Ok(())
        }
    }
}

/// A place outside of SQLite is passed.
pub(crate) fn hit_io(name: &str) -> std::io::Result<()> {
    hit(name).map_err(std::io::Error::other)
}

fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A change begins in the open transaction.
pub(crate) fn change(name: &'static str) -> rusqlite::Result<()> {
    debug_assert!(CHANGES.contains(&name), "{name} is no change");
    CHANGED.with_borrow_mut(|changed| {
        if !changed.contains(&name) {
            changed.push(name);
        }
    });
    hit(&format!("{name}.before"))
}

/// A transaction begins.
pub(crate) fn begin() {
    CHANGED.with_borrow_mut(Vec::clear);
}

/// The transaction is about to be committed.
pub(crate) fn before_commit() -> rusqlite::Result<()> {
    around_commit("before_commit")
}

/// The transaction was committed, and nobody knows it yet.
pub(crate) fn after_commit() -> rusqlite::Result<()> {
    let result = around_commit("after_commit");
    begin();
    result
}

fn around_commit(place: &str) -> rusqlite::Result<()> {
    let changed = CHANGED.with_borrow(Clone::clone);
    changed.into_iter().try_for_each(|name| hit(&format!("{name}.{place}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking

    use super::*;

    #[test]
    fn a_list_names_places_actions_and_times() {
        let armed = parse("claim.before=kill:3, park.between=full ,migrate.between=pause@/a:b").unwrap();
        let read: Vec<_> = armed.iter().map(|armed| (armed.name, armed.action.clone(), armed.only)).collect();
        let pause = Action::Pause("/a:b".into());
        let wanted = [
            ("claim.before", Action::Kill, Some(3)),
            ("park.between", Action::Fail(ffi::SQLITE_FULL), None),
            ("migrate.between", pause, None),
        ];
        assert_eq!(read, wanted);
        for wrong in ["claim.before", "claim.never=kill", "claim.before=explode", "claim.before=kill:x"] {
            assert!(parse(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn every_change_has_its_places() {
        for change in CHANGES {
            for place in ["before", "before_commit", "after_commit"] {
                let point = format!("{change}.{place}");
                assert!(POINTS.contains(&point.as_str()), "{point}");
            }
        }
    }
}
