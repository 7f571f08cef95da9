//! What the planner makes of the statements of operations, and how much work they are (STORE S2): by the plan and by the
//! steps of SQLite's machine, never by the clock.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{Actor, Filter, ItemOutcome, MemberClaim, OperationRequest, Verb};
use rusqlite::types::Value;
use rusqlite::{Connection, StatementStatus, params_from_iter};

use super::{freeze, members, read, rows, run};
use crate::config::Settings;
use crate::filter::Condition;
use crate::open::{self, files::OpenerLock};
use crate::payload::Payloads;
use crate::rows::Tx;

fn connection() -> (tempfile::TempDir, open::Writer) {
    let directory = tempfile::tempdir().unwrap();
    let writer = open::writer(&Settings::new(directory.path().join("jobs.db")), &OpenerLock::default(), "t").unwrap();
    (directory, writer)
}

fn tx(connection: &Connection) -> Tx<'_> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
    Tx {
        connection,
        now,
        scope: "default",
        writer: "w",
        operation: None,
        payloads: Payloads::nowhere(),
        crashed: Box::leak(Box::default()),
    }
}

fn actor() -> Actor {
    Actor::new("test", "")
}

/// Parked letters of kind `fetch`, without payloads.
fn park(connection: &Connection, n: u32) {
    let sql = format!(
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {n})
         INSERT INTO letter(id, scope, kind, job_id, state, reason, disposition, class, error_class, error_type,
           error_message, fingerprint, fingerprint_version, max_replays, max_crashes, first_seen, last_seen, parked_at, writer)
         SELECT 'id' || n, 'default', 'fetch', 'job' || n, 'parked', 'exhausted', 'retryable', 'timeout',
           'exhausted:timeout', 'E', 'm', 'g', 1, 5, 3, n, n, n, 'w' FROM c"
    );
    connection.execute_batch(&sql).unwrap();
}

fn plan(connection: &Connection, sql: &str, values: &[Value]) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
    steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

// S2: with a partial index on what is pending the planner took the primary key, and an operation became quadratic.
#[test]
fn members_are_found_by_outcome_and_number() {
    let (_directory, writer) = connection();
    let c = &writer.connection;
    for (sql, values, wanted) in [
        (members::PENDING, vec![text("op"), 10.into()], "op_item_outcome (op_id=? AND outcome=?)"),
        (members::RUNNING, vec![7.into()], "op_item_running (seq=?)"),
        (members::STRANDED, vec![text("op")], "op_item_outcome (op_id=? AND outcome=?)"),
        (rows::COUNTS, vec![text("op")], "PRIMARY KEY (op_id=?)"),
    ] {
        let plan = plan(c, sql, &values);
        assert!(plan.contains(wanted) && !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}\n{sql}");
    }
}

