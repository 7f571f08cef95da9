//! The same loops by the clock. Divan measures everybody once in each round, so that a busy machine slows all; the ratios of
//! one round are what is compared.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};

use retry_benches::cases::{Scenario, cases};
use retry_benches::figures::{Figure, Figures, root};

use crate::counts::CRATES;
use crate::table::median;
use crate::{table, usage};

pub(crate) fn run(options: &[&str]) -> ExitCode {
    let mut rounds = 9_usize;
    for option in options.chunks(2) {
        let read = match option {
            ["--rounds", n] => n.parse().map(|n| rounds = n).is_ok() && rounds >= 1,
            _ => false,
        };
        if !read {
            return usage(option);
        }
    }
    let mut figures = Figures::new("./bench times", &CRATES);
    let all: Vec<_> = (0..rounds).map(|_| round()).collect();
    for scenario in Scenario::ALL {
        let nanos = |contender: &str| -> Vec<f64> {
            all.iter().map(|round| round[&(scenario.function().to_owned(), contender.to_owned())]).collect()
        };
        let hand = nanos("hand");
        let names: Vec<_> = cases(scenario).iter().map(|case| case.contender).collect();
        for name in &names {
            let time = median(nanos(name));
            figures.push(Figure::new("times", scenario.name(), name, "time", "ns", time));
        }
        for name in names {
            let ratios = nanos(name).iter().zip(&hand).map(|(this, hand)| this / hand).collect();
            let figure = Figure::new("times", scenario.name(), name, "time to hand's", "x", median(ratios));
            let promised = matches!(name, "ours" | "ours, retrying!");
            figures.push(if promised && scenario == Scenario::FirstAsync { figure.at_most(1.2, "") } else { figure });
        }
    }
    table::finish(figures, "times")
}

/// Everybody once: nanoseconds by scenario and contender.
fn round() -> BTreeMap<(String, String), f64> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["bench", "--quiet", "--package", "retry-benches", "--bench", "times"]);
    cargo.args(["--no-default-features"]);
    if cfg!(feature = "peers") {
        cargo.args(["--features", "peers"]);
    }
    let run = cargo.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}");
    read(&text)
}

/// Divan's tree: a line for the scenario, and below it one for each contender with its median in the third column.
fn read(text: &str) -> BTreeMap<(String, String), f64> {
    let (mut found, mut scenario) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        let name = line.trim_start_matches(|char: char| " ╰├─│".contains(char));
        let columns: Vec<&str> = name.split('│').map(str::trim).collect();
        let is_scenario =
            Scenario::ALL.iter().find(|scenario| name.split_whitespace().next() == Some(scenario.function()));
        if let Some(is) = is_scenario {
            is.function().clone_into(&mut scenario);
        } else if let Some(nanos) = columns.get(2).and_then(|time| nanos(time)) {
            // the fastest stands in the same column as the name, two spaces off or more
            let contender = columns[0].split("  ").next().unwrap_or_default().trim();
            found.insert((scenario.clone(), contender.to_owned()), nanos);
        }
    }
    found
}

/// `3.96 ns`, `1.2 µs`.
fn nanos(time: &str) -> Option<f64> {
    let (number, unit) = time.split_once(' ')?;
    let unit = match unit {
        "ps" => 1e-3,
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divans_tree_is_read() {
        let text = "\
times              fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ first_async                   │               │               │               │         │
│  ├─ hand         3.945 ns      │ 5.211 ns      │ 3.961 ns      │ 4.052 ns      │ 100     │ 204800
│  ╰─ ours, retrying!  4.1 ns    │ 5.2 ns        │ 1.5 µs        │ 4.1 ns        │ 100     │ 204800
╰─ third_tokio                   │               │               │               │         │
   ╰─ hand         3.945 ns      │ 5.211 ns      │ 2 ns          │ 4.052 ns      │ 100     │ 204800
";
        let of = |scenario: &str, contender: &str| read(text)[&(scenario.to_owned(), contender.to_owned())];
        assert!((of("first_async", "hand") - 3.961).abs() < 1e-9);
        assert!((of("first_async", "ours, retrying!") - 1500.0).abs() < 1e-9);
        assert!((of("third_tokio", "hand") - 2.0).abs() < 1e-9);
        assert_eq!(read(text).len(), 3);
    }
}
