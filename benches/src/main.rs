//! What the workspace promises about speed and memory, measured beside the bare library, or a loop by hand, in the same run.
//! Ratios bind, absolute figures do not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // a bench fails by panicking

mod compile;
mod counts;
mod crowd;
#[cfg(feature = "report")]
mod page;
#[cfg(feature = "store")]
mod store;
mod table;
mod times;

use std::process::ExitCode;

const USAGE: &str = "usage: bench store|counts|times|crowd|compile|report [OPTIONS]

store: the dead-letter store beside bare SQLite: the same tables, rows and batches.
  --letters N   how many letters the large file has; 1000000 by default
  --rounds N    interleaved rounds, of which the median counts; 9 by default
  --only PART   measures this part alone: speed, million or memory

counts: retrying loops beside a loop by hand: instructions, allocations, bytes of futures. Repeats exactly.
  --check       compares first successes and futures with benches/baseline.json, and nothing else
  --update      writes benches/baseline.json, on purpose

times: the same loops by the clock.
  --rounds N    interleaved rounds, of which the median counts; 9 by default

crowd: many tasks that each fail three times: time and memory.
  --tasks N,M   how many; 100000,1000000 by default
  --rounds N    interleaved rounds, of which the median counts; 5 by default

compile: what it costs to compile with each crate, in projects of its own: the processor's seconds, and sizes. About a
  quarter of an hour on two idle cores with what is given by default, which is why that is no more.
  --functions N  how many functions and enums are compiled together; 500 by default, and a tenth of it besides
  --rounds N     interleaved rounds, of which the least counts; 2 by default
  --only PART    measures this part alone: cold, check, functions, binary or expand

report: writes docs/performance.md, its plots and the README's table from what the others left in target/bench/.
  --partial     writes what there is; without it nothing is written while something was not measured

Each prints its figures beside their goals, writes them to target/bench/, and fails where a goal is missed.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        #[cfg(feature = "store")]
        ["child", work, path] => {
            store::child(work, path.as_ref());
            ExitCode::SUCCESS
        }
        #[cfg(feature = "store")]
        ["store", options @ ..] => store::run(options),
        ["counts", options @ ..] => counts::run(options),
        ["times", options @ ..] => times::run(options),
        ["crowd-child", contender, tasks] => {
            crowd::child(contender, tasks.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["crowd", options @ ..] => crowd::run(options),
        ["compile", options @ ..] => compile::run(options),
        #[cfg(feature = "report")]
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
