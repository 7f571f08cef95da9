//! Projects of their own, outside of the workspace, with the crates of its `Cargo.lock`; and what it takes to build them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use retry_benches::figures::root;
use tempfile::TempDir;

// Each as its documentation says it is used.
const TOKIO: &str = r#"tokio = { version = "1", features = ["rt", "time"] }"#;
pub(super) const OURS: &str = "retry-runtime = { path = \"ROOT/retry-runtime\" }";
pub(super) const WITHOUT_MACROS: &str =
    "retry-runtime = { path = \"ROOT/retry-runtime\", default-features = false, features = [\"tokio\"] }";
pub(super) const BACKON: &str =
    r#"backon = { version = "1", default-features = false, features = ["std", "std-blocking-sleep", "tokio-sleep"] }"#;
pub(super) const BACKON_MACROS: &str = r#"backon = { version = "1", default-features = false, features = ["std", "std-blocking-sleep", "tokio-sleep"] }
backon-macros = "1""#;
pub(super) const TOKIO_RETRY: &str = r#"tokio-retry = "0.3""#;
pub(super) const TOKIO_RETRY2: &str = r#"tokio-retry2 = "0.9""#;
pub(super) const TRYHARD: &str = r#"tryhard = "0.5""#;
pub(super) const BACKOFF: &str = r#"backoff = { version = "0.4", features = ["tokio"] }"#;
pub(super) const TOWER: &str = r#"tower = { version = "0.5", default-features = false, features = ["retry", "util"] }"#;
pub(super) const RELENTLESS: &str = r#"relentless = { version = "0.18", features = ["tokio-clock"] }"#;
pub(super) const THISERROR: &str = r#"thiserror = "2""#;
pub(super) const ASYNC_TRAIT: &str = r#"async-trait = "0.1""#;
pub(super) const TRACING: &str =
    r#"tracing = { version = "0.1", default-features = false, features = ["std", "attributes"] }"#;

/// Where the projects of one part stand, and what is built of them. It goes when this does.
pub(super) struct Workshop {
    directory: TempDir,
}

/// One project.
pub(super) struct Project {
    name: String,
    directory: PathBuf,
    target: PathBuf,
    source: PathBuf,
}

/// Whether cargo keeps what it needs to compile less the next time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    Incremental,
}

impl Workshop {
    pub(super) fn new() -> Self {
        Self { directory: tempfile::Builder::new().prefix("bench-compile-").tempdir().unwrap() }
    }

    /// A project of that name; `file` is `main.rs` or `lib.rs`. All share what is built of their dependencies.
    pub(super) fn project(&self, name: &str, dependencies: &str, file: &str) -> Project {
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let directory = self.directory.path().join(&name);
        fs::create_dir_all(directory.join("src")).unwrap();
        let root = root().to_str().unwrap();
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[dependencies]\n{TOKIO}\n{}\n\n[workspace]\n",
            dependencies.replace("ROOT", root)
        );
        fs::write(directory.join("Cargo.toml"), manifest).unwrap();
        fs::copy(root.to_owned() + "/Cargo.lock", directory.join("Cargo.lock")).unwrap();
        let source = directory.join("src").join(file);
        Project { name, directory, target: self.directory.path().join("target"), source }
    }
}

impl Project {
    pub(super) fn write(&self, source: &str) {
        fs::write(&self.source, source).unwrap();
    }

    /// The seconds of processor that cargo and all that it runs spend; never the time on the clock, which others share.
    pub(super) fn cpu(&self, arguments: &[&str], keep: Keep) -> f64 {
        self.run(&["cargo"], arguments, keep).0
    }

    /// The same with nothing built before.
    pub(super) fn cold(&self, arguments: &[&str]) -> f64 {
        // only a directory of this workshop is ever removed
        if self.target.exists() {
            fs::remove_dir_all(&self.target).unwrap();
        }
        self.cpu(arguments, Keep::Nothing)
    }

    /// What cargo prints on its output.
    pub(super) fn prints(&self, cargo: &[&str], arguments: &[&str]) -> String {
        self.run(cargo, arguments, Keep::Nothing).1
    }

    fn run(&self, cargo: &[&str], arguments: &[&str], keep: Keep) -> (f64, String) {
        let log = self.directory.join("log");
        let mut command = Command::new("bash");
        // bash counts for its own child and those that the child has waited for
        command.args(["-c", "TIMEFORMAT='%U %S'; time \"$@\" 2>\"$0\""]).arg(&log).args(cargo).args(arguments);
        // what the caller's own cargo and shell have set is not what is measured
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET", "RUSTC_BOOTSTRAP"] {
            command.env_remove(name);
        }
        let run = command
            .env("CARGO_INCREMENTAL", if keep == Keep::Incremental { "1" } else { "0" })
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TERM_QUIET", "true")
            .env("LC_ALL", "C")
            .current_dir(&self.directory)
            .output()
            .unwrap();
        let said = fs::read_to_string(&log).unwrap_or_default();
        assert!(
            run.status.success(),
            "{} {}:\n{said}\nare its crates here? `cargo fetch`",
            self.name,
            arguments.join(" ")
        );
        let times = String::from_utf8(run.stderr).unwrap();
        let seconds = times.split_whitespace().map(|seconds| seconds.parse::<f64>().unwrap()).sum();
        (seconds, String::from_utf8(run.stdout).unwrap())
    }

    /// How many crates are built for the program, itself included.
    pub(super) fn crates(&self) -> usize {
        let tree = self.prints(&["cargo"], &["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
        let mut names: Vec<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }

    /// As the compiler calls it.
    pub(super) fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The program as it is built: `profile` is `debug` or `release`.
    pub(super) fn program(&self, profile: &str) -> PathBuf {
        self.target.join(profile).join(&self.name)
    }

    /// Code and constants of the built program in bytes: the column `text` of `size`.
    pub(super) fn text(&self) -> f64 {
        let size = Command::new("size").arg(self.program("release")).output().unwrap(); // binutils, as the linker
        let table = String::from_utf8(size.stdout).unwrap();
        table.lines().nth(1).and_then(|row| row.split_whitespace().next()).unwrap().parse().unwrap()
    }

    /// Lines of LLVM's text for a dev build: those of functions, not those about them.
    pub(super) fn ir(&self) -> f64 {
        let out = self.directory.join("program.ll");
        let emit = format!("--emit=llvm-ir={}", out.display());
        self.cpu(&["rustc", "--", &emit, "-Ccodegen-units=1"], Keep::Nothing);
        lines_of_functions(&out)
    }
}

fn lines_of_functions(path: &Path) -> f64 {
    let text = fs::read_to_string(path).unwrap();
    fs::remove_file(path).unwrap();
    let (mut inside, mut lines) = (false, 0_u32);
    for line in text.lines() {
        inside |= line.starts_with("define ");
        lines += u32::from(inside);
        inside &= line != "}";
    }
    f64::from(lines)
}
