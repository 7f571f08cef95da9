//! What a function adds to a build: the compiler's time, the program's bytes, the lines that LLVM is given.

use super::contenders::ATTRIBUTES;
use super::project::{Keep, Workshop};
use retry_benches::figures::Figures;

use super::{Bound, Counted, Extent, Place, added, compared, least};

const BOUNDS: (&str, &[Bound<'_>]) = ("hand", &[("ours", 1.25, "")]);

pub(super) fn measure(extent: Extent, figures: &mut Figures) {
    let count = (extent.functions / 5).max(10);
    let scenario = format!("{count} functions");
    let place = Place { group: "build of functions", scenario: &scenario };
    let workshop = Workshop::new();
    let projects = ATTRIBUTES.map(|contender| {
        let project = workshop.project(contender.name, contender.dependencies, "main.rs");
        (contender.name, (project, contender))
    });
    for (_, (project, contender)) in &projects {
        project.write(&contender.functions(count, 0));
        project.cpu(&["build"], Keep::Nothing);
    }
    let built = least(extent.rounds, &projects, |(project, contender), round| {
        project.write(&contender.functions(count, round));
        project.cpu(&["build"], Keep::Nothing)
    });
    compared(figures, place, Counted { metric: "dev build", unit: "ms" }, &added(&built, count), BOUNDS);

    let (mut text, mut lines) = (Vec::new(), Vec::new());
    for (name, (project, _)) in &projects {
        eprintln!("  text and LLVM's lines: {name}");
        project.cpu(&["build", "--release"], Keep::Nothing);
        // so that what is added comes out in whole bytes and lines
        text.push((*name, project.text() / 1_000.0));
        lines.push((*name, project.ir() / 1_000.0));
    }
    let counted = Counted { metric: "release text", unit: "B" };
    compared(figures, place, counted, &added(&text, count), BOUNDS);
    let counted = Counted { metric: "LLVM-IR, dev profile", unit: "lines" };
    compared(figures, place, counted, &added(&lines, count), BOUNDS);
}
