//! Instructions by callgrind, through gungraun: its own process for each case.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use retry_benches::cases::{Scenario, cases};
use retry_benches::figures::{output, root, target};
use serde_json::Value;

/// What one loop cost in one scenario.
pub(super) struct Counted {
    pub(super) scenario: Scenario,
    pub(super) contender: &'static str,
    pub(super) instructions: f64,
    /// callgrind's own file about it
    out: PathBuf,
}

/// Runs everybody in these scenarios.
pub(super) fn count(profile: &str, scenarios: &[Scenario]) -> Vec<Counted> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["bench", "--quiet", "--package", "retry-benches", "--bench", "counts"]);
    cargo.args(["--profile", profile, "--no-default-features"]);
    if cfg!(feature = "peers") {
        cargo.args(["--features", "peers"]);
    }
    cargo.args(["--", "--output-format=json"]);
    let mut all = Vec::new();
    for scenario in scenarios {
        let mut run = Command::new(cargo.get_program());
        run.current_dir(root()).args(cargo.get_args()).arg(format!("*{}*", scenario.function()));
        let run = run.stderr(Stdio::inherit()).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{text}");
        let found: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for (n, case) in cases(*scenario).iter().enumerate() {
            let id = format!("case_{n}");
            let summary =
                found.iter().find(|summary| summary["id"] == *id && summary["function_name"] == scenario.function());
            let summary = summary.unwrap_or_else(|| panic!("no {id} of {scenario:?} in\n{text}"));
            let instructions = instructions(summary).unwrap_or_else(|| panic!("no instructions in\n{summary}"));
            // the summary tells where callgrind wrote it, and gungraun moves it here
            let name = format!("{}.{id}", scenario.function());
            let out =
                target().join("gungraun/retry-benches/counts/loops").join(&name).join(format!("callgrind.{name}.out"));
            all.push(Counted { scenario: *scenario, contender: case.contender, instructions, out });
        }
    }
    all
}

/// `Ir` of one summary: of this run alone, or of this one beside the last.
fn instructions(summary: &Value) -> Option<f64> {
    let metrics = &summary["profiles"][0]["summaries"]["total"]["summary"]["Callgrind"]["Ir"]["metrics"];
    let this = metrics.get("Left").or_else(|| metrics["Both"].get(0))?;
    this["Int"].as_f64()
}

impl Counted {
    /// The instructions of each function by itself, as far as the compiler left it a function.
    pub(super) fn profile(&self) -> BTreeMap<String, f64> {
        let out = self.out.to_str().unwrap();
        let options = ["--auto=no", "--show=Ir", "--threshold=100", "--show-percs=no", out];
        let functions = functions(&output("callgrind_annotate", &options));
        let sum: f64 = functions.values().sum();
        assert!((sum - self.instructions).abs() < 1.0, "{} instructions, and {sum} in {out}", self.instructions);
        functions
    }
}

/// Reads `callgrind_annotate`'s table: `1,024  file:function [program]`.
fn functions(annotated: &str) -> BTreeMap<String, f64> {
    let mut functions = BTreeMap::new();
    for line in annotated.lines() {
        let Some((count, place)) = line.trim_start().split_once("  ") else { continue };
        let Ok(count) = count.replace(',', "").parse::<f64>() else { continue };
        // callgrind's files are unknown without debug information: `???:function`
        let Some((_, function)) = place.split_once(':') else { continue };
        let function = function.rsplit_once(" [").map_or(function, |(function, _)| function);
        *functions.entry(plain(function)).or_default() += count;
    }
    functions
}

/// Without what makes a name unique and long: the compiler's hash, and how often a recursion came by.
fn plain(function: &str) -> String {
    let function = function.split('\'').next().unwrap_or(function);
    match function.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name.to_owned(),
        _ => function.to_owned(),
    }
}

/// Valgrind's version.
pub(super) fn version() -> String {
    output("valgrind", &["--version"]).trim_start_matches("valgrind-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_by_function() {
        let annotated = "\
--------------------------------------------------------------------------------
Ir
--------------------------------------------------------------------------------
1,281  PROGRAM TOTALS

--------------------------------------------------------------------------------
Ir     file:function
--------------------------------------------------------------------------------
1,024  ???:<bench::Work as core::ops::Drop>::drop::h0123456789abcdef [/target/release/deps/counts-1]
  200  ???:retry_runtime::engine::decide'2 [/target/release/deps/counts-1]
   50  ???:retry_runtime::engine::decide [/target/release/deps/counts-1]
    7  ???:0x0000000000001000 [???]
";
        let expected = [
            ("0x0000000000001000", 7.0),
            ("<bench::Work as core::ops::Drop>::drop", 1024.0),
            ("retry_runtime::engine::decide", 250.0),
        ];
        assert_eq!(functions(annotated), expected.map(|(name, count)| (name.to_owned(), count)).into());
    }
}
