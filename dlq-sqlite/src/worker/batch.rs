//! Group commit: one transaction for what waits, one savepoint for each operation, no answer before the commit
//! (STORE D6).

use std::time::{Duration, Instant};

use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::Connection;

use crate::error::{from_sqlite, kind_of};
use crate::failpoints;

/// How a batch went.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// For each operation, in order: durable, or not and why.
    pub(crate) each: Vec<Result<(), StoreError>>,
    /// The store itself failed: there is no point in trying the next one at once.
    pub(crate) broken: Option<StoreError>,
}

/// The same error for one more caller.
pub(crate) fn again(error: &StoreError) -> StoreError {
    StoreError::new(error.kind(), error.to_string())
}

/// Whether an error says something about the store rather than about one operation.
pub(crate) fn is_of_the_store(kind: StoreErrorKind) -> bool {
    matches!(
        kind,
        StoreErrorKind::Busy
            | StoreErrorKind::Unavailable
            | StoreErrorKind::Full
            | StoreErrorKind::ReadOnly
            | StoreErrorKind::Corrupt
            | StoreErrorKind::Closed
    )
}

/// Runs `count` operations in one transaction; `run(i)` runs one of them and may be called again for the same one.
pub(crate) fn together(
    connection: &Connection,
    busy_until: Instant,
    count: usize,
    mut run: impl FnMut(usize) -> rusqlite::Result<()>,
) -> Outcome {
    if let Err(error) = begin(connection, busy_until) {
        return all_failed(count, error);
    }
    let mut each = Vec::with_capacity(count);
    for index in 0..count {
        match savepoint(connection, || run(index)) {
            Step::Done => each.push(Ok(())),
            Step::Undone(error) => each.push(Err(from_sqlite("the change was undone", error))),
            Step::TransactionGone => {
                // Everything before this one is undone too. Each of them may be the one that fails: alone they cannot take
                // each other along.
                return alone(connection, busy_until, count, run);
            }
        }
    }
    match commit(connection, busy_until) {
        Ok(()) => Outcome { each, broken: None },
        Err(error) => unknown(count, error),
    }
}

/// Runs each operation in a transaction of its own.
pub(crate) fn alone(
    connection: &Connection,
    busy_until: Instant,
    count: usize,
    mut run: impl FnMut(usize) -> rusqlite::Result<()>,
) -> Outcome {
    let mut each = Vec::with_capacity(count);
    let mut broken = None;
    for index in 0..count {
        if let Some(error) = &broken {
            each.push(Err(again(error)));
            continue;
        }
        each.push(one(connection, busy_until, || run(index)).map_err(|failed| {
            broken = failed.of_the_store;
            failed.answer
        }));
    }
    Outcome { each, broken }
}

struct Failed {
    /// For whoever asked for the operation.
    answer: StoreError,
    /// What it says about the store, if anything.
    of_the_store: Option<StoreError>,
}

fn one(connection: &Connection, busy_until: Instant, run: impl FnOnce() -> rusqlite::Result<()>) -> Result<(), Failed> {
    begin(connection, busy_until).map_err(|error| Failed { answer: again(&error), of_the_store: Some(error) })?;
    if let Err(error) = run() {
        roll_back(connection);
        let answer = from_sqlite("the change was undone", error);
        let of_the_store = is_of_the_store(answer.kind()).then(|| again(&answer));
        return Err(Failed { answer, of_the_store });
    }
    commit(connection, busy_until).map_err(|error| Failed { answer: uncertain(&error), of_the_store: Some(error) })
}

enum Step {
    Done,
    /// This one alone is undone.
    Undone(rusqlite::Error),
    TransactionGone,
}

fn savepoint(connection: &Connection, run: impl FnOnce() -> rusqlite::Result<()>) -> Step {
    let plain = |sql: &str| connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
    if plain("SAVEPOINT op").is_err() {
        roll_back(connection);
        return Step::TransactionGone;
    }
    let result = run();
    if connection.is_autocommit() {
        return Step::TransactionGone;
    }
    let (undone, released) = match result {
        Ok(()) => (None, plain("RELEASE op")),
        Err(error) => (Some(error), plain("ROLLBACK TO op").and_then(|_| plain("RELEASE op"))),
    };
    if released.is_err() || connection.is_autocommit() {
        roll_back(connection);
        return Step::TransactionGone;
    }
    undone.map_or(Step::Done, Step::Undone)
}

/// Takes the write lock, which others may hold; their transactions are short, so it is asked for again until the time is
/// up.
fn begin(connection: &Connection, busy_until: Instant) -> Result<(), StoreError> {
    // What an earlier failure may have left open would swallow this batch's commit.
    roll_back(connection);
    failpoints::begin();
    patiently(busy_until, || {
        connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut statement| statement.execute([]))
    })
    .map_err(|error| from_sqlite("cannot start a transaction", error))
}

fn commit(connection: &Connection, busy_until: Instant) -> Result<(), StoreError> {
    let committed = failpoints::before_commit()
        .and_then(|()| {
            patiently(busy_until, || connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])))
        })
        .and_then(|()| failpoints::after_commit());
    committed.map_err(|error| {
        roll_back(connection);
        from_sqlite("the commit failed", error)
    })
}

/// Again and again while others hold the lock, with a little jitter, until the time is up.
fn patiently(until: Instant, mut try_it: impl FnMut() -> rusqlite::Result<usize>) -> rusqlite::Result<()> {
    let mut pause = Duration::from_millis(1);
    loop {
        match try_it() {
            Ok(_) => return Ok(()),
            Err(error) if kind_of(&error) == StoreErrorKind::Busy && Instant::now() < until => {
                std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
                // The address space and the clock are jitter enough for two processes that wait for each other.
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Ends what is open, if anything is. After a full disk SQLite has often done so itself, and a second rollback would hide
/// the cause behind "no transaction is active".
fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // A rollback that fails leaves the transaction open; the next `BEGIN` fails then, and the connection is replaced.
        let _ignored = connection.execute_batch("ROLLBACK");
    }
}

fn all_failed(count: usize, error: StoreError) -> Outcome {
    Outcome { each: (0..count).map(|_| Err(again(&error))).collect(), broken: Some(error) }
}

/// Whether a failed commit was done is not known.
fn unknown(count: usize, error: StoreError) -> Outcome {
    Outcome { each: (0..count).map(|_| Err(uncertain(&error))).collect(), broken: Some(error) }
}

fn uncertain(error: &StoreError) -> StoreError {
    StoreError::new(StoreErrorKind::Unknown, error.to_string())
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
