//! What the writer says: whether a parking would work, and with which settings.

use std::time::SystemTime;

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{DeadLetter, Finding, Severity};
use retry_runtime::error::{StoreError, StoreErrorKind};

use crate::config::{Access, Durability};
use crate::open::version::wal_is_safe;
use crate::park::{Origin, park};
use crate::rows::Tx;
use crate::store::Handle;

/// The writer's connection, as it is.
#[derive(Debug, PartialEq, Eq)]
struct Settings {
    journal_mode: String,
    synchronous: i64,
    foreign_keys: bool,
}

/// What a probe's letters are called. None is ever seen.
const PROBE: &str = "dlq-sqlite probe";

/// Asks the writer, in its own turn.
///
/// # Errors
/// `Closed`: there is no writer any more.
pub(super) async fn ask(handle: &Handle) -> Result<Vec<Finding>, StoreError> {
    let path = handle.path.display().to_string();
    let mut found = Vec::new();
    let probe = handle.change("try a parking", |tx| probe(tx).map(Ok), |_, _| ());
    match probe.await {
        Ok(settings) => {
            let wanted = Wanted {
                durability: handle.settings.durability,
                network_file_system: handle.settings.network_file_system,
                library: rusqlite::version_number(),
                path: &path,
            };
            found.extend(judge(wanted, &settings));
        }
        Err(error) if error.kind() == StoreErrorKind::Closed => return Err(error),
        Err(_) if handle.settings.access == Access::Read => {
            let message = "this program has the store open for reading: its own letters go to the spill file";
            found.push(Finding::new(Severity::Info, "read_only", message).about(&path));
        }
        Err(error) => {
            let down =
                handle.shared.tell(|told| told.down.as_ref().map(|(since, because)| (*since, because.to_string())));
            let message = match down {
                Some((since, because)) => {
                    let lasting = lasting(since, handle.clock.now());
                    format!("the store fails, for {lasting} now, and letters go to the spill file: {because}")
                }
                None => format!("a letter could not be parked: {error}"),
            };
            found.push(Finding::new(Severity::Error, "store_down", message).about(&path).advise(advice(error.kind())));
        }
    }
    found.extend(behind(handle.shared.queue.lengths(), &path));
    Ok(found)
}

/// Whether more was asked for than the writer could do.
fn behind((waiting, overflowed): (usize, u64), path: &str) -> Option<Finding> {
    if overflowed == 0 {
        return None;
    }
    let message = format!("{waiting} changes wait, and {overflowed} came while more than 10,000 did");
    let advice = "letters come faster than the disk takes them: look at its speed, and at what fails so often";
    Some(Finding::new(Severity::Warning, "behind", message).about(path).advise(advice))
}

fn advice(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::Busy => "another program holds the file's lock: look for a transaction that was left open",
        StoreErrorKind::Full => "make room on the disk; spilled letters come back by themselves",
        StoreErrorKind::ReadOnly => {
            "let this user write the file and its directory; a file of a later version wants a later program"
        }
        StoreErrorKind::Corrupt => {
            "close every program that has the file open: the next one to open it sets it aside and goes on with a fresh one"
        }
        _ => "look at the disk and at the directory; the store is tried again every 5 s",
    }
}

/// Parks a letter and takes it back; what is left of it is that a commit was made.
fn probe(tx: Tx<'_>) -> rusqlite::Result<Settings> {
    let mut letter = DeadLetter::new(PROBE, StopReason::Unknown, tx.now);
    letter.payload = retry_runtime::dead_letter::Payload::Json("{}".to_owned());
    tx.connection.execute_batch("SAVEPOINT probe")?;
    let parked = park(tx, &letter, None, Origin::Live);
    if !tx.connection.is_autocommit() {
        tx.connection.execute_batch("ROLLBACK TO probe; RELEASE probe")?;
    }
    parked?;
    tx.connection
        .prepare_cached(
            "INSERT INTO meta(key, value) VALUES('probed_at', ?1) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        )?
        .execute([tx.millis()])?;
    let read = |name: &str| tx.connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    Ok(Settings {
        journal_mode: tx.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?,
        synchronous: read("synchronous")?,
        foreign_keys: read("foreign_keys")? == 1,
    })
}

/// What was asked for.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    durability: Durability,
    network_file_system: bool,
    library: i32,
    path: &'a str,
}

