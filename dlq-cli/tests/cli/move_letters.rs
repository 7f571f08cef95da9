//! Export, import, spill.

use super::support::{Bench, usual};

use std::os::unix::fs::PermissionsExt as _;

use retry_runtime::dead_letter::Spill;

#[test]
fn letters_travel_and_count_once() {
    let here = Bench::with(5);
    here.dlq(&["export", "--out", "letters.ndjson"]).exits(0).warns("5 of 5 matching");
    let mode = std::fs::metadata(here.path("letters.ndjson")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    here.dlq(&["export", "--out", "letters.ndjson"]).exits(1).warns("letters.ndjson");
    let stdout = here.dlq(&["export", "--class", "timeout"]).exits(0).warns("4 of 4 matching");
    assert_eq!(stdout.out.lines().count(), 6, "{stdout:?}");
    let redacted = here.dlq(&["export", "--redact"]).exits(0);
    assert!(!redacted.out.contains("s3cret") && redacted.out.contains("[redacted]"), "{redacted:?}");

    let there = Bench::empty();
    let file = here.path("letters.ndjson").display().to_string();
    there.dlq(&["import", &file]).exits(1).warns("does not exist");
    there.dlq(&["import", "nowhere", "--create"]).exits(1).warns("nowhere");
    assert!(!there.db().exists(), "a wrong name made a store");
    there.dlq(&["import", &file, "--create"]).exits(0).says("5 new, 0 merged");
    there.dlq(&["import", &file]).exits(0).says("0 new, 0 merged with letters of the same jobs, 5 known");
    there.dlq(&["list"]).exits(0).says("5 of 5 matching");
    let lines = std::fs::read_to_string(&file).unwrap();
    let cut = lines.lines().take(3).collect::<Vec<_>>().join("\n");
    std::fs::write(there.path("cut"), format!("{cut}\nno letter at all\n")).unwrap();
    there.dlq(&["import", "cut"]).exits(1).says("line 4 refused").says("not a whole export");
}

// D8
#[test]
fn spilled_letters_come_home() {
    let bench = Bench::with(1);
    let spill = Spill::beside(bench.db());
    for n in 10..13 {
        spill.append(&usual(n)).unwrap();
    }
    // A living process has its file locked: that one is left alone.
    bench.dlq(&["import", "--spill"]).exits(0).says("0 lines taken in").says("3 lines in files of running processes");
    spill.release();
    bench.dlq(&["summary"]).exits(0).says("3  spilled");
    bench.dlq(&[]).exits(0).says("3 letters wait in").says("dlq import --spill");
    bench.dlq(&["import", "--spill"]).exits(0).says("3 lines taken in");
    bench.dlq(&["summary"]).exits(0).says("dead-letter: 4 parked");
    bench.dlq(&["import", "--spill"]).exits(0).says("0 lines taken in");
    std::fs::write(bench.path("jobs.db.spill.20260101T000000Z-x.ndjson"), "torn").unwrap();
    bench.dlq(&["import", "--spill"]).exits(1).says("could not be read").says(".bad");
    let fresh = Bench::empty();
    fresh.dlq(&["import", "--spill"]).exits(1).warns("does not exist");
}
