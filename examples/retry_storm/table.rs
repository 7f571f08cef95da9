//! The numbers, as Markdown.

use std::fmt::Write;

use crate::Compared;
use crate::simulation::outage::{Outcome, SECONDS, TROUBLE};
use crate::simulation::{contention, layers, mean};

pub(crate) fn contention(seed: u64) -> String {
    let mut rows = Rows::head(
        "| waits | write calls | published | seconds until all are done | published |\n|---|--:|--:|--:|--:|",
    );
    for way in contention::WAYS {
        let found = contention::contend(&way.policy, contention::CLIENTS, seed);
        rows.add(format_args!(
            "| {} | {:.0} | {:.0} | {:.1} | {:.1} |",
            way.name, found.calls, way.known_calls, found.seconds, way.known_seconds
        ));
    }
    rows.0
}

pub(crate) fn layers(seed: u64) -> String {
    let mut rows = Rows::head("| calls that fail | without budgets | a default budget in each layer |\n|--:|--:|--:|");
    for failing in [1.0, 0.9, 0.5, 0.1] {
        let calls = |budgets| layers::amplification(failing, budgets, seed);
        rows.add(format_args!("| {:.0} % | {:.2} | {:.2} |", failing * 100.0, calls(false), calls(true)));
    }
    rows.0
}

pub(crate) fn outage(compared: &[Compared]) -> String {
    let mut rows = Rows::head(
        "| retries | attempts per request | at the peak | answered, all is well | answered, whole run | well again after |\n|---|--:|--:|--:|--:|--:|",
    );
    for (strategy, runs) in compared {
        let mean = |of: fn(&Outcome) -> f64| mean(runs.iter().map(of));
        rows.add(format_args!(
            "| {} | {:.2} | {:.1} | {:.1} % | {:.1} % | {} |",
            strategy.name,
            mean(Outcome::amplification),
            mean(Outcome::peak),
            mean(Outcome::success_before) * 100.0,
            mean(Outcome::success) * 100.0,
            recovery(runs)
        ));
    }
    rows.0
}

/// The mean of the runs that recovered, and how many did not.
fn recovery(runs: &[Outcome]) -> String {
    let recovered: Vec<f64> = runs.iter().filter_map(Outcome::recovered_after).collect();
    let never = runs.len() - recovered.len();
    if recovered.is_empty() {
        format!("not in {} s", SECONDS - TROUBLE.end)
    } else if never == 0 {
        format!("{:.1} s", mean(recovered))
    } else {
        format!("{:.1} s, not in {never} of {} runs", mean(recovered), runs.len())
    }
}

struct Rows(String);

impl Rows {
    fn head(head: &str) -> Self {
        Self(format!("{head}\n"))
    }

    fn add(&mut self, row: std::fmt::Arguments<'_>) {
        // writing to a string does not fail
        let _infallible = writeln!(self.0, "{row}");
    }
}
