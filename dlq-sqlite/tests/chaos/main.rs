//! Four processes on one file, killed at any moment, with faults that come and go (the runtime's chaos suite).
#![cfg(feature = "failpoints")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod bulk;
mod one_file;
mod places;
#[path = "../support/mod.rs"]
mod support;

use std::io::Write;

use one_file::OneFile;
use retry_runtime::testing::store_chaos::{self, Fault, Plan, Report};

fn soak() -> bool {
    std::env::var_os("SOAK").is_some()
}

fn show(report: &Report) {
    // Past the harness's capture: the seed is to be seen.
    writeln!(std::io::stderr().lock(), "{report}").unwrap();
}

// 11.1, S1: 4 processes, kills at any moment and at every place, locked file, full disk, clock jumps, handlers that outlive
// their lease
#[test]
fn nothing_is_lost_and_nothing_happens_twice() {
    let harness = OneFile { armed: true, ..OneFile::default() };
    let plan = Plan::new("nothing_is_lost_and_nothing_happens_twice").kills(if soak() { 2_000 } else { 200 }).faults([
        Fault::OutlivedLease,
        Fault::ClockJumps,
        Fault::LockedFile,
        Fault::FullDisk,
    ]);
    let report = store_chaos::run(&harness, &plan);
    show(&report);
    report.assert_passed();
    for place in one_file::central() {
        assert!(report.kills.contains_key(place), "nobody died at {place}");
    }
    assert!(report.spilled > 0 && report.late > 0 && report.crashes > 0 && report.reopened > 0, "{report}");
}

// D7: a page is overwritten while four processes work; the file is set aside, parking goes on, and what was accepted is in
// the one file or in the other
#[test]
fn what_a_damaged_file_held_is_not_lost() {
    let plan = Plan::new("what_a_damaged_file_held_is_not_lost").faults([Fault::OutlivedLease, Fault::Corruption]);
    let report = store_chaos::run(&OneFile::default(), &plan.kills(if soak() { 400 } else { 40 }));
    show(&report);
    report.assert_passed();
    assert!(report.elsewhere > 0, "nothing was set aside: {report}");
}

// The judge stands outside: what is changed behind the store's back is found.
#[test]
fn the_judge_finds_what_was_tampered_with() {
    let tampering = "
        DELETE FROM letter WHERE seq = (SELECT min(seq) FROM letter WHERE state = 'parked');
        UPDATE letter SET attempts = attempts + 1 WHERE seq = (SELECT max(seq) FROM letter);
        UPDATE letter SET fence = fence - 1 WHERE seq = (SELECT min(seq) FROM letter WHERE state = 'recovered');
        DELETE FROM attempt WHERE id = (SELECT max(id) FROM attempt WHERE outcome = 'succeeded' AND late = 0);
        UPDATE attempt SET late = 0 WHERE id = (SELECT min(id) FROM attempt WHERE late = 1);
        UPDATE attempt SET at = at - 3600000 WHERE outcome = 'crashed';
        UPDATE tally SET n = n + 1 WHERE state = 'abandoned';
        INSERT INTO attempt(seq, park_id, outcome, number, at, took_us)
            SELECT seq, park_id, outcome, number, at, took_us FROM attempt WHERE park_id IS NOT NULL ORDER BY id DESC LIMIT 1;
    ";
    let harness = OneFile { tampering, ..OneFile::default() };
    let plan = Plan::new("the_judge_finds_what_was_tampered_with").kills(40).jobs(30).faults([Fault::OutlivedLease]);
    let report = store_chaos::run(&harness, &plan);
    let wanted = [
        "was accepted and is LOST",
        "attempts counted",
        "was handed out, the letter has fence",
        "were taken, 0 recorded",
        "late results of fence",
        "was taken back while its lease ran",
        "D10: the summary says",
        "counts twice",
    ];
    for wanted in wanted {
        assert!(report.broken.iter().any(|broken| broken.contains(wanted)), "`{wanted}` is not found:\n{report}");
    }
    if let Some(kept) = &report.kept {
        std::fs::remove_dir_all(kept).unwrap();
    }
}
