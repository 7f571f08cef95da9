//! The dead-letter store beside bare SQLite: the same tables, rows and batches.

mod letters;
mod memory;
mod million;
mod raw;
mod report;
mod speed;

use std::process::ExitCode;

use crate::usage;
use report::Report;

pub(crate) use memory::child;

/// Measures the parts that the options ask for.
pub(crate) fn run(options: &[&str]) -> ExitCode {
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
