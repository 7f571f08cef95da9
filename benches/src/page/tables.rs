//! The page's tables.

use std::fmt::Write as _;

use retry_benches::figures::{Figure, Figures, short};

use super::{Looked, Part};

/// What the README's table has a row for.
pub(super) const QUOTED: [(&str, Looked); 7] = [
    (
        "instructions, first success, async",
        Looked { file: "counts", group: "counts", scenario: "first success, async", metric: "instructions" },
    ),
    (
        "instructions, first success, blocking",
        Looked { file: "counts", group: "counts", scenario: "first success, blocking", metric: "instructions" },
    ),
    (
        "instructions, third attempt, async, no wait",
        Looked { file: "counts", group: "counts", scenario: "third attempt, async", metric: "instructions" },
    ),
    ("bytes of the future", Looked { file: "counts", group: "futures", scenario: "on tokio", metric: "size" }),
    (
        "first build, with tokio, seconds of CPU",
        Looked {
            file: "compile-cold",
            group: "cold build",
            scenario: "a program and its dependencies, dev profile",
            metric: "CPU",
        },
    ),
    (
        "`cargo check` of a function, ms of CPU",
        Looked { file: "compile-check", group: "check of functions", scenario: "N functions", metric: "check" },
    ),
    (
        "release program with one call, bytes over the loop by hand",
        Looked {
            file: "compile-binary",
            group: "release binary",
            scenario: "a program with a retried call",
            metric: "text over hand's",
        },
    ),
];

/// Whom the README compares with.
const COLUMNS: [&str; 7] = ["hand", "ours", "backon", "backon-macros", "tokio-retry", "tokio-retry2", "tower"];

/// The README's table: rows whose figures are there.
pub(super) fn quoted(measured: &[(&Part, Figures)]) -> String {
    let mut table = row("", COLUMNS.iter().map(|who| emphasised(who)));
    writeln!(table, "|---|{}", "--:|".repeat(COLUMNS.len())).unwrap();
    for (label, figure) in &QUOTED {
        let Some((_, figures)) = measured.iter().find(|(part, _)| part.file == figure.file) else { continue };
        let all = figure.all(figures);
        if all.is_empty() {
            continue;
        }
        let cell =
            |who: &&str| all.iter().find(|(name, _)| name == who).map_or("-".to_owned(), |(_, value)| few(*value));
        table += &row(label, COLUMNS.iter().map(cell));
    }
    table
}

/// Every goal, those that are missed first.
pub(super) fn goals(measured: &[(&Part, Figures)]) -> String {
    let all: Vec<&Figure> =
        measured.iter().flat_map(|(_, figures)| &figures.figures).filter(|figure| figure.goal.is_some()).collect();
    let missed = all.iter().filter(|figure| figure.ok == Some(false)).count();
    let mut text =
        format!("{} goals, {missed} missed.\n\n| what | who | found | goal | |\n|---|---|--:|---|---|\n", all.len());
    for ok in [false, true] {
        for figure in all.iter().filter(|figure| (figure.ok == Some(true)) == ok) {
            let what = format!("{}, {}: {}", figure.group, figure.scenario, figure.metric);
            let goal = figure.goal.as_deref().unwrap_or_default();
            let word = if ok { "ok" } else { "**missed**" };
            writeln!(text, "| {what} | {} | {} | {goal} | {word} |", figure.contender, with_unit(figure)).unwrap();
        }
    }
    text
}

/// When, where and with what.
pub(super) fn measured_on(figures: &Figures) -> String {
    let machine = &figures.machine;
    let versions: Vec<String> = figures.versions.iter().map(|(name, version)| versioned(name, version)).collect();
    // whoever reads a figure of a busy machine has to know
    let busy = if machine.load > f64::from(machine.cores) { ": **others were busy, measure again**" } else { "" };
    format!(
        "`{}` on {}: {}, {} cores, {}, load {}{busy}. {}.\n",
        figures.command,
        figures.day,
        machine.cpu,
        machine.cores,
        machine.system,
        machine.load,
        versions.join(", ")
    )
}

/// A program that tells its version tells its name too.
fn versioned(name: &str, version: &str) -> String {
    if version.starts_with(name) { version.to_owned() } else { format!("{name} {version}") }
}

/// A table for each thing that was done: a row for each who did it, a column for each that was counted.
pub(super) fn tables(figures: &Figures) -> String {
    let mut text = String::new();
    for (group, scenario) in once(figures.figures.iter().map(|figure| (&*figure.group, &*figure.scenario))) {
        let of: Vec<&Figure> =
            figures.figures.iter().filter(|figure| (&*figure.group, &*figure.scenario) == (group, scenario)).collect();
        write!(text, "\n### {group}: {scenario}\n\n{}", table(&of)).unwrap();
    }
    text
}

fn table(figures: &[&Figure]) -> String {
    let metrics = once(figures.iter().map(|figure| (&*figure.metric, &*figure.unit)));
    let heads = metrics.iter().map(|(metric, unit)| match *unit {
        "" | "x" => (*metric).to_owned(),
        unit if metric == &unit => unit.to_owned(),
        unit => format!("{metric}, {unit}"),
    });
    let mut text = row("", heads);
    writeln!(text, "|---|{}", "--:|".repeat(metrics.len())).unwrap();
    for who in once(figures.iter().map(|figure| &*figure.contender)) {
        let cells = metrics.iter().map(|(metric, unit)| cell(figures, who, metric, unit));
        text += &row(&emphasised(who), cells);
    }
    text
}

/// A value, its ratio to the loop by hand where that is no figure of its own, its goal.
fn cell(figures: &[&Figure], who: &str, metric: &str, unit: &str) -> String {
    let of = |who: &str| figures.iter().find(|figure| figure.contender == who && figure.metric == metric);
    let Some(figure) = of(who) else { return "-".to_owned() };
    let mut text = short(figure.value);
    let has_ratio = figures.iter().any(|other| other.unit == "x" && other.metric.starts_with(metric));
    let hand = of("hand").map_or(0.0, |hand| hand.value);
    if who != "hand" && !matches!(unit, "x" | "") && !has_ratio && hand > 0.0 {
        write!(text, " ({}x)", short(figure.value / hand)).unwrap();
    }
    match (&figure.goal, figure.ok) {
        (Some(goal), Some(false)) => text + &format!(", **missed**, goal {goal}"),
        (Some(goal), _) => text + &format!(", goal {goal}"),
        (None, _) => text,
    }
}

fn with_unit(figure: &Figure) -> String {
    match &*figure.unit {
        "" => short(figure.value),
        "x" => short(figure.value) + "x",
        unit => format!("{} {unit}", short(figure.value)),
    }
}

/// As exact as a reader needs.
fn few(value: f64) -> String {
    let text = format!("{value:.1}");
    if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    }
}

fn emphasised(who: &str) -> String {
    if who.starts_with("ours") { format!("**{who}**") } else { who.to_owned() }
}

fn row(head: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {head} | {} |\n", cells.join(" | "))
}

/// Each once, in the order of their first.
fn once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}