#[test]
fn pages_of_members_and_operations_walk_an_index() {
    let (_directory, writer) = connection();
    for after in [None, Some(7)] {
        for (outcome, wanted) in
            [(None, "PRIMARY KEY (op_id=?"), (Some(ItemOutcome::Edited), "op_item_outcome (op_id=?")]
        {
            let query = read::items_query("op", outcome, after, 50);
            let plan = plan(&writer.connection, &query.sql, &query.values);
            assert!(plan.contains(wanted) && !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
    let waiting = plan(&writer.connection, &read::waiting_query(), &[text("default"), 7.into(), 1.into()]);
    assert!(waiting.contains("op_scope (scope=?") && !waiting.contains("TEMP B-TREE"), "{waiting}");
    for after in [None, Some("id")] {
        let Condition { sql, values } = read::operations_query("default", after, 50);
        let plan = plan(&writer.connection, &sql, &values);
        assert!(plan.contains("op_scope (scope=?") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}

// S2: freezing takes the letters by an index of their own, whatever the filter
#[test]
fn freezing_walks_an_index() {
    let (_directory, writer) = connection();
    let some = |change: fn(&mut Filter)| {
        let mut filter = Filter::parked();
        change(&mut filter);
        filter
    };
    let filters = [
        some(|_| ()),
        some(|filter| filter.classes.push("timeout".into())),
        some(|filter| filter.kinds.push("fetch".into())),
        some(|filter| filter.ids.push("id".into())),
        some(|filter| filter.since = Some(SystemTime::UNIX_EPOCH)),
    ];
    for filter in filters {
        for query in
            [freeze::freeze_query("default", &filter), freeze::plan_query("default", &filter, SystemTime::UNIX_EPOCH)]
        {
            let plan = plan(&writer.connection, &query.sql, &query.values);
            assert!(plan.contains("SEARCH letter USING") && !plan.contains("SCAN letter"), "{plan}\n{}", query.sql);
            assert!(!plan.contains("TEMP B-TREE"), "sorted in memory: {plan}\n{}", query.sql);
        }
    }
}

/// An operation over so many letters, and the steps that freezing them took.
fn frozen(connection: &Connection, n: u32) -> (String, i32) {
    park(connection, n);
    let query = freeze::freeze_query("default", &Filter::parked());
    let mut statement = connection.prepare(&query.sql).unwrap();
    let found = statement.query_map(params_from_iter(query.values), |row| row.get::<_, i64>(0)).unwrap().count();
    assert_eq!(found, n as usize);
    let steps = statement.get_status(StatementStatus::VmStep);
    let request = OperationRequest::new(Verb::Replay, Filter::all());
    let filter = request.members().unwrap();
    let operation = freeze::start(tx(connection), &request, &filter, &actor()).unwrap();
    assert_eq!(operation.counts.total(), u64::from(n));
    (operation.id, steps)
}

fn steps_of_next(connection: &Connection, op_id: &str) -> i32 {
    let mut statement = connection.prepare(members::PENDING).unwrap();
    let found = statement.query_map((op_id, 10), |row| row.get::<_, i64>(0)).unwrap().count();
    assert_eq!(found, 10);
    statement.get_status(StatementStatus::VmStep)
}

// S2, B20: 100,000 members: freezing is linear, and the last members are found with as few steps as the first ones.
#[test]
fn a_hundred_thousand_members_are_not_quadratic() {
    let (_small_directory, small) = connection();
    let (_, steps_of_few) = frozen(&small.connection, 1_000);
    let (_directory, writer) = connection();
    let c = &writer.connection;
    c.execute_batch("BEGIN").unwrap();
    let (op_id, steps_of_many) = frozen(c, 100_000);
    assert!(steps_of_many <= steps_of_few * 101, "{steps_of_many} steps for 100 times as many as {steps_of_few}");

    let first = steps_of_next(c, &op_id);
    c.execute("UPDATE op_item SET outcome = 'recovered' WHERE op_id = ?1 AND seq <= 99990", [&op_id]).unwrap();
    let last = steps_of_next(c, &op_id);
    assert!(last <= first + 5, "{last} steps for the last members, {first} for the first");
    // Progress is read, not counted.
    let mut statement = c.prepare(rows::COUNTS).unwrap();
    let outcomes = statement.query_map([&op_id], |row| row.get::<_, i64>(1)).unwrap().map(Result::unwrap);
    assert_eq!(outcomes.sum::<i64>(), 100_000);
    let steps = statement.get_status(StatementStatus::VmStep);
    assert!(steps < 60, "{steps} steps for the counts");

    // And a runner is given the rest.
    let taken = run::take(tx(c), &op_id, ("runner", Duration::from_secs(60), false), &actor()).unwrap().unwrap();
    let mut claim = MemberClaim::new(["fetch"], "runner");
    claim.limit = 10;
    let got = members::claim(tx(c), &taken.ticket(), &claim, &actor()).unwrap().unwrap();
    assert_eq!((got.taken.len(), got.operation.counts.running(), got.operation.counts.pending()), (10, 10, 0));
    c.execute_batch("ROLLBACK").unwrap();
}

// A program of schema 1 ends replays without a word to the operation: its members are not lost.
#[test]
fn members_whose_replay_ended_elsewhere_come_again() {
    let (_directory, writer) = connection();
    let c = &writer.connection;
    let (op_id, _) = frozen(c, 2);
    let take = || run::take(tx(c), &op_id, ("runner", Duration::from_secs(60), true), &actor()).unwrap().unwrap();
    let ticket = take().ticket();
    let mut claim = MemberClaim::new(["fetch"], "runner");
    claim.limit = 5;
    let got = members::claim(tx(c), &ticket, &claim, &actor()).unwrap().unwrap();
    assert_eq!(got.taken.len(), 2);
    let stranded = "UPDATE letter SET state = 'parked', owner = NULL, lease_until = NULL WHERE id = 'id1'";
    c.execute(stranded, []).unwrap();
    let again = members::claim(tx(c), &ticket, &claim, &actor()).unwrap().unwrap();
    let ids: Vec<_> = again.taken.iter().map(|taken| taken.row.letter_id.as_str()).collect();
    assert_eq!(ids, ["id1"]);
    assert_eq!((again.operation.counts.running(), again.operation.counts.total()), (2, 2));
}
