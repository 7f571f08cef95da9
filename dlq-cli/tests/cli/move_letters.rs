//! Export, import, spill.

use super::support::{Bench, bytes, usual};

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

// S6, D7: a damaged page costs what was on it
#[test]
fn what_can_be_read_of_a_damaged_file_comes_home() {
    let bench = Bench::with(500);
    let whole = bytes(&bench.db());
    let mut damaged = whole.clone();
    // A page of letters, one of payloads, and one of an index.
    for text in ["no answer for page 100", "{\"page\":200,", "page-300"] {
        let at = whole.windows(text.len()).position(|bytes| bytes == text.as_bytes()).unwrap();
        damaged[at / 4096 * 4096..][..4096].fill(0xA5);
    }
    std::fs::write(bench.path("jobs.db.corrupt-17"), &damaged).unwrap();
    std::fs::remove_file(bench.db()).unwrap();
    bench.fill(|store, bench| {
        // Parked since: the same job, and another one.
        bench.park(store, usual(0));
        bench.park(store, usual(9_000));
    });
    bench.dlq(&[]).exits(0).says("set aside as corrupt");
    let ran = bench
        .dlq(&["salvage"])
        .exits(1)
        .says("NOT SAVED: 1 places of letters could not be read")
        .says("have lost their payload")
        .says("move it away");
    let states = bench.states();
    let count = states.len();
    assert!((470..501).contains(&count), "{count} of 501: {ran:?}");
    let has = |job: &str| states.iter().any(|(found, _)| found == job);
    assert_eq!((has("page-100"), has("page-0"), has("page-499"), has("page-9000")), (false, true, true, true));
    let lost = bench.json(&["show", "page-200"]);
    assert_eq!(lost["letter"]["payload_error"], "it was on a damaged page, or its file is damaged", "{lost}");
    assert_eq!(bytes(&bench.path("jobs.db.corrupt-17")), damaged, "the damaged file was touched");
    let merged = bench.json(&["show", "page-0"]);
    assert_eq!((&merged["letter"]["parkings"], &merged["letter"]["attempts"]), (&2.into(), &6.into()), "{merged}");
    // Again: nothing counts twice.
    bench.dlq(&["salvage"]).exits(1).says("0 new here, 0 merged").says("its counters had been added before");
    assert_eq!(bench.states().len(), count);
    // What came home can be replayed: its payload is what was written, or is said to be lost.
    let job = bench.script("job", "grep -q '\"token\":\"s3cret-'");
    let limit = ["replay", "--all", "--execute", "--yes", "--concurrency", "8", "--exec", job.to_str().unwrap()];
    let ran = bench.dlq(&limit);
    assert_eq!(bench.count("parked") + bench.count("recovered"), count, "{ran:?}");
    assert!(!ran.out.contains("still failing"), "{ran:?}");
    bench.dlq(&["salvage", "nowhere"]).exits(1).warns("nowhere");
    std::fs::write(bench.path("other"), "nothing of ours, but quite long enough to be looked at").unwrap();
    bench.dlq(&["salvage", "other"]).exits(1).warns("other");
}
