//! Child processes and outside readers for the tests of faults.
//!
//! A test that needs a process of its own starts its own executable again, with the work named in an environment
//! variable; [`is_child`] tells it that it is the child.
#![allow(dead_code)] // each test takes what it needs
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

pub(crate) mod accounts;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use retry_runtime::StopReason;
use retry_runtime::attempt::AttemptRecord;
use retry_runtime::dead_letter::{DeadLetter, Parking, Payload, Ticket};

const WORK: &str = "DLQ_TEST_CHILD";

/// A letter as a real call would leave it: about 1 KiB of payload, three attempts.
pub(crate) fn letter(job: &str) -> DeadLetter {
    let now = SystemTime::now();
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, now);
    letter.job_id = Some(job.to_owned());
    letter.model = Some("gemini-pro".to_owned());
    letter.class = Some("rate_limit".to_owned());
    letter.code = Some(429);
    letter.error_type = "app::Error".into();
    letter.error_message = "429 Too Many Requests: quota exceeded".into();
    letter.payload = Payload::Json(format!("{{\"id\":\"{job}\",\"prompt\":\"{}\"}}", "x".repeat(1_000)));
    letter.attempts = 3;
    for attempt in 1..=3 {
        let took = Duration::from_millis(20);
        letter.history.push(AttemptRecord::new(attempt, now, took, "rate_limit", Some(429), "429 Too Many Requests"));
    }
    letter
}

/// The answer, however long it takes.
pub(crate) fn wait(ticket: Ticket) -> Parking {
    ticket.wait(Duration::from_secs(120)).unwrap_or_else(|_| panic!("no answer in two minutes"))
}

/// What this process is to do as a child; `None` in the parent.
pub(crate) fn child_work() -> Option<String> {
    std::env::var(WORK).ok()
}

/// The command that runs `test` of this executable again as a child; `around` goes before it.
pub(crate) fn child(around: &[&str], test: &str, work: &str) -> Command {
    let exe = std::env::current_exe().unwrap();
    let mut words: Vec<_> = around.iter().map(|word| (*word).to_owned()).collect();
    words.push(exe.to_str().unwrap().to_owned());
    let mut command = Command::new(words.first().unwrap());
    command.args(words.iter().skip(1)).args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(WORK, work).stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    command
}

/// One line to the parent, in one write. The test harness prints too: a mark tells them apart.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@ {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The lines a child tells, as they come.
pub(crate) fn told(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let out = BufReader::new(child.stdout.take().unwrap());
    out.lines().map_while(Result::ok).filter_map(|line| line.strip_prefix("@ ").map(str::to_owned))
}

/// Runs a child to its end and gives what it told. The child has to succeed.
pub(crate) fn run(mut command: Command) -> Vec<String> {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "the child failed: {:?}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines().filter_map(|line| line.strip_prefix("@ ").map(str::to_owned)).collect()
}

/// The words before a command for which no file may grow beyond so many bytes; the signal that would kill it is ignored.
pub(crate) fn no_larger_than(bytes: usize) -> Vec<String> {
    let script = format!("trap '' XFSZ; exec prlimit --fsize={bytes} \"$0\" \"$@\"");
    ["sh", "-c", &script].map(str::to_owned).to_vec()
}

/// A file system in memory, gone with the value.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, and said aloud, where this process may not mount: what is left of the test is then shown by limits on the
    /// size of files alone.
    pub(crate) fn mount(at: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        if mount(at, &format!("size={size}")) {
            return Some(Self(at.to_owned()));
        }
        // Past the harness's capture.
        let mut out = std::io::stderr().lock();
        writeln!(out, "SKIPPED in part: a full disk cannot be shown without the right to mount one").unwrap();
        None
    }

    pub(crate) fn grow(&self, size: &str) {
        assert!(mount(&self.0, &format!("remount,size={size}")));
    }
}

fn mount(at: &Path, options: &str) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What stays mounted goes with the machine.
        let _gone = Command::new("umount").arg(&self.0).status();
    }
}

/// Every parking in the file, read by a connection that knows nothing of this crate.
pub(crate) fn parkings(path: &Path) -> BTreeSet<String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT park_id FROM parking").unwrap();
    let ids = statement.query_map([], |row| row.get(0)).unwrap();
    ids.map(Result::unwrap).collect()
}

/// The file is whole.
pub(crate) fn assert_intact(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let orphans: i64 = connection
        .query_row(
            "SELECT (SELECT count(*) FROM parking WHERE seq NOT IN (SELECT seq FROM letter))
                  + (SELECT count(*) FROM letter WHERE seq NOT IN (SELECT seq FROM parking))
                  + (SELECT count(*) FROM letter WHERE payload_revision > 0 AND seq NOT IN (SELECT seq FROM payload))",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(orphans, 0, "letters, parkings and payloads belong together");
}

/// Every parking that waits in spill files.
pub(crate) fn spilled(directories: &[&Path]) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for file in spill_files(directories) {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            ids.extend(line["park_id"].as_str().map(str::to_owned));
        }
    }
    ids
}

/// The spill files beside a database, and in other directories.
pub(crate) fn spill_files(directories: &[&Path]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in directories {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.contains(".spill.") && name.ends_with(".ndjson") {
                found.push(path);
            }
        }
    }
    found
}
