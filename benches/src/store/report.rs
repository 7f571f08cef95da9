//! Figures beside their goals: printed as they come, and written down for the page.

use std::process::ExitCode;

use retry_benches::figures::{Figure, Figures, short};

/// What the store's figures depend on.
const CRATES: [&str; 3] = ["libsqlite3-sys", "rusqlite", "tokio"];

/// The figures of one part.
pub(crate) struct Report {
    figures: Figures,
    /// What the part is measured on: `1000000 letters`.
    scenario: String,
    /// What is measured, and its unit.
    metric: (&'static str, &'static str),
}

impl Report {
    /// No figures yet of what `./bench store --only PART` measures.
    pub(crate) fn new(part: &str, scenario: &str, metric: (&'static str, &'static str)) -> Self {
        println!("{part}: {scenario}, {}", metric.0);
        Self {
            figures: Figures::new(&format!("./bench store --only {part}"), &CRATES),
            scenario: scenario.to_owned(),
            metric,
        }
    }

    /// A figure that has to be at least `goal`; `why` is what the goal is made of.
    pub(crate) fn at_least(&mut self, what: &str, found: f64, (goal, why): (f64, &str), detail: &str) {
        let figure = self.figure(what, self.metric, found).at_least(goal, why);
        self.line(figure, detail);
    }

    /// A figure that has to be at most `goal`.
    pub(crate) fn at_most(&mut self, what: &str, found: f64, goal: f64, detail: &str) {
        let figure = self.figure(what, self.metric, found).at_most(goal, "");
        self.line(figure, detail);
    }

    /// Something that has to be so: 1, where it is.
    pub(crate) fn is(&mut self, what: &str, holds: bool, detail: &str) {
        let figure = self.figure(what, ("holds", ""), f64::from(u8::from(holds))).at_least(1.0, "");
        self.line(figure, detail);
    }

    /// A figure that nothing is promised of.
    pub(crate) fn beside(&mut self, what: &str, metric: &str, found: f64) {
        let figure = self.figure(what, (metric, ""), found);
        self.figures.push(figure);
    }

    fn figure(&self, what: &str, (metric, unit): (&str, &str), found: f64) -> Figure {
        Figure::new("store", &self.scenario, what, metric, unit, found)
    }

    fn line(&mut self, figure: Figure, detail: &str) {
        let word = if figure.ok == Some(false) { "MISSED" } else { "ok" };
        let found = format!("{} {}", short(figure.value), figure.unit);
        let goal = figure.goal.as_deref().unwrap_or_default();
        println!("{word:<7} {:<50} {found:>12}  (goal {goal})  {detail}", figure.contender);
        self.figures.push(figure);
    }

    /// Writes the figures down as `NAME.json` and says whether every goal is reached.
    pub(crate) fn finish(mut self, name: &str) -> ExitCode {
        let path = self.figures.write(name);
        let missed = self.figures.missed().count();
        println!("{missed} goals missed; written: {}", path.display());
        if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
