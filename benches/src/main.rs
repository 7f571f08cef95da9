//! What the workspace promises about speed and memory, measured beside the bare library in the same run. Ratios bind,
//! absolute figures of writing do not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // a bench fails by panicking

mod compile;
mod letters;
mod memory;
mod million;
mod page;
mod raw;
mod report;
mod speed;
mod table;

use std::process::ExitCode;

use report::Report;

const USAGE: &str = "usage: bench store|compile|report [OPTIONS]

store: the dead-letter store beside bare SQLite: the same tables, rows and batches.
  --letters N   how many letters the large file has; 1000000 by default
  --rounds N    interleaved rounds, of which the median counts; 9 by default
  --only PART   measures this part alone: speed, million or memory

compile: what it costs to compile with each crate, in projects of its own: the processor's seconds, and sizes.
  --functions N  how many functions and enums are compiled together; 1000 by default, and a tenth of it besides
  --rounds N     interleaved rounds, of which the least counts; 3 by default
  --only PART    measures this part alone: cold, check, functions, binary or expand

report: writes docs/performance.md, its plots and the README's table from what the others left in target/bench/.
  --partial     writes what there is; without it nothing is written while something was not measured

Each prints its figures beside their goals, writes them to target/bench/, and fails where a goal is missed.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["child", work, path] => {
            memory::child(work, path.as_ref());
            ExitCode::SUCCESS
        }
        ["store", options @ ..] => store(options),
        ["compile", options @ ..] => compile::run(options),
        ["report", options @ ..] => page::run(options),
        _ => usage(&[]),
    }
}

/// Says what is understood, and what was not.
fn usage(option: &[&str]) -> ExitCode {
    if !option.is_empty() {
        eprintln!("cannot read `{}`", option.join(" "));
    }
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn store(options: &[&str]) -> ExitCode {
    let (mut letters, mut rounds, mut only) = (1_000_000_u32, 9_usize, None);
    for option in options.chunks(2) {
        let read = match option {
            ["--letters", n] => n.parse().map(|n| letters = n).is_ok() && letters >= 1_000,
            ["--rounds", n] => n.parse().map(|n| rounds = n).is_ok() && rounds >= 1,
            ["--only", part @ ("speed" | "million" | "memory")] => only.replace(*part).is_none(),
            _ => false,
        };
        if !read {
            return usage(option);
        }
    }
    let measures = |part: &str| only.is_none_or(|only| only == part);
    let directory = tempfile::tempdir().unwrap();
    let mut report = Report::default();
    if measures("speed") {
        speed::measure(directory.path(), rounds, &mut report);
    }
    if measures("million") || measures("memory") {
        let path = directory.path().join("large.db");
        letters::fill(&path, letters);
        if measures("million") {
            million::measure(&path, letters, &mut report);
        }
        if measures("memory") {
            memory::measure(&path, letters, &mut report);
        }
    }
    report.finish()
}