/// What the settings mean.
fn judge(wanted: Wanted<'_>, found: &Settings) -> Vec<Finding> {
    let finding = |severity, code, message: String| Finding::new(severity, code, message).about(wanted.path);
    let mut out = Vec::new();
    let (word, number) = wanted.durability.pragma();
    if found.synchronous != number || !found.foreign_keys {
        let message = format!(
            "the connection runs with synchronous = {} and foreign_keys = {}, not {number} ({word}) and true",
            found.synchronous, found.foreign_keys
        );
        let advice = "something else in this process changes the store's connection: that must not be";
        out.push(finding(Severity::Error, "durability", message).advise(advice));
    } else if wanted.durability == Durability::Normal {
        let message = "durability is Normal: a loss of power may take the letters of the last moments";
        out.push(finding(Severity::Info, "durability", message.to_owned()));
    }
    if !wal_is_safe(wanted.library) {
        let message = format!(
            "SQLite {} can corrupt a file with a write-ahead log: none is used, which is slow",
            rusqlite::version()
        );
        let advice = "build with a SQLite of 3.51.3 or later, 3.50.7 or 3.44.6";
        out.push(finding(Severity::Warning, "sqlite_version", message).advise(advice));
    }
    if wanted.network_file_system {
        let message = "the file is taken in the slow mode for network file systems, by this process alone";
        let advice = "put the file on a local disk, and leave `network_file_system` out";
        out.push(finding(Severity::Warning, "network_override", message.to_owned()).advise(advice));
    } else if !found.journal_mode.eq_ignore_ascii_case("wal") {
        let message = format!("the journal mode is {}: readers and the writer wait for each other", found.journal_mode);
        let advice = "no other program may change it; open the file with nothing else running";
        out.push(finding(Severity::Warning, "journal_mode", message).advise(advice));
    }
    out
}

/// How long it has lasted, for people.
pub(super) fn lasting(at: SystemTime, now: SystemTime) -> String {
    let seconds = now.duration_since(at).unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted<'_> =
        Wanted { durability: Durability::Full, network_file_system: false, library: 3_054_001, path: "jobs.db" };

    fn settings(journal_mode: &str, synchronous: i64, foreign_keys: bool) -> Settings {
        Settings { journal_mode: journal_mode.to_owned(), synchronous, foreign_keys }
    }

    fn codes(wanted: Wanted<'_>, found: &Settings) -> Vec<(Severity, &'static str)> {
        judge(wanted, found).into_iter().map(|finding| (finding.severity, finding.code)).collect()
    }

    // D5: metered, and told
    #[test]
    fn an_overflow_is_found() {
        assert_eq!(behind((10_000, 0), "jobs.db"), None, "a queue that is full has lost nothing yet");
        let found = behind((7, 3), "jobs.db").map(|found| (found.code, found.severity, found.message));
        let message = "7 changes wait, and 3 came while more than 10,000 did".to_owned();
        assert_eq!(found, Some(("behind", Severity::Warning, message)));
    }

    // S5, S6: what was asked for and what is there
    #[test]
    fn settings_that_differ_are_found() {
        let normal = Wanted { durability: Durability::Normal, ..WANTED };
        let network = Wanted { network_file_system: true, ..WANTED };
        let unsafe_library = Wanted { library: 3_046_000, ..WANTED };
        assert_eq!(codes(WANTED, &settings("wal", 2, true)), []);
        assert_eq!(codes(WANTED, &settings("wal", 1, true)), [(Severity::Error, "durability")]);
        assert_eq!(codes(WANTED, &settings("wal", 2, false)), [(Severity::Error, "durability")]);
        assert_eq!(codes(normal, &settings("wal", 1, true)), [(Severity::Info, "durability")]);
        assert_eq!(codes(WANTED, &settings("delete", 2, true)), [(Severity::Warning, "journal_mode")]);
        assert_eq!(codes(network, &settings("delete", 2, true)), [(Severity::Warning, "network_override")]);
        let old = [(Severity::Warning, "sqlite_version"), (Severity::Warning, "journal_mode")];
        assert_eq!(codes(unsafe_library, &settings("delete", 2, true)), old);
    }
}
