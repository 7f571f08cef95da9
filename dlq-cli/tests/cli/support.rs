//! A store with letters, and the command run against it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::attempt::AttemptRecord;
use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink as _, Parking, Payload};
use retry_runtime::{Disposition, StopReason};
use serde_json::Value;

pub(crate) struct Bench {
    directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// No store yet.
    pub(crate) fn empty() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { directory: tempfile::tempdir().unwrap(), runtime }
    }

    /// A store with so many parked letters of jobs `page-0`, `page-1`, ..; every third one is permanent.
    pub(crate) fn with(letters: u32) -> Self {
        let bench = Self::empty();
        bench.fill(|store, bench| {
            for n in 0..letters {
                bench.park(store, usual(n));
            }
        });
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.path("jobs.db")
    }

    /// Opens the store as a program would, and closes it in order.
    pub(crate) fn fill<T>(&self, work: impl FnOnce(&SqliteStore, &Self) -> T) -> T {
        let store = SqliteStore::open(self.db()).unwrap();
        let done = work(&store, self);
        store.close(Duration::from_secs(10));
        done
    }

    pub(crate) fn park(&self, store: &SqliteStore, letter: DeadLetter) -> String {
        match self.wait(store.submit(letter)) {
            Parking::Parked { letter_id } => letter_id,
            other => panic!("{other}"),
        }
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The command, with the store's address in the environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dlq"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .env("USER", "ada")
            .env("DLQ_STORE", format!("sqlite:{}", self.db().display()))
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn dlq(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap(), arguments)
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.dlq(&[&["--json"], arguments].concat());
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// The states of all letters, by job.
    pub(crate) fn states(&self) -> Vec<(String, String)> {
        let all = self.json(&["list", "--all", "--limit", "1000"]);
        let text = |letter: &Value, key: &str| letter[key].as_str().unwrap().to_owned();
        let mut states: Vec<_> = all["letters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|letter| (text(letter, "job_id"), text(letter, "status")))
            .collect();
        states.sort();
        states
    }

    pub(crate) fn count(&self, state: &str) -> usize {
        self.states().iter().filter(|(_, found)| found == state).count()
    }

    /// A program in the directory.
    pub(crate) fn script(&self, name: &str, body: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    #[allow(dead_code, reason = "shown when a test fails")]
    arguments: Vec<String>,
}

impl Ran {
    pub(crate) fn of(output: Output, arguments: &[&str]) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        }
    }

    /// Ended so.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Said that on stdout.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no `{text}` in {self:#?}");
        self
    }

    /// Said that on stderr.
    #[track_caller]
    pub(crate) fn warns(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no `{text}` in {self:#?}");
        self
    }
}

pub(crate) fn usual(n: u32) -> DeadLetter {
    let permanent = n % 3 == 2;
    let at = SystemTime::now() - Duration::from_secs(3_600) + Duration::from_secs(u64::from(n));
    let reason = if permanent { StopReason::Permanent } else { StopReason::Exhausted };
    let mut letter = DeadLetter::new("summarise", reason, at);
    letter.job_id = Some(format!("page-{n}"));
    letter.disposition = if permanent { Disposition::Permanent } else { Disposition::Retryable };
    letter.class = Some(if permanent { "forbidden" } else { "timeout" }.into());
    letter.code = permanent.then_some(403);
    letter.error_type = "app::Error".into();
    letter.error_message =
        if permanent { format!("page {n} is not for us") } else { format!("no answer for page {n}") };
    letter.payload = Payload::Json(format!("{{\"page\":{n},\"token\":\"s3cret-{n}\"}}"));
    letter.attempts = 3;
    letter.history = vec![AttemptRecord::new(1, at, Duration::from_millis(12), "timeout", None, "no answer")];
    letter
}

/// Every byte of a file.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// Waits for a condition, not for a time.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
