//! Four processes fight for one bulk operation (D21, B18, B27).

mod fight;
mod judge;
mod lives;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};

use dlq_sqlite::SqliteStore;
use fight::{Fight, Kills, places};
use lives::{Life, ada, block_on};
use retry_runtime::dead_letter::{
    Actor, BulkOperations, DeadLetterSink, DeadLetterStore, Filter, ItemOutcome, LetterState, Operation,
    OperationRequest, OperationRunner, OperationStatus, Verb,
};
use retry_runtime::testing::store_chaos::Dice;
use rusqlite::Connection;

use super::support::{assert_intact, child, child_work, letter, wait};

const MEMBERS: u32 = 500;

fn seed() -> u64 {
    let seed = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.trim().parse().ok());
    seed.unwrap_or_else(|| RandomState::new().build_hasher().finish())
}

/// Parks the members and starts the operation: each starter dies at another place, and the last one after the commit.
fn begin(place: &Path, test: &str, verb: Verb) -> (Operation, BTreeSet<String>) {
    let store = lives::open(place).unwrap();
    let jobs: BTreeSet<_> = (0..MEMBERS).map(|n| format!("job-{n:03}")).collect();
    let tickets: Vec<_> = jobs.iter().map(|job| store.submit(letter(job))).collect();
    assert!(tickets.into_iter().all(|ticket| wait(ticket).is_kept()));
    for at in ["before", "between", "before_commit", "after_commit"] {
        let work = format!("start {} {}", verb.as_str(), place.display());
        dies_at(&format!("operation.start.{at}"), 1, test, &work);
        let started = block_on(store.operations(None, 10)).unwrap();
        let members: i64 = query(place, "SELECT count(*) FROM op_item");
        if at == "after_commit" {
            let [operation] = started.as_slice() else { panic!("{started:?}") };
            assert_eq!((operation.status, members), (OperationStatus::Pending, i64::from(MEMBERS)));
            assert_eq!(operation.counts.get(ItemOutcome::Pending), u64::from(MEMBERS));
            return (operation.clone(), jobs);
        }
        assert_eq!((started.len(), members), (0, 0), "{at}");
    }
    unreachable!()
}

