//! A bar on a terminal, plain lines elsewhere, both on stderr: stdout is for results.

use std::io::{IsTerminal, Write, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// How far a batch is.
pub enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// In a log: a line for each twentieth.
    Lines { total: usize, done: usize },
    /// Not wanted.
    Silent,
}

impl Progress {
    /// Of `total` jobs.
    pub fn new(total: usize, wanted: bool) -> Self {
        if !wanted {
            return Self::Silent;
        }
        if !stderr().is_terminal() {
            return Self::Lines { total, done: 0 };
        }
        let bar = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX));
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} eta {eta}") {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// One more is done; `standing` is the count so far in words.
    pub fn step(&mut self, standing: &str) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(standing.to_owned());
                bar.inc(1);
            }
            Self::Lines { total, done } => {
                *done += 1;
                if done.is_multiple_of(total.div_ceil(20)) || done == total {
                    tell(&format!("{done}/{total} {standing}"));
                }
            }
            Self::Silent => {}
        }
    }

    /// A line that stays, above the bar.
    pub fn say(&self, line: &str) {
        let line = one_line(line);
        match self {
            Self::Bar(bar) => bar.println(line),
            Self::Lines { .. } | Self::Silent => tell(&line),
        }
    }

    /// Nothing comes after.
    pub fn finish(self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// A line on stderr. A reader that has gone away must not end the batch.
pub fn tell(line: &str) {
    let _gone = writeln!(stderr(), "{line}");
}

/// Text of others - job ids, servers' words - without what moves a terminal's cursor.
pub fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
