//! What repeats exactly: instructions, allocations, bytes of futures.

mod baseline;
mod callgrind;

use std::process::ExitCode;

use retry_benches::cases::{Scenario, cases};
use retry_benches::figures::{Figure, Figures};
use retry_benches::loops::contenders;

use crate::{table, usage};
use callgrind::Counted;

/// How many functions of a profile are told of: the rest is a handful of instructions.
const PROFILED: usize = 12;

/// What the loops are written with.
pub(crate) const CRATES: [&str; 10] = [
    "backoff",
    "backon",
    "backon-macros",
    "relentless",
    "retry-runtime",
    "tokio",
    "tokio-retry",
    "tokio-retry2",
    "tower",
    "tryhard",
];

pub(crate) fn run(options: &[&str]) -> ExitCode {
    match options {
        ["--check"] => baseline::check(),
        ["--update"] => baseline::update(),
        [] => measure(),
        other => usage(other),
    }
}

fn measure() -> ExitCode {
    let mut figures = Figures::new("./bench counts", &CRATES);
    figures.versions.insert("valgrind".to_owned(), callgrind::version());
    for (profile, metric) in [("release", "instructions"), ("thin-lto", "instructions, thin LTO")] {
        let all = callgrind::count(profile, &Scenario::ALL);
        for Counted { scenario, contender, instructions, .. } in &all {
            let of = |name: &str| {
                let same = all.iter().find(|other| other.scenario == *scenario && other.contender == name);
                same.map_or(f64::NAN, |same| same.instructions)
            };
            let figure = Figure::new("counts", scenario.name(), contender, metric, "instructions", *instructions);
            figures.push(with_goal(figure, *scenario, contender, of));
        }
        if profile == "release" {
            profiles(&all, &mut figures);
        }
    }
    allocations(&mut figures);
    futures(&mut figures);
    table::finish(figures, "counts")
}

/// Where the instructions are: of the loop by hand, and of ours.
fn profiles(all: &[Counted], figures: &mut Figures) {
    for counted in all.iter().filter(|counted| matches!(counted.contender, "hand" | "ours" | "ours + context")) {
        let mut functions: Vec<_> = counted.profile().into_iter().collect();
        functions.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let group = format!("profile, {}", counted.scenario.name());
        for (function, count) in functions.into_iter().take(PROFILED) {
            figures.push(Figure::new(&group, counted.contender, &format!("`{function}`"), "instructions", "", count));
        }
    }
}

/// Who has to be as cheap as is promised: the macros. The builder is told of, and promises nothing.
fn is_promised(contender: &str) -> bool {
    matches!(contender, "ours" | "ours, retrying!")
}

fn with_goal(figure: Figure, scenario: Scenario, contender: &str, of: impl Fn(&str) -> f64) -> Figure {
    let (hand, block) = (of("hand"), of("hand in a block"));
    match (scenario, contender) {
        (Scenario::FirstAsync, "ours + jitter") => figure.at_most(block + 15.0, "hand in a block + 15"),
        // with a history, which hand has not
        (Scenario::ThirdAsync, "ours + context") if of("backon-macros").is_finite() => {
            figure.at_most(1.3 * of("backon-macros"), "1.3 x backon-macros")
        }
        (scenario, contender) if is_promised(contender) => match scenario {
            Scenario::FirstAsync => figure.at_most(block + 15.0, "hand in a block + 15"),
            Scenario::FirstBlocking => figure.at_most(hand + 8.0, "hand + 8"),
            Scenario::ThirdAsync => figure.at_most(2.2 * hand, "2.2 x hand"),
            Scenario::ThirdBlocking => figure.at_most(2.0 * hand, "2 x hand"),
            Scenario::ThirdTokio => figure.at_most(1.05 * hand, "1.05 x hand"),
            Scenario::NeverAsync | Scenario::NeverBlocking => figure,
        },
        _ => figure,
    }
}

fn allocations(figures: &mut Figures) {
    for scenario in Scenario::ALL {
        for case in cases(scenario) {
            let case = case.warmed();
            let counted = allocation_counter::measure(|| {
                let _ = std::hint::black_box(case.run());
            });
            let count = f64::from(u32::try_from(counted.count_total).unwrap());
            let figure = Figure::new("allocations", scenario.name(), case.contender, "allocations", "", count);
            figures.push(match (scenario, case.contender) {
                // tokio's own timer is no matter of ours
                (Scenario::ThirdTokio, _) => figure,
                (Scenario::ThirdAsync | Scenario::ThirdBlocking, "ours + context") => figure.at_most(1.0, ""),
                (_, "ours" | "ours, retrying!" | "ours + jitter")
                | (Scenario::FirstAsync | Scenario::FirstBlocking, "ours + budget") => figure.at_most(0.0, ""),
                _ => figure,
            });
        }
    }
}

fn futures(figures: &mut Figures) {
    let mut hand = f64::NAN;
    for (contender, size) in sizes() {
        if contender == "hand" {
            hand = size;
        }
        let figure = Figure::new("futures", "on tokio", contender, "size", "bytes", size);
        figures.push(if is_promised(contender) { figure.at_most(hand + 16.0, "hand + 16") } else { figure });
    }
}

/// Bytes of everybody's future, the hand's first.
fn sizes() -> impl Iterator<Item = (&'static str, f64)> {
    contenders().into_iter().filter_map(|contender| {
        let size = (contender.on_tokio?.size)();
        Some((contender.name, f64::from(u32::try_from(size).unwrap())))
    })
}
