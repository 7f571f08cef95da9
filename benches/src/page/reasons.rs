//! Why a goal is missed: words, which no run can find. They are printed only while a goal of theirs is missed.

use std::fmt::Write as _;

use retry_benches::figures::{Figure, Figures};

use super::Part;

/// Under each heading what stands in the way of the goals whose names begin with it.
pub(super) const WRITTEN: &str = include_str!("../../reasons.md");

/// A heading, and what it says.
fn reasons(written: &str) -> impl Iterator<Item = (&str, &str)> {
    written.split("\n## ").skip(1).filter_map(|part| part.split_once('\n')).map(|(head, text)| (head, text.trim()))
}

/// The goal of a figure, as headings call it: `check of functions, functions: check to hand's`.
fn name(figure: &Figure) -> String {
    let scenario = figure.scenario.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    format!("{}, {scenario}: {}", figure.group, figure.metric)
}

fn missed<'a>(measured: &'a [(&Part, Figures)]) -> impl Iterator<Item = &'a Figure> {
    measured.iter().flat_map(|(_, figures)| figures.missed())
}

/// What stands in the way of each goal that is missed.
pub(super) fn section(measured: &[(&Part, Figures)], written: &str) -> String {
    let mut text = String::new();
    for (head, reason) in reasons(written) {
        if missed(measured).any(|figure| name(figure).starts_with(head)) {
            write!(text, "\n### {head}\n\n{reason}\n").unwrap();
        }
    }
    if text.is_empty() { text } else { format!("\n## What stands in the way\n{text}") }
}

/// The goals that are missed and nobody says why.
pub(super) fn lacking(measured: &[(&Part, Figures)], written: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for name in missed(measured).map(name) {
        let line = format!("missed, and benches/reasons.md does not say why: {name}");
        if !reasons(written).any(|(head, _)| name.starts_with(head)) && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
