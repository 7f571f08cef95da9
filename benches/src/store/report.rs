//! Figures beside their goals.

use std::process::ExitCode;

/// What was measured, printed as it comes.
#[derive(Default)]
pub(crate) struct Report {
    measured: u32,
    missed: Vec<String>,
}

impl Report {
    /// A figure that has to be at least `goal`.
    pub(crate) fn at_least(&mut self, what: &str, found: f64, goal: f64, detail: &str) {
        self.line(what, found >= goal, &format!("{found:.2}"), &format!(">= {goal:.2}"), detail);
    }

    /// A figure that has to be at most `goal`.
    pub(crate) fn at_most(&mut self, what: &str, found: f64, goal: f64, unit: &str, detail: &str) {
        self.line(what, found <= goal, &format!("{found:.2}{unit}"), &format!("<= {goal}{unit}"), detail);
    }

    /// Something that has to be so.
    pub(crate) fn is(&mut self, what: &str, holds: bool, detail: &str) {
        self.line(what, holds, if holds { "yes" } else { "no" }, "yes", detail);
    }

    fn line(&mut self, what: &str, passed: bool, found: &str, goal: &str, detail: &str) {
        self.measured += 1;
        let word = if passed { "ok" } else { "MISSED" };
        println!("{word:<7} {what:<58} {found:>10}  (goal {goal})  {detail}");
        if !passed {
            self.missed.push(what.to_owned());
        }
    }

    pub(crate) fn finish(self) -> ExitCode {
        println!("{} goals, {} missed", self.measured, self.missed.len());
        for missed in &self.missed {
            println!("missed: {missed}");
        }
        if self.missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
