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
    let mut ends = Vec::new();
    if measures("speed") {
        let mut report = Report::new("speed", "beside the bare library", ("its time to the store's", "x"));
        speed::measure(directory.path(), rounds, &mut report);
        ends.push(report.finish("store-speed"));
    }
    if measures("million") || measures("memory") {
        let path = directory.path().join("large.db");
        letters::fill(&path, letters);
        let scenario = format!("{letters} letters");
        if measures("million") {
            let mut report = Report::new("million", &scenario, ("time", "ms"));
            million::measure(&path, letters, &mut report);
            ends.push(report.finish("store-million"));
        }
        if measures("memory") {
            let mut report = Report::new("memory", &scenario, ("memory at its peak", "MiB"));
            memory::measure(&path, letters, &mut report);
            ends.push(report.finish("store-memory"));
        }
    }
    ends.into_iter().find(|end| *end != ExitCode::SUCCESS).unwrap_or(ExitCode::SUCCESS)
}
