//! What the planner makes of the statements whose speed depends on it (STORE S2).
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Aggregate, Bucket, ClaimRequest, Cursor, Filter, GroupKey, LetterState, Order, PageRequest,
};
use rusqlite::{Connection, params_from_iter};

use crate::config::Settings;
use crate::filter::Condition;
use crate::open::files::OpenerLock;
use crate::{claim, letters, open};

fn connection() -> (tempfile::TempDir, open::Writer) {
    let directory = tempfile::tempdir().unwrap();
    let writer = open::writer(&Settings::new(directory.path().join("jobs.db")), &OpenerLock::default(), "t").unwrap();
    (directory, writer)
}

fn plan(connection: &Connection, query: &Condition) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", query.sql)).unwrap();
    let steps = statement.query_map(params_from_iter(&query.values), |row| row.get::<_, String>(3)).unwrap();
    steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
}

/// One index, in its own order, nothing else.
fn assert_walks(connection: &Connection, query: &Condition, index: &str) {
    let plan = plan(connection, query);
    assert!(plan.starts_with("SEARCH letter USING"), "{plan}\n{}", query.sql);
    assert!(plan.contains(index), "{plan}\n{}", query.sql);
    assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN letter"), "{plan}\n{}", query.sql);
}

// S2, D16
#[test]
fn claims_walk_the_claim_index() {
    let (_directory, writer) = connection();
    let mut request = ClaimRequest::new(["fetch"], "w");
    let mut filter = Filter::all();
    filter.kinds = vec!["fetch".to_owned()];
    for (ignore_backoff, ignore_not_before) in [(false, false), (true, false), (false, true), (true, true)] {
        request.ignore_backoff = ignore_backoff;
        request.ignore_not_before = ignore_not_before;
        let query = claim::due_query("default", &filter, &request, 7);
        assert_walks(&writer.connection, &query, "letter_claim (scope=? AND kind=?");
    }
}

#[test]
fn a_named_letter_is_found_by_its_name() {
    let (_directory, writer) = connection();
    let request = ClaimRequest::new(["fetch"], "w");
    let mut filter = Filter::id("0190");
    filter.kinds = vec!["fetch".to_owned()];
    let query = claim::due_query("default", &filter, &request, 7);
    assert!(plan(&writer.connection, &query).contains("(id=?)"), "{}", plan(&writer.connection, &query));
    let mut filter = Filter::all();
    filter.job_ids = vec!["7".to_owned()];
    let query = letters::page_query("default", &filter, LetterState::Parked, &PageRequest::default());
    let plan = plan(&writer.connection, &query);
    assert!(plan.contains("letter_job (scope=? AND job_id=?)"), "{plan}");
}

// S2: the planner prefers the equality on `state` of another index, and sorts, unless it is told.
#[test]
fn the_reaper_walks_the_lease_index() {
    let (_directory, writer) = connection();
    let query = Condition { sql: claim::expired_query(), values: vec![1.into(), 2.into()] };
    assert_walks(&writer.connection, &query, "letter_lease (lease_until<?)");
}

// D22: any page at any depth
#[test]
fn pages_walk_the_list_index_in_both_orders() {
    let (_directory, writer) = connection();
    let cursor = Cursor { last_seen: SystemTime::UNIX_EPOCH + Duration::from_secs(9), seq: 3 };
    for state in LetterState::ALL {
        for order in [Order::NewestFirst, Order::LongestUnseenFirst] {
            for after in [None, Some(cursor)] {
                let page = PageRequest::first(order, 50).after(after);
                let query = letters::page_query("default", &Filter::all(), *state, &page);
                assert_walks(&writer.connection, &query, "letter_seen (scope=? AND state=?");
                let mut filter = Filter::all();
                filter.kinds = vec!["fetch".to_owned()];
                filter.error_classes = vec!["exhausted:429".to_owned(), "permanent:403".to_owned()];
                filter.since = Some(cursor.last_seen);
                let query = letters::page_query("default", &filter, *state, &page);
                assert_walks(&writer.connection, &query, "letter_kind_seen (scope=? AND kind=? AND state=?");
            }
        }
    }
}

#[test]
fn the_summary_never_looks_at_letters() {
    let (_directory, writer) = connection();
    for sql in [letters::SUMMARY.to_owned(), letters::count_query("default", &Filter::owed()).sql] {
        let plan = plan(&writer.connection, &Condition { sql, values: vec!["default".to_owned().into()] });
        assert!(plan.contains("tally") && !plan.contains("letter"), "{plan}");
    }
}

#[test]
fn groups_are_counted_from_an_index_alone() {
    let (_directory, writer) = connection();
    for by in [
        vec![],
        vec![GroupKey::Fingerprint],
        vec![GroupKey::Kind, GroupKey::ErrorClass],
        vec![GroupKey::State, GroupKey::Fingerprint, GroupKey::ErrorClass],
    ] {
        for filter in [Filter::all(), Filter::parked(), Filter::owed()] {
            let query = letters::aggregate_query("default", &Aggregate::new(filter, by.clone()).per(Bucket::Day));
            let plan = plan(&writer.connection, &query);
            assert!(plan.contains("USING COVERING INDEX letter_group"), "{plan}\n{}", query.sql);
        }
    }
}
