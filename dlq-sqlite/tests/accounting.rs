//! The identity of every job under every fault: accepted = succeeded + gone + refused + parked + spilled + lost, with
//! nothing lost while the spill works, and everything in the store once the fault is gone (SEMANTICS 11.1).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use support::accounts::{Accounts, Pace, run};
use support::{SmallDisk, child, child_work, no_larger_than};

const JOBS: usize = 48;

/// The child: `together|one_by_one`, the database, the number of jobs, the spill directories.
fn work(words: &str) {
    let words: Vec<&str> = words.split('|').collect();
    let pace = if words[0] == "together" { Pace::Together } else { Pace::OneByOne };
    let store = SqliteStore::options(words[1])
        .reserve(words[0] == "reserve")
        .busy_limit(Duration::from_millis(100))
        .spill_dirs(&words[3..])
        .open()
        .unwrap();
    run(&store, words[2].parse().unwrap(), pace);
}

fn words(pace: &str, path: &Path, jobs: usize, spill: &[&Path]) -> String {
    let mut words = vec![pace.to_owned(), path.to_str().unwrap().to_owned(), jobs.to_string()];
    words.extend(spill.iter().map(|path| path.to_str().unwrap().to_owned()));
    words.join("|")
}

fn accounts(around: &[&str], test: &str, pace: &str, path: &Path, jobs: usize, spill: &[&Path]) -> Accounts {
    Accounts::of(jobs, &support::run(child(around, test, &words(pace, path, jobs, spill))))
}

/// An empty store that is closed.
fn fresh(path: &Path) {
    SqliteStore::options(path).reserve(false).open().unwrap().close(Duration::from_secs(30));
}

// 11.1
#[test]
fn without_a_fault_everything_is_parked() {
    if let Some(words) = child_work() {
        return work(&words);
    }
    let directory = tempfile::tempdir().unwrap();
    let test = "without_a_fault_everything_is_parked";
    for pace in ["together", "one_by_one"] {
        let path = directory.path().join(pace);
        let accounts = accounts(&[], test, pace, &path, JOBS, &[directory.path()]);
        accounts.assert_balanced(&path, &[directory.path()]);
        assert!(accounts.spilled.is_empty() && accounts.lost.is_empty(), "{accounts:?}");
        assert!(accounts.succeeded > 0 && accounts.gone > 0 && accounts.parked.len() > 20, "{accounts:?}");
    }
    // A second run meets the same keys: what is done or gone is refused.
    let path = directory.path().join("together");
    let again = accounts(&[], test, "together", &path, JOBS, &[directory.path()]);
    assert!(again.refused > 5, "{again:?}");
}

// D6, D8: the log cannot grow, at each of its pages
#[test]
fn a_log_that_cannot_grow_loses_nothing() {
    if let Some(words) = child_work() {
        return work(&words);
    }
    let (mut bitten, mut parked) = (0, 0);
    // `./test --soak` tries every page.
    let step = if std::env::var_os("SOAK").is_some() { 1 } else { 5 };
    for (round, pages) in (10..200).step_by(step).enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let (path, spill) = (directory.path().join("db/jobs.db"), directory.path().join("spill"));
        fresh(&path);
        // A frame of the log is a page and its header of 24 bytes; the log's own header has 32.
        let around = no_larger_than(32 + pages * 4_120 + round);
        let around: Vec<&str> = around.iter().map(String::as_str).collect();
        let pace = if round % 2 == 0 { "together" } else { "one_by_one" };
        let spill = [spill.as_path()];
        std::fs::create_dir(spill[0]).unwrap();
        let accounts = accounts(&around, "a_log_that_cannot_grow_loses_nothing", pace, &path, 24, &spill);
        bitten += usize::from(!accounts.spilled.is_empty());
        parked += accounts.parked.len();
        accounts.assert_balanced(&path, &spill);
        assert!(accounts.lost.is_empty(), "{pages}: {accounts:?}");
        accounts.assert_comes_home(&path, &spill);
    }
    assert!(bitten > 25, "the fault has to bite: {bitten}");
    assert!(parked > 100, "and it has to come in the middle: {parked}");
}

// D8, D19: the disk of the store is full; the spill lies on another one
#[test]
fn a_full_disk_loses_nothing() {
    if let Some(words) = child_work() {
        return work(&words);
    }
    let directory = tempfile::tempdir().unwrap();
    let (disk, spill) = (directory.path().join("disk"), directory.path().join("spill"));
    let mut bitten = 0;
    for pace in ["together", "one_by_one"] {
        // What is left for the run, from nothing to more than it needs.
        for left in [0, 20_000, 50_000, 90_000, 140_000, 200_000] {
            let Some(small) = SmallDisk::mount(&disk, "1m") else { return };
            let path = disk.join("jobs.db");
            fresh(&path);
            fill(&disk, left);
            let dirs = [disk.as_path(), spill.as_path()];
            let accounts = accounts(&[], "a_full_disk_loses_nothing", pace, &path, JOBS, &dirs);
            bitten += usize::from(!accounts.spilled.is_empty());
            small.grow("16m");
            accounts.assert_balanced(&path, &dirs);
            assert!(accounts.lost.is_empty(), "{pace} {left}: {accounts:?}");
            accounts.assert_comes_home(&path, &dirs);
        }
    }
    assert!(bitten >= 6, "the fault has to bite: {bitten}");
}

/// Fills a disk up to so many bytes.
fn fill(disk: &Path, left: u64) {
    let mut file = std::fs::File::create(disk.join("filler")).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    let size = file.metadata().unwrap().len();
    file.set_len(size.saturating_sub(left)).unwrap();
}

// D19: a store that may only be read
#[test]
fn a_store_that_may_only_be_read_loses_nothing() {
    if let Some(words) = child_work() {
        return work(&words);
    }
    let directory = tempfile::tempdir().unwrap();
    let (path, spill) = (directory.path().join("db/jobs.db"), directory.path().join("spill"));
    fresh(&path);
    std::fs::create_dir(&spill).unwrap();
    let allow = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    allow(directory.path(), 0o755);
    allow(&directory.path().join("db"), 0o555);
    allow(&path, 0o444);
    allow(&spill, 0o777);
    // Root is stopped by no mode: then the child is somebody else, who needs an executable of his own.
    let copy = directory.path().join("child");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = Command::new(if is_root { "setpriv" } else { "env" });
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.arg(&copy).args(["a_store_that_may_only_be_read_loses_nothing", "--exact", "--nocapture"]);
    let dirs = [directory.path().join("db"), spill];
    let dirs = [dirs[0].as_path(), dirs[1].as_path()];
    command.env("DLQ_TEST_CHILD", words("together", &path, JOBS, &dirs)).env("HOME", directory.path());
    let accounts = Accounts::of(JOBS, &support::run(command));
    accounts.assert_balanced(&path, &dirs);
    assert!(accounts.parked.is_empty() && accounts.lost.is_empty(), "{accounts:?}");
    assert!(accounts.spilled.len() > 20, "the fault has to bite: {accounts:?}");
    allow(dirs[0], 0o755);
    allow(&path, 0o644);
    accounts.assert_comes_home(&path, &dirs);
}
