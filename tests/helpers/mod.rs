//! Running a built example as its user would, and reading what it left in the database.
#![allow(dead_code, clippy::expect_used)] // each test takes what it needs, and fails where a helper fails

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// What a test of an example gives back.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// A program that ran to its end.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The line that scripts read.
    pub(crate) fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

/// The command that runs an example, built as the test itself is, in an environment without a key.
pub(crate) fn example(name: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(built(name));
    command.env_remove("GEMINI_API_KEY").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs an example to its end.
pub(crate) async fn run(command: &mut tokio::process::Command) -> Result<Run, Box<dyn Error>> {
    let output = command.output().await?;
    let text = |bytes| String::from_utf8(bytes);
    Ok(Run { status: output.status, stdout: text(output.stdout)?, stderr: text(output.stderr)? })
}

/// `cargo test` builds every example, but `cargo test --test NAME` none: so each is asked for, once per test program.
fn built(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let examples = BUILT.get_or_init(|| {
        let test = std::env::current_exe().expect("a test program has a path");
        let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").to_owned();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--workspace", "--all-features", "--examples", "--target-dir"]);
        cargo.arg(profile.parent().expect("a profile lies in the target directory"));
        // Some build scripts run again when these change, and what `cargo test` sets is nothing to them.
        for (name, _) in std::env::vars_os() {
            let ours = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"];
            if ours.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                cargo.env_remove(name);
            }
        }
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo starts").success(), "the examples do not build");
        profile.join("examples")
    });
    examples.join(name)
}

/// A directory of a test's own, removed at its end.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file of lines.
    pub(crate) fn lines(&self, name: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> PathBuf {
        let mut text = String::new();
        for line in lines {
            text.push_str(line.as_ref());
            text.push('\n');
        }
        let path = self.path(name);
        std::fs::write(&path, text).expect("the scratch directory takes files");
        path
    }
}

/// The database as any SQLite program sees it: read-only, and through its public views.
pub(crate) fn database(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}
