//! Thresholds, for cron and monitoring.

use super::support::{Bench, usual};

use std::time::{Duration, SystemTime};

use retry_runtime::counters::DailyCounters as _;

#[test]
fn each_threshold_has_its_line_and_exit_status() {
    let bench = Bench::with(7);
    for (option, at_most, name) in
        [("--max-parked", 7, "parked: 7"), ("--max-owed", 7, "owed: 7"), ("--max-rate", 7, "rate: 7")]
    {
        bench.dlq(&["check", option, &at_most.to_string()]).exits(0).says(&format!("ok      {name}, at most 7"));
        bench.dlq(&["check", option, &(at_most - 1).to_string()]).exits(3).says(&format!("OVER    {name}, at most 6"));
    }
    bench.dlq(&["check", "--max-abandoned", "0", "--max-spilled", "0", "--max-lost", "0"]).exits(0);
    bench.dlq(&["check", "--max-age", "2h"]).exits(0).says("ok      age: ");
    let both = bench.dlq(&["check", "--max-age", "10m", "--max-parked", "100"]).exits(3);
    assert_eq!(both.out.lines().count(), 3, "{both:?}");
    both.says("OVER    age: ").says("ok      parked: 7, at most 100");
    bench.fill(|store, bench| bench.wait(store.add("dead_letter", "lost", 2)).unwrap());
    bench.dlq(&["check", "--max-lost", "0"]).exits(3).says("OVER    lost: 2, at most 0");
    std::fs::write(bench.path("jobs.db.spill.20260101T000000Z-x.ndjson"), "torn\n").unwrap();
    bench.dlq(&["check", "--max-spilled", "0"]).exits(3).says("OVER    spilled: 1, at most 0");
}

// The age is of the first failure: a job that fails again every hour is not young.
#[test]
fn the_age_is_that_of_the_first_failure() {
    let bench = Bench::empty();
    bench.fill(|store, bench| {
        for hours in [30, 0] {
            let mut letter = usual(0);
            letter.first_failed_at = SystemTime::now() - Duration::from_secs(hours * 3_600);
            letter.failed_at = letter.first_failed_at;
            bench.park(store, letter);
        }
    });
    bench.dlq(&["check", "--max-age", "1d"]).exits(3).says("1 d 6 h");
}

// Never 0 when it could not look
#[test]
fn what_cannot_be_seen_is_not_well() {
    let bench = Bench::empty();
    bench.dlq(&["check", "--max-parked", "0"]).exits(1).warns("does not exist");
    std::fs::write(bench.db(), "").unwrap();
    bench.dlq(&["check", "--max-parked", "0"]).exits(1).warns("empty");
    std::fs::write(bench.db(), "no database at all, but long enough to look like one").unwrap();
    bench.dlq(&["check", "--max-parked", "0"]).exits(1).warns("is not a SQLite database");
    let bench = Bench::with(1);
    bench.dlq(&["check"]).exits(2).warns("--max-parked");
    bench.dlq(&["check", "--max-parked", "lots"]).exits(2);
    // Damaged in the middle: some questions can be answered, and this one cannot.
    let mut whole = std::fs::read(bench.db()).unwrap();
    whole.truncate(whole.len() / 2);
    std::fs::write(bench.db(), whole).unwrap();
    let ran = bench.dlq(&["check", "--max-parked", "100", "--max-age", "100d", "--max-lost", "0"]);
    assert_eq!(ran.code, 1, "{ran:?}");
}

// Silence is not health
#[test]
fn a_store_that_nobody_writes_is_not_well() {
    let bench = Bench::with(1);
    bench.dlq(&["check", "--heartbeat-age", "10m"]).exits(0).says("ok      heartbeat");
    let long_ago = SystemTime::now() - Duration::from_secs(7_200);
    for name in ["jobs.db", "jobs.db-wal"] {
        if let Ok(file) = std::fs::File::options().write(true).open(bench.path(name)) {
            file.set_modified(long_ago).unwrap();
        }
    }
    // The parking's event is young, so the event's time has to go back too.
    let db = rusqlite_set_events(&bench, long_ago);
    drop(db);
    if let Ok(file) = std::fs::File::options().write(true).open(bench.db()) {
        file.set_modified(long_ago).unwrap();
    }
    bench.dlq(&["check", "--heartbeat-age", "10m"]).exits(3).says("OVER    heartbeat: 2 h");
}

fn rusqlite_set_events(bench: &Bench, at: SystemTime) -> std::process::Output {
    let millis = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let sql = format!("PRAGMA journal_mode = DELETE; UPDATE event SET at = {millis};");
    let done = std::process::Command::new("sqlite3").arg(bench.db()).arg(sql).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    done
}

// D7, S6: the doctor's exit status
#[test]
fn the_doctor_ends_with_3_when_something_is_wrong() {
    let bench = Bench::with(2);
    bench.dlq(&["doctor"]).exits(0).says("nothing is wrong");
    bench.dlq(&["doctor", "--probe"]).exits(0).says("nothing is wrong");
    bench.dlq(&["doctor", "--handled", "other"]).exits(3).says("blocked");
    std::fs::write(bench.path("jobs.db.corrupt-17"), "x").unwrap();
    bench.dlq(&["doctor"]).exits(3).says("set_aside").says("->");
}
