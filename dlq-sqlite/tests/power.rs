//! What was answered is on the disk: between writing a letter into the log and answering lies a sync of the log.
#![allow(clippy::unwrap_used)] // tests fail by panicking

mod support;

use std::path::Path;
use std::process::Command;

use dlq_sqlite::{Durability, SqliteStore};
use retry_runtime::dead_letter::DeadLetterSink;
use support::{child, child_work, letter, tell, wait};

const TEST: &str = "a_sync_of_the_log_lies_between_write_and_answer";

/// Parks one letter after the other and says so.
fn park_some(path: &str, durability: Durability) {
    let store = SqliteStore::options(path).durability(durability).open().unwrap();
    for n in 0..20 {
        let parking = wait(store.submit(letter(&n.to_string())));
        assert!(parking.is_kept(), "{parking}");
        tell(&format!("parked {n}"));
    }
}

/// What became of each answer: was the log written since the answer before, and synced after the last write?
#[derive(Debug, PartialEq)]
enum Answer {
    Synced,
    NotSynced,
    NothingWritten,
}

fn answers(trace: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    let (mut written, mut synced) = (false, false);
    // A call of one thread may be interrupted by a line of another; a sync counts when it has returned.
    let mut syncing = false;
    for line in trace.lines() {
        let on_log = line.contains("-wal>");
        if line.contains("write") && line.contains("@ parked") {
            answers.push(match (written, synced) {
                (false, _) => Answer::NothingWritten,
                (true, true) => Answer::Synced,
                (true, false) => Answer::NotSynced,
            });
            (written, synced) = (false, false);
        } else if on_log && (line.contains("pwrite64(") || line.contains("write(")) {
            (written, synced) = (true, false);
        } else if on_log && (line.contains("fdatasync(") || line.contains("fsync(")) {
            syncing = line.contains("<unfinished");
            synced = !syncing;
        } else if syncing && line.contains("sync resumed") {
            (syncing, synced) = (false, true);
        }
    }
    answers
}

fn trace(directory: &Path, durability: &str) -> Vec<Answer> {
    let file = directory.join(format!("{durability}.trace"));
    let database = directory.join(format!("{durability}.db"));
    let around = [
        "strace",
        "-f",
        "-y",
        "-s",
        "64",
        "-e",
        "trace=write,writev,pwrite64,fsync,fdatasync",
        "-o",
        file.to_str().unwrap(),
    ];
    let work = format!("{durability}:{}", database.display());
    support::run(child(&around, TEST, &work));
    answers(&std::fs::read_to_string(&file).unwrap())
}

// S5, D6
#[test]
fn a_sync_of_the_log_lies_between_write_and_answer() {
    if let Some(work) = child_work() {
        let (durability, path) = work.split_once(':').unwrap();
        let durability = if durability == "full" { Durability::Full } else { Durability::Normal };
        return park_some(path, durability);
    }
    assert!(Command::new("strace").arg("-V").output().is_ok(), "this test needs strace: `apt install strace`");
    let directory = tempfile::tempdir().unwrap();
    let full = trace(directory.path(), "full");
    assert_eq!(full.len(), 20);
    assert!(full.iter().all(|answer| *answer == Answer::Synced), "{full:?}");
    // The check bites: with `Normal` nothing is synced before the answer.
    let normal = trace(directory.path(), "normal");
    assert_eq!(normal.len(), 20);
    assert!(normal.iter().filter(|answer| **answer == Answer::NotSynced).count() >= 19, "{normal:?}");
}
