//! What the planner makes of the statements whose speed depends on it (STORE S2).
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Aggregate, ArrivalKey, Bucket, ClaimRequest, Cursor, EventQuery, Filter, GroupKey, KindRetention, LetterState,
    Order, PageRequest, Retention,
};
use retry_runtime::ledger::{LedgerQuery, LedgerStatus};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::admin::{portable, prune};
use crate::config::Settings;
use crate::filter::Condition;
use crate::open::files::OpenerLock;
use crate::payload::Payloads;
use crate::rows::Tx;
use crate::{claim, due, events, groups, history, ledger, letters, open, overview};

fn connection() -> (tempfile::TempDir, open::Writer) {
    let directory = tempfile::tempdir().unwrap();
    let writer = open::writer(&Settings::new(directory.path().join("jobs.db")), &OpenerLock::default(), "t").unwrap();
    (directory, writer)
}

/// An empty file, and one with letters of two scopes and with statistics about them: a planner that knows how many there are
/// must not choose otherwise.
fn connections() -> Vec<(tempfile::TempDir, open::Writer)> {
    let counted = connection();
    let c = &counted.1.connection;
    c.execute_batch("BEGIN").unwrap();
    for n in 0..3_000_u32 {
        c.prepare_cached(
            "INSERT INTO letter(id, scope, kind, job_id, model, state, reason, disposition, class, error_class, error_type,
               error_message, fingerprint, fingerprint_version, max_replays, max_crashes, first_seen, last_seen, parked_at,
               closed_at, writer)
             VALUES('id' || ?1, ?2, 'kind' || (?1 % 3), 'job' || ?1, 'model' || (?1 % 5), ?3, 'exhausted', 'unknown',
               'class' || (?1 % 4), 'exhausted:class' || (?1 % 4), 'E', 'm', 'group' || (?1 % 50), 1, 5, 3, ?1, ?1, ?1,
               CASE WHEN ?3 = 'parked' THEN NULL ELSE 1 END, 'w')",
        )
        .unwrap()
        .execute(params![
            n,
            if n % 7 < 4 { "default" } else { "other" },
            if n % 11 < 8 { "parked" } else { "recovered" }
        ])
        .unwrap();
    }
    c.execute_batch("COMMIT; ANALYZE").unwrap();
    vec![connection(), counted]
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
    for (_directory, writer) in connections() {
        let mut request = ClaimRequest::new(["kind1", "kind2"], "w");
        for (ignore_backoff, ignore_not_before) in [(false, false), (true, false), (false, true), (true, true)] {
            request.replayable_only = ignore_backoff == ignore_not_before;
            request.ignore_backoff = ignore_backoff;
            request.ignore_not_before = ignore_not_before;
            for (filter, _) in single_filters() {
                request.filter = filter;
                for part in [due::Part::Behind(None), due::Part::Behind(Some((7, 9))), due::Part::UpTo((7, 9))] {
                    let queries = due::due_queries(tx(&writer.connection), &request, part);
                    assert!(!queries.is_empty());
                    for query in queries {
                        assert_walks(&writer.connection, &query, "letter_claim (scope=? AND kind=?");
                    }
                }
            }
        }
    }
}

#[test]
fn a_named_letter_is_found_by_its_name() {
    for (_directory, writer) in connections() {
        let mut request = ClaimRequest::new(["kind1"], "w");
        let mut by_job = Filter::parked();
        by_job.job_ids = vec!["job7".to_owned()];
        let by_id = Filter::id("id7");
        for (filter, index) in [(by_id, "(id=?)"), (by_job, "letter_job (scope=? AND job_id=?)")] {
            request.filter = filter.clone();
            let mut queries = due::due_queries(tx(&writer.connection), &request, due::Part::Behind(None));
            for order in [Order::NewestFirst, Order::LongestUnseenFirst] {
                for after in [None, Some(Cursor { last_seen: at(2), seq: 3 })] {
                    let page = PageRequest::first(order, 50).after(after);
                    queries.extend(letters::page_queries("default", &filter, &page));
                }
            }
            assert_eq!(queries.len(), 7, "one look for all states together, two with a cursor");
            queries.push(letters::count_query("default", &filter));
            for query in queries {
                let plan = plan(&writer.connection, &query);
                assert!(plan.starts_with("SEARCH letter USING") && plan.contains(index), "{plan}\n{}", query.sql);
            }
        }
    }
}

