//! Instructions by callgrind, through gungraun: its own process for each case.

use std::process::{Command, Stdio};

use retry_benches::cases::{Scenario, cases};
use retry_benches::figures::{output, root};
use serde_json::Value;

/// Runs everybody in these scenarios.
pub(super) fn count(profile: &str, scenarios: &[Scenario]) -> Vec<(Scenario, &'static str, f64)> {
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
            let count = summary.and_then(instructions).unwrap_or_else(|| panic!("no {id} of {scenario:?} in\n{text}"));
            all.push((*scenario, case.contender, count));
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

/// Valgrind's version.
pub(super) fn version() -> String {
    output("valgrind", &["--version"]).trim_start_matches("valgrind-").to_owned()
}
