//! What the macros write, as the compiler prints it. Printing is not stable, so it is allowed for this one crate, and nothing
//! that is compiled for another figure is.

use retry_benches::figures::Figures;

use super::contenders::ATTRIBUTES;
use super::project::Workshop;
use super::{Counted, Extent, Place, added, compared};

const COUNT: u32 = 10;

pub(super) fn measure(_: Extent, figures: &mut Figures) {
    let workshop = Workshop::new();
    let lines: Vec<(&'static str, f64)> = ATTRIBUTES
        .iter()
        .map(|contender| {
            eprintln!("  {}", contender.name);
            let project = workshop.project(contender.name, contender.dependencies, "main.rs");
            project.write(&contender.functions(COUNT, 0));
            let allowed = format!("RUSTC_BOOTSTRAP={}", project.crate_name());
            let expanded = project
                .prints(&["env", &allowed, "cargo", "rustc", "--profile", "check"], &["--", "-Zunpretty=expanded"]);
            let lines = expanded.lines().filter(|line| !line.trim().is_empty()).count();
            (contender.name, f64::from(u32::try_from(lines).unwrap()) / 1_000.0)
        })
        .collect();
    let place = Place { group: "expansion", scenario: "a function" };
    let counted = Counted { metric: "lines over the plain function", unit: "" };
    compared(figures, place, counted, &added(&lines, COUNT), ("hand", &[]));
}
