//! Figures as a reader sees them, and whether their goals are met.

use std::process::ExitCode;

use retry_benches::figures::{Figures, short};

/// Prints all figures, writes their file, and says what was missed.
pub(crate) fn finish(mut figures: Figures, name: &str) -> ExitCode {
    let mut heading = String::new();
    for figure in &figures.figures {
        let next = format!("{}: {}, {}", figure.group, figure.scenario, figure.metric);
        if next != heading {
            println!("\n{next}");
            heading = next;
        }
        let word = match figure.ok {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        };
        let value = format!("{} {}", short(figure.value), figure.unit);
        let goal = figure.goal.as_deref().map(|goal| format!("goal {goal}")).unwrap_or_default();
        println!("{}", format!("{word:<7} {:<20} {value:>22}  {goal}", figure.contender).trim_end());
    }
    let path = figures.write(name);
    let goals = figures.figures.iter().filter(|figure| figure.ok.is_some()).count();
    let missed = figures.missed().count();
    println!("\n{goals} goals, {missed} missed; load {:.1} on {} cores", figures.machine.load, figures.machine.cores);
    for figure in figures.missed() {
        let value = format!("{} {}", short(figure.value), figure.unit);
        let goal = figure.goal.as_deref().unwrap_or_default();
        println!("missed: {}, {}, {}: {value}, goal {goal}", figure.scenario, figure.contender, figure.metric);
    }
    println!("{}", path.display());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The middle one.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
