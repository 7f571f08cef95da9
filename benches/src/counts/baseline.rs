//! What a first success and a future cost when somebody last looked: `benches/baseline.json`, changed on purpose only.
//!
//! Compared is what we cost over the loop by hand in the same run: another compiler, valgrind or processor moves both.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use retry_benches::cases::Scenario;
use retry_benches::figures::root;
use serde::{Deserialize, Serialize};

use super::callgrind::{self, Counted};
use super::sizes;

/// How much worse a first success may get, of all its instructions.
const WORSE: f64 = 0.05;
const UPDATE: &str = "if that is meant: `./bench counts --update`, and commit benches/baseline.json with its cause";

/// By scenario and contender.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Baseline {
    first_success: BTreeMap<String, BTreeMap<String, Cost>>,
    /// Bytes more than the future of the loop by hand.
    future_bytes_over_hand: BTreeMap<String, i64>,
}

/// Of a first success.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cost {
    instructions: i64,
    over_hand: i64,
}

fn place() -> PathBuf {
    root().join("benches/baseline.json")
}

pub(super) fn update() -> ExitCode {
    let text = serde_json::to_string_pretty(&Baseline::measured()).unwrap();
    std::fs::write(place(), text + "\n").unwrap();
    println!("{}", place().display());
    ExitCode::SUCCESS
}

pub(super) fn check() -> ExitCode {
    let text = std::fs::read_to_string(place()).unwrap();
    let (old, new) = (serde_json::from_str::<Baseline>(&text).unwrap(), Baseline::measured());
    let (told, worse) = compare(&old, &new);
    for line in told {
        println!("{line}");
    }
    if worse.is_empty() {
        return ExitCode::SUCCESS;
    }
    for line in worse {
        eprintln!("{line}");
    }
    eprintln!("{UPDATE}");
    ExitCode::FAILURE
}

impl Baseline {
    fn measured() -> Self {
        let mut new = Self { first_success: BTreeMap::new(), future_bytes_over_hand: BTreeMap::new() };
        let mut hand = 0;
        for Counted { scenario, contender, instructions, .. } in
            callgrind::count("release", &[Scenario::FirstAsync, Scenario::FirstBlocking])
        {
            if let Some(over_hand) = over(&mut hand, contender, instructions) {
                let costs = new.first_success.entry(scenario.name().to_owned()).or_default();
                costs.insert(contender.to_owned(), Cost { instructions: hand + over_hand, over_hand });
            }
        }
        for (contender, size) in sizes() {
            if let Some(over_hand) = over(&mut hand, contender, size) {
                new.future_bytes_over_hand.insert(contender.to_owned(), over_hand);
            }
        }
        new
    }
}

/// What ours costs over the loop by hand, which comes first; nothing of others.
#[allow(clippy::cast_possible_truncation)] // whole numbers far below 2^53
fn over(hand: &mut i64, contender: &str, cost: f64) -> Option<i64> {
    if contender == "hand" {
        *hand = cost as i64;
    }
    contender.starts_with("ours").then(|| cost as i64 - *hand)
}

/// What there is to tell, and what got worse.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // the same
fn compare(old: &Baseline, new: &Baseline) -> (Vec<String>, Vec<String>) {
    let (mut told, mut worse) = (Vec::new(), Vec::new());
    for (scenario, costs) in &old.first_success {
        for (contender, old) in costs {
            let Some(new) = new.first_success.get(scenario).and_then(|costs| costs.get(contender)) else {
                worse.push(format!("{scenario}, {contender}: is in benches/baseline.json and was not measured"));
                continue;
            };
            let allowed = old.over_hand + (old.instructions as f64 * WORSE) as i64;
            let line = format!(
                "{scenario}, {contender}: {} instructions, {:+} over the loop by hand; the baseline has {:+}",
                new.instructions, new.over_hand, old.over_hand
            );
            told.push(line.clone());
            if new.over_hand > allowed {
                let percent = (new.over_hand - old.over_hand) as f64 / old.instructions as f64 * 100.0;
                worse.push(format!("{line}: {percent:.1} % worse, {:.0} % are allowed", WORSE * 100.0));
            }
        }
    }
    for (contender, old) in &old.future_bytes_over_hand {
        let Some(new) = new.future_bytes_over_hand.get(contender) else {
            worse.push(format!("the future of {contender}: is in benches/baseline.json and was not measured"));
            continue;
        };
        let line = format!("the future of {contender}: {new:+} bytes over the loop by hand; the baseline has {old:+}");
        told.push(line.clone());
        if new > old {
            worse.push(format!("{line}: no growth is allowed"));
        }
    }
    for (scenario, costs) in &new.first_success {
        for contender in costs
            .keys()
            .filter(|contender| !old.first_success.get(scenario).is_some_and(|old| old.contains_key(*contender)))
        {
            worse.push(format!("{scenario}, {contender}: is not in benches/baseline.json"));
        }
    }
    (told, worse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(instructions: i64, over_hand: i64, bytes: i64) -> Baseline {
        let costs = BTreeMap::from([("ours".to_owned(), Cost { instructions, over_hand })]);
        Baseline {
            first_success: BTreeMap::from([("first success, async".to_owned(), costs)]),
            future_bytes_over_hand: BTreeMap::from([("ours".to_owned(), bytes)]),
        }
    }

    #[test]
    fn five_percent_more_are_allowed_and_no_byte() {
        let old = baseline(60, 10, 8);
        let worse = |new: &Baseline| compare(&old, new).1;
        assert_eq!(worse(&old), [""; 0]);
        assert_eq!(worse(&baseline(63, 13, 8)), [""; 0]);
        assert_eq!(worse(&baseline(50, 0, 0)), [""; 0], "better is no fault");
        // another compiler made the loop by hand longer, and ours with it
        assert_eq!(worse(&baseline(90, 12, 8)), [""; 0]);
        let line = worse(&baseline(64, 14, 8)).concat();
        assert!(line.contains("64 instructions, +14 over") && line.contains("6.7 % worse, 5 % are allowed"), "{line}");
        let line = worse(&baseline(60, 10, 9)).concat();
        assert!(line.contains("+9 bytes over the loop by hand; the baseline has +8"), "{line}");
    }

    #[test]
    fn what_is_missing_is_no_success() {
        let nothing = Baseline { first_success: BTreeMap::new(), future_bytes_over_hand: BTreeMap::new() };
        let old = baseline(60, 10, 8);
        assert_eq!(compare(&old, &nothing).1.len(), 2);
        assert_eq!(compare(&nothing, &old).1.len(), 1);
    }
}
