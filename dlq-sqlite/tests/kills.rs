//! A process that is killed at any moment loses nothing it was told is parked.
#![allow(clippy::unwrap_used)] // tests fail by panicking

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, Parking};
use support::{assert_intact, child, child_work, letter, parkings, tell, told, wait};

/// So many threads park without a pause: at any moment some of them are in the middle of it.
const THREADS: usize = 8;

/// Parks for ever, saying `start ID` before and `parked ID` after.
fn park_until_killed(path: &str) {
    let store = SqliteStore::open(path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for n in 0.. {
                    let letter = letter(&format!("{}-{thread}-{n}", std::process::id()));
                    let id = letter.park_id;
                    tell(&format!("start {id}"));
                    let parking = wait(store.submit(letter));
                    assert!(matches!(parking, Parking::Parked { .. }), "{parking}");
                    tell(&format!("parked {id}"));
                }
            });
        }
    });
}

/// One kill, after so many letters were parked. Returns what was told to be parked, and how many were in flight.
fn kill_after(path: &Path, parked: usize) -> (BTreeSet<String>, usize) {
    let mut process = child(&[], "a_kill_loses_nothing_that_was_answered", path.to_str().unwrap()).spawn().unwrap();
    let (mut started, mut done) = (BTreeSet::new(), BTreeSet::new());
    let mut killed = false;
    // What the pipe still holds after the kill was said before it.
    for line in told(&mut process) {
        match line.split_once(' ') {
            Some(("start", id)) => started.insert(id.to_owned()),
            Some(("parked", id)) => done.insert(id.to_owned()),
            _ => false,
        };
        if !killed && done.len() >= parked {
            process.kill().unwrap();
            killed = true;
        }
    }
    let status = process.wait().unwrap();
    assert!(killed && !status.success(), "{status}");
    let in_flight = started.difference(&done).count();
    (done, in_flight)
}

fn kill(rounds: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let mut all = BTreeSet::new();
    let mut in_flight = Vec::new();
    for round in 0..rounds {
        // Early ones meet an empty file and its migration, later ones a log of any length.
        let (done, flying) = kill_after(&path, round * 7 % 61 + 1);
        let there = parkings(&path);
        let missing: Vec<_> = done.difference(&there).collect();
        assert!(missing.is_empty(), "round {round}: answered as parked, and gone: {missing:?}");
        assert!(flying >= 1, "round {round}: nothing was in flight");
        in_flight.push(flying);
        all.extend(done);
    }
    assert_intact(&path);
    assert!(all.is_subset(&parkings(&path)));
    // Past the harness's capture: the count is to be seen.
    let mut out = std::io::stderr().lock();
    writeln!(
        out,
        "{rounds} kills, {} letters answered, all found; in flight at the kill: {} at least, {} in all",
        all.len(),
        in_flight.iter().min().unwrap(),
        in_flight.iter().sum::<usize>()
    )
    .unwrap();
}

// 11.1
#[test]
fn a_kill_loses_nothing_that_was_answered() {
    match child_work() {
        Some(path) => park_until_killed(&path),
        // `./test --soak` takes longer.
        None => kill(if std::env::var_os("SOAK").is_some() { 1_000 } else { 50 }),
    }
}
