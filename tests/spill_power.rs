//! What the spill answered is on the disk: a sync of the file lies between the line and the answer, and a sync of the
//! directory before the first one.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{DeadLetter, Spill};

const TEST: &str = "a_sync_lies_between_a_spilled_line_and_its_answer";
const DIRECTORY: &str = "SPILL_POWER_DIRECTORY";

/// Spills one letter after the other and says so, past the capture of the test harness.
fn spill_some(directory: PathBuf) {
    let spill = Spill::in_dirs("jobs", [directory]);
    for n in 0..5 {
        spill.append(&DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())).unwrap();
        std::io::stdout().write_all(format!("@ spilled {n}\n").as_bytes()).unwrap();
    }
    let many: Vec<_> = (0..50).map(|_| DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())).collect();
    spill.append_all(&many.iter().collect::<Vec<_>>()).unwrap();
    std::io::stdout().write_all(b"@ spilled together\n").unwrap();
}

// D8
#[test]
fn a_sync_lies_between_a_spilled_line_and_its_answer() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return spill_some(directory.into());
    }
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let spilled_to = directory.path().join("spill");
    std::fs::create_dir(&spilled_to).unwrap();
    let status = Command::new("strace")
        .args(["-f", "-y", "-s", "32", "-e", "trace=write,fsync,fdatasync", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(DIRECTORY, &spilled_to)
        .output()
        .expect("this test needs strace: `apt install strace`")
        .status;
    assert!(status.success());
    let (mut written, mut synced, mut listed, mut answers, mut syncs) = (false, false, false, 0, 0);
    for line in std::fs::read_to_string(&trace).unwrap().lines() {
        let on_file = line.contains(".ndjson>");
        if on_file && line.contains("write(") {
            (written, synced) = (true, false);
        } else if line.contains("sync(") {
            synced |= on_file && written;
            syncs += u32::from(on_file);
            listed |= line.contains(&format!("{}>", spilled_to.display()));
        } else if line.contains("write(") && line.contains("@ spilled") {
            assert!(written && synced, "answer {answers} came before the sync of its line");
            assert!(listed, "answer {answers} came before the sync of the directory");
            // letters that come together share one sync: a store that is down at a bad moment has many of them
            assert_eq!(syncs, 1, "syncs of the file before answer {answers}");
            (written, synced, answers, syncs) = (false, false, answers + 1, 0);
        }
    }
    assert_eq!(answers, 6);
}
