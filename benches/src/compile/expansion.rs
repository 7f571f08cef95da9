//! What the macros write. Only a nightly compiler prints it, so the part is left out where there is none.

use retry_benches::figures::{Figures, output};

use super::contenders::ATTRIBUTES;
use super::project::Workshop;
use super::{Counted, Extent, Place, added, compared};

const COUNT: u32 = 10;

pub(super) fn measure(_: Extent, figures: &mut Figures) {
    let nightly = output("rustup", &["run", "nightly", "rustc", "--version"]);
    if nightly.is_empty() {
        eprintln!(
            "expanded lines are left out: only a nightly compiler prints them. `rustup toolchain install nightly`"
        );
        return;
    }
    figures.versions.insert("rustc, for this part".to_owned(), nightly);
    let workshop = Workshop::new();
    let lines: Vec<(&'static str, f64)> = ATTRIBUTES
        .iter()
        .map(|contender| {
            eprintln!("  {}", contender.name);
            let project = workshop.project(contender.name, contender.dependencies, "main.rs");
            project.write(&contender.functions(COUNT, 0));
            let cargo = ["rustup", "run", "nightly", "cargo", "rustc", "--profile", "check"];
            let expanded = project.prints(&cargo, &["--", "-Zunpretty=expanded"]);
            let lines = expanded.lines().filter(|line| !line.trim().is_empty()).count();
            (contender.name, f64::from(u32::try_from(lines).unwrap()) / 1_000.0)
        })
        .collect();
    let place = Place { group: "expansion", scenario: "a function" };
    let counted = Counted { metric: "lines over the plain function", unit: "" };
    compared(figures, place, counted, &added(&lines, COUNT), ("hand", &[]));
}
