#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::cell::Cell;
use std::ops::Range;

use super::*;

const OPERATIONS: usize = 8;

fn database() -> (tempfile::TempDir, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let connection = Connection::open(directory.path().join("t.db")).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t(n INTEGER PRIMARY KEY, x BLOB)").unwrap();
    (directory, connection)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(200)
}

fn is_there(connection: &Connection, n: usize) -> bool {
    let sql = "SELECT EXISTS(SELECT 1 FROM t WHERE n = ?1)";
    connection.query_row(sql, [i64::try_from(n).unwrap()], |row| row.get(0)).unwrap()
}

/// Several pages each, so that a file that may not grow refuses it.
fn insert(connection: &Connection, n: usize) -> rusqlite::Result<()> {
    let sql = "INSERT INTO t(n, x) VALUES(?1, zeroblob(20000))";
    connection.prepare_cached(sql)?.execute([i64::try_from(n).unwrap()]).map(drop)
}

fn limit_pages(connection: &Connection, full: bool) {
    let limit = if full { "1" } else { "1000000" };
    // A limit below the present size means the present size.
    connection.query_row(&format!("PRAGMA max_page_count = {limit}"), [], |_| Ok(())).unwrap();
}

/// A disk that is full for these operations of a batch only.
fn full_during(faulty: &Range<usize>, connection: &Connection) -> (Outcome, bool) {
    let gone = Cell::new(false);
    let outcome = together(connection, soon(), OPERATIONS, |n| {
        limit_pages(connection, faulty.contains(&n));
        let result = insert(connection, n);
        gone.set(gone.get() || connection.is_autocommit());
        result
    });
    limit_pages(connection, false);
    (outcome, gone.get())
}

// D6: at each position of a batch, a fault that starts and ends in it
#[test]
fn what_is_answered_as_done_is_there_and_what_is_not_is_not() {
    let mut transactions_gone = 0;
    for start in 0..OPERATIONS {
        for end in start..=OPERATIONS {
            let (_directory, connection) = database();
            let faulty = start..end;
            let (outcome, gone) = full_during(&faulty, &connection);
            transactions_gone += i32::from(gone);
            assert_eq!(outcome.each.len(), OPERATIONS);
            for (n, result) in outcome.each.iter().enumerate() {
                assert_eq!(result.is_ok(), is_there(&connection, n), "{faulty:?}: {n}: {result:?}");
                assert!(!faulty.contains(&n) || result.is_err(), "{faulty:?}: the fault does not bite at {n}");
            }
            assert!(outcome.each.iter().take(start).all(Result::is_ok), "{faulty:?}: {outcome:?}");
            assert_eq!(outcome.broken.is_some(), !faulty.is_empty(), "{faulty:?}");
            assert!(connection.is_autocommit());
        }
    }
    // The case the rule is about: SQLite itself rolls back everything before the failure.
    assert!(transactions_gone > 10, "{transactions_gone}");
}

// S2: one bad operation does not spoil the others
#[test]
fn a_refused_operation_is_undone_alone() {
    let (_directory, connection) = database();
    let outcome = together(&connection, soon(), 3, |n| {
        insert(&connection, n)?;
        // Breaks a constraint after a part of its work is done.
        if n == 1 { insert(&connection, n) } else { Ok(()) }
    });
    assert!(outcome.broken.is_none());
    let done: Vec<_> = outcome.each.iter().map(Result::is_ok).collect();
    assert_eq!(done, [true, false, true]);
    assert_eq!([0, 1, 2].map(|n| is_there(&connection, n)), [true, false, true]);
}

#[test]
fn a_lock_is_waited_for_and_then_given_up() {
    let (directory, connection) = database();
    let other = Connection::open(directory.path().join("t.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    let outcome = together(&connection, soon(), 2, |n| insert(&connection, n));
    assert_eq!(outcome.broken.unwrap().kind(), StoreErrorKind::Busy);
    assert!(outcome.each.iter().all(|each| each.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Busy)));
    other.execute_batch("COMMIT").unwrap();
    assert!(together(&connection, soon(), 2, |n| insert(&connection, n)).broken.is_none());
}

// D6: whether a failed commit was done is not known
#[test]
fn a_failed_commit_is_unknown() {
    let (_directory, connection) = database();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = ON;
             CREATE TABLE child(n INTEGER REFERENCES t(n) DEFERRABLE INITIALLY DEFERRED)",
        )
        .unwrap();
    let outcome = together(&connection, soon(), 2, |n| {
        insert(&connection, n)?;
        connection.execute("INSERT INTO child VALUES(99)", []).map(drop)
    });
    assert!(outcome.each.iter().all(|each| each.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Unknown)));
    assert!(connection.is_autocommit(), "nothing is left open");
    assert!(!is_there(&connection, 0));
}
