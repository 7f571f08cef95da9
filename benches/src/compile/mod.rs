//! What it costs to compile: everybody's projects, built by cargo as a user builds them. Counted is the processor's time of
//! cargo and its compilers, which other work on the machine disturbs least; of some rounds the least counts.

mod binary;
mod check;
mod cold;
mod contenders;
mod enums;
mod expansion;
mod functions;
mod peers;
mod project;

use std::process::ExitCode;

use retry_benches::figures::{Figure, Figures};

use crate::{table, usage};

/// How much is done.
#[derive(Clone, Copy)]
struct Extent {
    functions: u32,
    rounds: u32,
}

/// A part: its name, and what measures it.
type Part = (&'static str, fn(Extent, &mut Figures));

const PARTS: [Part; 5] = [
    ("cold", cold::measure),
    ("check", check::measure),
    ("functions", functions::measure),
    ("binary", binary::measure),
    ("expand", expansion::measure),
];

const CRATES: [&str; 18] = [
    "async-trait",
    "backoff",
    "backon",
    "backon-macros",
    "rand",
    "relentless",
    "retry-runtime",
    "serde",
    "serde_json",
    "syn",
    "thiserror",
    "tokio",
    "tokio-retry",
    "tokio-retry2",
    "tower",
    "tracing",
    "tracing-attributes",
    "tryhard",
];

pub(crate) fn run(options: &[&str]) -> ExitCode {
    let (mut extent, mut only) = (Extent { functions: 500, rounds: 2 }, None);
    for option in options.chunks(2) {
        let read = match option {
            ["--functions", n] => n.parse().map(|n| extent.functions = n).is_ok() && extent.functions >= 10,
            ["--rounds", n] => n.parse().map(|n| extent.rounds = n).is_ok() && extent.rounds >= 1,
            ["--only", part] if PARTS.iter().any(|(name, _)| name == part) => only.replace(*part).is_none(),
            _ => false,
        };
        if !read {
            return usage(option);
        }
    }
    let mut missed = false;
    for (name, measure) in PARTS.into_iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        eprintln!("{name}");
        let Extent { functions, rounds } = extent;
        let command = format!("./bench compile --only {name} --functions {functions} --rounds {rounds}");
        let mut figures = Figures::new(&command, &CRATES);
        measure(extent, &mut figures);
        if !figures.figures.is_empty() {
            missed |= figures.missed().count() > 0;
            table::finish(figures, &format!("compile-{name}"));
        }
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A place in the report's tables.
#[derive(Clone, Copy)]
struct Place<'a> {
    group: &'a str,
    scenario: &'a str,
}

/// What was counted, and in what.
#[derive(Clone, Copy)]
struct Counted<'a> {
    metric: &'a str,
    unit: &'a str,
}

impl Place<'_> {
    fn figure(self, who: &str, counted: Counted<'_>, value: f64) -> Figure {
        // more than that is noise
        let value = (value * 10_000.0).round() / 10_000.0;
        Figure::new(self.group, self.scenario, who, counted.metric, counted.unit, value)
    }
}

/// What everybody took, and how that compares to `yardstick`'s; those with a bound have to be at most so much of it.
fn compared(
    figures: &mut Figures,
    place: Place<'_>,
    counted: Counted<'_>,
    all: &[(&'static str, f64)],
    (yardstick, bounds): (&str, &[Bound<'_>]),
) {
    for (name, value) in all {
        figures.push(place.figure(name, counted, *value));
    }
    let base = all.iter().find(|(name, _)| *name == yardstick).map_or(f64::NAN, |(_, value)| *value);
    let metric = format!("{} to {yardstick}'s", counted.metric);
    for (name, value) in all.iter().filter(|(name, _)| *name != yardstick) {
        let ratio = place.figure(name, Counted { metric: &metric, unit: "x" }, value / base);
        figures.push(match bounds.iter().find(|(who, _, _)| who == name) {
            Some((_, bound, why)) => ratio.at_most(*bound, why),
            None => ratio,
        });
    }
}

/// Who has to be at most how much, and what that is made of.
type Bound<'a> = (&'a str, f64, &'a str);

/// The least of each over the rounds. In each round everybody has a turn.
fn least<T>(rounds: u32, all: &[(&'static str, T)], mut turn: impl FnMut(&T, u32) -> f64) -> Vec<(&'static str, f64)> {
    let mut least: Vec<(&'static str, f64)> = all.iter().map(|(name, _)| (*name, f64::INFINITY)).collect();
    for round in 1..=rounds {
        for ((name, what), (_, least)) in all.iter().zip(&mut least) {
            let seconds = turn(what, round);
            eprintln!("  round {round}: {name}: {seconds:.2} s of CPU");
            *least = least.min(seconds);
        }
    }
    least
}

/// What each took more than the first one, for each of `count`, in thousandths.
fn added(all: &[(&'static str, f64)], count: u32) -> Vec<(&'static str, f64)> {
    let plain = all[0].1;
    all[1..].iter().map(|(name, seconds)| (*name, (seconds - plain) * 1_000.0 / f64::from(count))).collect()
}