// S2: the planner prefers the equality on `state` of another index, and sorts, unless it is told.
#[test]
fn the_reaper_walks_the_lease_index() {
    for (_directory, writer) in connections() {
        let query = Condition { sql: claim::expired_query(), values: vec![1.into(), 2.into()] };
        assert_walks(&writer.connection, &query, "letter_lease (lease_until<?)");
    }
}

/// Every filter of one list, with the index that serves it and how much of that index is fixed.
fn single_filters() -> Vec<(Filter, &'static str)> {
    let one = |set: fn(&mut Filter) -> &mut Vec<String>, value: &str| {
        let mut filter = Filter::all();
        set(&mut filter).push(value.to_owned());
        filter
    };
    vec![
        (Filter::all(), "letter_seen (scope=? AND state=?"),
        (one(|f| &mut f.kinds, "kind1"), "letter_kind_seen (scope=? AND kind=? AND state=?"),
        (one(|f| &mut f.classes, "class1"), "letter_class_seen (scope=? AND class=? AND state=?"),
        (
            one(|f| &mut f.error_classes, "exhausted:class1"),
            "letter_error_class_seen (scope=? AND error_class=? AND state=?",
        ),
        (one(|f| &mut f.fingerprints, "group1"), "letter_fingerprint_seen (scope=? AND fingerprint=? AND state=?"),
        (one(|f| &mut f.models, "model1"), "letter_model_seen (scope=? AND model=? AND state=?"),
    ]
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

// Every sort, each single filter, and the pairs with a status, from one index at any depth
#[test]
fn pages_of_one_list_walk_one_index_in_its_order() {
    for (_directory, writer) in connections() {
        for (filter, index) in single_filters() {
            for order in [Order::NewestFirst, Order::LongestUnseenFirst] {
                for after in [None, Some(Cursor { last_seen: at(2), seq: 3 })] {
                    for states in [vec![], vec![LetterState::Parked], vec![LetterState::Recovered, LetterState::Parked]]
                    {
                        let filter = with_states(&filter, states);
                        let page = PageRequest::first(order, 50).after(after);
                        let queries = letters::page_queries("default", &filter, &page);
                        let wanted =
                            if filter.states.is_empty() { LetterState::ALL.len() } else { filter.states.len() };
                        // With a cursor: the letters of its millisecond, and those beyond.
                        assert_eq!(queries.len(), if after.is_some() { 2 * wanted } else { wanted });
                        for query in &queries {
                            assert_walks(&writer.connection, query, index);
                            // The cursor is where the walk begins, not something each letter is asked.
                            let plan = plan(&writer.connection, query);
                            let ends = match order {
                                _ if after.is_none() => [" AND state=?)"; 2],
                                Order::NewestFirst => ["last_seen=? AND rowid<?)", "last_seen<?)"],
                                _ => ["last_seen=? AND rowid>?)", "last_seen>?)"],
                            };
                            assert!(ends.iter().any(|end| plan.ends_with(end)), "{plan}\n{}", query.sql);
                            assert!(query.sql.starts_with("SELECT last_seen, seq, 1 FROM"), "{}", query.sql);
                        }
                    }
                }
            }
        }
    }
}

fn with_states(filter: &Filter, states: Vec<LetterState>) -> Filter {
    let mut filter = filter.clone();
    filter.states = states;
    filter
}

// Times bound the walk at both ends, whatever else there is.
#[test]
fn pages_of_a_time_walk_that_time_alone() {
    for (_directory, writer) in connections() {
        for (filter, index) in single_filters() {
            let mut filter = with_states(&filter, vec![LetterState::Parked]);
            filter.since = Some(at(1));
            filter.until = Some(at(3));
            let inside = Cursor { last_seen: at(2), seq: 3 };
            let outside = [Cursor { last_seen: at(9), seq: 3 }, Cursor { last_seen: at(0), seq: 3 }];
            for (order, after, bounds) in [
                (Order::NewestFirst, None, "last_seen>? AND last_seen<?"),
                (Order::LongestUnseenFirst, None, "last_seen>? AND last_seen<?"),
                (Order::NewestFirst, Some(inside), "last_seen>? AND last_seen<?"),
                (Order::LongestUnseenFirst, Some(inside), "last_seen>? AND last_seen<?"),
                (Order::NewestFirst, Some(outside[0]), "last_seen>? AND last_seen<?"),
                (Order::LongestUnseenFirst, Some(outside[1]), "last_seen>? AND last_seen<?"),
            ] {
                let page = PageRequest::first(order, 50).after(after);
                for query in letters::page_queries("default", &filter, &page) {
                    assert_walks(&writer.connection, &query, index);
                    let plan = plan(&writer.connection, &query);
                    let ties = plan.contains("last_seen=? AND rowid");
                    assert!(ties || plan.contains(bounds), "{plan}, not {bounds}\n{}", query.sql);
                }
            }
        }
    }
}

// Two filters at once: one is walked, the other is looked at, and changes nothing about the walk.
#[test]
fn a_mix_walks_the_index_of_its_narrowest_part() {
    for (_directory, writer) in connections() {
        let singles = single_filters();
        for (n, (first, _)) in singles.iter().enumerate() {
            for (second, index) in singles.iter().skip(n + 1) {
                let mut filter = first.clone();
                filter.kinds.extend(second.kinds.iter().cloned());
                filter.classes.extend(second.classes.iter().cloned());
                filter.error_classes.extend(second.error_classes.iter().cloned());
                filter.fingerprints.extend(second.fingerprints.iter().cloned());
                filter.models.extend(second.models.iter().cloned());
                let (walked, _) = filter.split();
                let index = singles.iter().find(|(single, _)| *single == walked).map_or(*index, |(_, index)| index);
                let page = PageRequest::first(Order::NewestFirst, 50).after(Some(Cursor { last_seen: at(2), seq: 3 }));
                for query in letters::page_queries("default", &filter, &page) {
                    assert_walks(&writer.connection, &query, index);
                    assert!(filter == walked || query.sql.contains("IS TRUE FROM"), "{}", query.sql);
                }
            }
        }
    }
}

// A file of schema 1 that was opened for reading lacks the indexes, and is listed all the same.
#[test]
fn a_file_without_the_index_is_listed_all_the_same() {
    let [_, (_directory, writer)] = connections().try_into().ok().unwrap();
    for (filter, index) in single_filters() {
        let page = PageRequest::first(Order::NewestFirst, 7).after(Some(Cursor { last_seen: at(2), seq: 3 }));
        let with = letters::list(&writer.connection, "default", &filter, &page).unwrap();
        let index = index.split(' ').next().unwrap();
        writer.connection.flush_prepared_statement_cache();
        writer.connection.execute_batch(&format!("DROP INDEX {index}")).unwrap();
        assert_eq!(letters::list(&writer.connection, "default", &filter, &page).unwrap(), with);
        assert_eq!(with.rows.len(), 7, "{filter:?}");
    }
}

// What no table of counts has is counted from the index of the list.
#[test]
fn a_count_of_one_list_reads_an_index_alone() {
    let (_directory, writer) = connection();
    for (filter, index) in single_filters() {
        for states in [vec![], vec![LetterState::Parked]] {
            let query = letters::count_query("default", &with_states(&filter, states));
            let plan = plan(&writer.connection, &query);
            let index = index.split(' ').next().unwrap();
            assert!(
                plan.contains("tally") || plan.contains(&format!("COVERING INDEX {index}")),
                "{plan}\n{}",
                query.sql
            );
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
            assert!(!plan.contains("TEMP B-TREE"), "sorted in memory: {plan}\n{}", query.sql);
        }
    }
}

// D17
#[test]
fn pages_of_the_ledger_walk_an_index() {
    let (_directory, writer) = connection();
    for status in [None, Some(LedgerStatus::Gone)] {
        for after in [None, Some("a".to_owned())] {
            let mut query = LedgerQuery::of("fetch").after(after);
            query.status = status;
            let values: Vec<Value> = vec![
                "fetch".to_owned().into(),
                query.after.clone().into(),
                0.into(),
                7.into(),
                status.map(|_| "gone".to_owned()).into(),
            ];
            let plan =
                plan(&writer.connection, &Condition { sql: ledger::matching_sql(&query, status.is_some()), values });
            assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{plan}");
            let index = if status.is_some() { "ledger_status (scope=? AND status=?" } else { "PRIMARY KEY (scope=?" };
            assert!(plan.contains(index), "{plan}");
        }
    }
    let sql = ledger::COUNTS.to_owned();
    let plan = plan(&writer.connection, &Condition { sql, values: vec!["fetch".to_owned().into()] });
    assert!(plan.contains("COVERING INDEX ledger_status (scope=?)") && !plan.contains("TEMP B-TREE"), "{plan}");
}

// S1: any page of the audit at any depth
#[test]
fn the_audit_walks_its_indexes() {
    let (_directory, writer) = connection();
    for oldest_first in [false, true] {
        for after in [None, Some(9)] {
            for (query, seq, index) in [
                (EventQuery::all(), None, "e"),
                (EventQuery::letter("0190"), Some(7), "event_letter (seq=?"),
                (EventQuery::operation("0190"), None, "event_op (op_id=?"),
            ] {
                let mut query = query.after(after);
                query.oldest_first = oldest_first;
                let plan = plan(&writer.connection, &events::page_query("default", &query, seq, true));
                assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{plan}");
                assert!(plan.contains("letter l USING") || plan.contains("SEARCH l USING"), "{plan}");
                assert!(plan.contains("parking_letter (seq=?)"), "{plan}");
            }
        }
    }
}

// A1: retention walks the times of closing, and nothing else
#[test]
fn retention_walks_the_index_of_closed_letters() {
    let (_directory, writer) = connection();
    let retention = Retention::default().kind("invoice", KindRetention::all(Duration::from_secs(60)));
    let cuts = prune::cuts(&retention, |_| true, SystemTime::now());
    assert_eq!(cuts.len(), 4);
    for cut in cuts {
        for only in [vec![], vec!["fetch".to_owned()]] {
            let query = cut.query("default", &only, (5, 6), 500);
            assert_walks(&writer.connection, &query, "letter_closed (state=? AND closed_at>? AND closed_at<?)");
        }
        let plan = plan(&writer.connection, &cut.count_query("default"));
        assert!(plan.starts_with("SEARCH letter USING INDEX letter_closed (state=? AND closed_at<?)"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "sorted in memory: {plan}");
    }
}

// The first page of a store with a million letters: the earliest hint of each kind, and what was closed in a day.
#[test]
fn an_overview_walks_indexes() {
    let (_directory, writer) = connection();
    for (sql, wanted) in [
        (overview::NEXT_DUE, "letter_claim (scope=? AND kind=? AND not_before>?)"),
        (overview::RECOVERED, "letter_closed (state=? AND closed_at>?)"),
    ] {
        let plan = plan(
            &writer.connection,
            &Condition { sql: sql.to_owned(), values: vec!["default".to_owned().into(), 7.into()] },
        );
        assert!(plan.contains(wanted), "{plan}");
    }
}

// D78: a history beyond its bounds is cut without looking at the rest of it
#[test]
fn histories_are_cut_by_an_index() {
    let (_directory, writer) = connection();
    for sql in [history::OLDEST, history::CUT] {
        let values = [1, 2, 3].into_iter().take(sql.matches('?').count()).map(Value::from).collect();
        let plan = plan(&writer.connection, &Condition { sql: sql.to_owned(), values });
        assert!(plan.contains("attempt_letter (seq=?)") && !plan.contains("TEMP B-TREE"), "{plan}");
        assert!(!plan.contains("SCAN attempt"), "{plan}");
    }
}

// D66: a page of groups never looks at letters, and sorts none
#[test]
fn groups_of_failures_walk_an_index_alone() {
    for (_directory, writer) in connections() {
        let mut filter = Filter::owed();
        for kinds in [vec![], vec!["kind1".to_owned()]] {
            filter.kinds = kinds;
            for since in [None, Some(at(1))] {
                filter.since = since;
                for state in LetterState::ALL {
                    let query = groups::counts_query("default", &filter, *state);
                    assert_walks(&writer.connection, &query, "COVERING INDEX letter_group (scope=? AND state=?");
                }
            }
        }
    }
}

#[test]
fn trends_notes_and_arrivals_are_found_by_their_keys() {
    let (_directory, writer) = connection();
    for (sql, values, place) in [
        (groups::TREND, 3, "SEARCH trend USING PRIMARY KEY (scope=? AND fingerprint=? AND hour>?)"),
        (groups::LAST_NOTE, 2, "SEARCH group_note USING INDEX group_note_group (scope=? AND fingerprint=?)"),
        (groups::arrivals_query(ArrivalKey::All), 3, "SEARCH arrival USING PRIMARY KEY (hour>? AND hour<?)"),
    ] {
        let values = vec![Value::Integer(1); values];
        assert_eq!(plan(&writer.connection, &Condition { sql: sql.to_owned(), values }), place);
    }
}

// G102: an export goes through the letters once, in their own order
#[test]
fn an_export_walks_the_letters_once() {
    let (_directory, writer) = connection();
    let mut filter = Filter::owed();
    filter.kinds = vec!["fetch".to_owned(), "store".to_owned()];
    for filter in [Filter::all(), filter] {
        for after in [None, Some(7)] {
            let query = portable::page_query("default", &filter, after, 100);
            let plan = plan(&writer.connection, &query);
            assert!(plan.starts_with("SEARCH letter USING INTEGER PRIMARY KEY (rowid>?)"), "{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