fn query(place: &Path, sql: &str) -> i64 {
    Connection::open(place.join("jobs.db")).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Runs this test's work in a process that dies at a place.
fn dies_at(at: &str, nth: u32, test: &str, work: &str) {
    let mut command = child(&[], test, work);
    let output = command.env("DLQ_FAILPOINTS", format!("{at}=kill:{nth}")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code().is_none(), "{at}:{nth} is not passed: {said}");
    assert!(said.lines().any(|line| line == format!("died at {at}")), "{at}: {said}");
}

/// What a child does: `true` in a child.
fn is_child() -> bool {
    let Some(work) = child_work() else { return false };
    let words: Vec<_> = work.splitn(3, ' ').collect();
    match words.as_slice() {
        ["start", verb, place] => {
            let store = lives::open(Path::new(place)).unwrap();
            let mut request = OperationRequest::new(Verb::parse(verb, 2).unwrap(), Filter::parked());
            request.options.concurrency = 4;
            block_on(store.start(request, ada())).unwrap();
        }
        ["advance", op_id, place] => {
            let runner = OperationRunner::new(lives::open(Path::new(place)).unwrap()).take_over();
            runner.run_blocking(*op_id).unwrap();
        }
        _ => Life::parse(&work).live(),
    }
    true
}

fn fresh_place() -> PathBuf {
    let place = tempfile::Builder::new().prefix("chaos-bulk-").tempdir().unwrap().keep();
    std::fs::create_dir(place.join("spill")).unwrap();
    place
}

// D21, B18, B27, S1: one operation, four runners and an operator, killed at any moment and at every place, stopped for
// longer than their leases; each member ends once, nothing is recovered twice, what came later is left alone
#[test]
fn an_operation_that_four_processes_fight_for_adds_up() {
    const TEST: &str = "bulk::an_operation_that_four_processes_fight_for_adds_up";
    if is_child() {
        return;
    }
    let seed = seed();
    let wanted = if super::soak() { 400 } else { 40 };
    let (mut kills, mut stopped, mut round) = (Kills::new(), 0, 0);
    let mut members = BTreeMap::<String, i64>::new();
    loop {
        let place = fresh_place();
        let (operation, frozen) = begin(&place, TEST, Verb::Replay);
        let dice = Dice::new(seed.wrapping_add(round));
        let (op_id, kills, stopped) = (operation.id.as_str(), &mut kills, &mut stopped);
        let mut fight = Fight { test: TEST, place: &place, op_id, seed, wanted, kills, stopped, dice };
        fight.until_over();
        let is_enough = fight.is_enough();
        let counted = judged(&place, &operation, &frozen, seed);
        for (outcome, n) in counted {
            *members.entry(outcome).or_default() += n;
        }
        std::fs::remove_dir_all(&place).unwrap();
        round += 1;
        if is_enough {
            break;
        }
        assert!(round < 40, "seed {seed}: not enough kills in {round} operations: {kills:?}");
    }
    let killed: u64 = kills.values().sum();
    // Past the harness's capture: the seed is to be seen.
    let said = format!("seed {seed}: {round} operations, {killed} kills, {stopped} stopped: {members:?}\n  {kills:?}");
    writeln!(std::io::stderr().lock(), "{TEST}: {said}").unwrap();
    assert!(killed >= wanted && places().all(|place| kills.contains_key(place)), "{said}");
    assert!(members.contains_key("recovered") && members.contains_key("still_failing"), "{said}");
}

fn judged(place: &Path, operation: &Operation, frozen: &BTreeSet<String>, seed: u64) -> BTreeMap<String, i64> {
    let store = lives::open(place).unwrap();
    block_on(store.reap(Actor::new("judge", "chaos"))).unwrap();
    store.settle().wait(std::time::Duration::from_secs(60)).unwrap();
    let found = block_on(store.operation(operation.id.clone())).unwrap().unwrap();
    let mut replaying = Filter::all();
    replaying.states.push(LetterState::Replaying);
    let stuck = block_on(store.count(replaying)).unwrap();
    let listed = listed(&store, &operation.id);
    store.close(std::time::Duration::from_secs(60));
    let (broken, counted) = judge::judge(place, &operation.id, frozen);
    let counts: BTreeMap<_, _> = found
        .counts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(outcome, n)| (outcome.to_string(), n.cast_signed()))
        .collect();
    assert_intact(&place.join("jobs.db"));
    let place = place.display();
    assert!(broken.is_empty(), "seed {seed}, `{place}` is kept:\n{}", broken.join("\n"));
    assert_eq!((found.status, stuck), (OperationStatus::Done, 0), "seed {seed}, `{place}` is kept");
    assert_eq!((&counts, &listed), (&counted, &counted), "seed {seed}, `{place}` is kept");
    counted
}

/// The members page by page.
fn listed(store: &SqliteStore, op_id: &str) -> BTreeMap<String, i64> {
    let (mut listed, mut after) = (BTreeMap::new(), None);
    loop {
        let page = block_on(store.items(op_id.to_owned(), None, after, 37)).unwrap();
        for item in page.items {
            *listed.entry(item.outcome.to_string()).or_default() += 1;
        }
        after = page.next;
        if after.is_none() {
            return listed;
        }
    }
}

// D21: a discard is done in steps; whoever dies in one of them has done all of it or nothing
#[test]
fn a_bulk_discard_is_cut_short() {
    const TEST: &str = "bulk::a_bulk_discard_is_cut_short";
    if is_child() {
        return;
    }
    let place = fresh_place();
    let (operation, frozen) = begin(&place, TEST, Verb::Discard);
    let work = format!("advance {} {}", operation.id, place.display());
    let discarded = || query(&place, "SELECT count(*) FROM letter WHERE state = 'discarded'");
    for (at, nth, done) in [("before", 1, 0), ("between", 57, 0), ("before_commit", 1, 0), ("after_commit", 1, 200)] {
        dies_at(&format!("operation.advance.{at}"), nth, TEST, &work);
        assert_eq!(discarded(), done, "{at}");
        let ended = query(&place, "SELECT count(*) FROM op_item WHERE outcome = 'discarded'");
        assert_eq!(ended, done, "{at}");
        assert_eq!(query(&place, "SELECT count(*) FROM event WHERE what = 'discarded'"), done, "{at}");
    }
    let done = OperationRunner::new(lives::open(&place).unwrap()).take_over().run_blocking(&operation.id).unwrap();
    assert_eq!((done.status, done.counts.to_string().as_str()), (OperationStatus::Done, "500 discarded"));
    assert_eq!((discarded(), frozen.len()), (500, 500));
    let twice = "SELECT count(*) - count(DISTINCT seq) FROM event WHERE what = 'discarded'";
    assert_eq!(query(&place, twice), 0);
    std::fs::remove_dir_all(&place).unwrap();
}
