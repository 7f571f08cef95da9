//! A first build, of everything.

use super::project::{self, Workshop};
use retry_benches::figures::Figures;

use super::{Counted, Extent, Place, compared, least};

const DEPENDENCIES: [(&str, &str); 13] = [
    ("hand", ""),
    ("ours", project::OURS),
    ("ours without macros", project::WITHOUT_MACROS),
    ("backon", project::BACKON),
    ("backon-macros", project::BACKON_MACROS),
    ("tokio-retry", project::TOKIO_RETRY),
    ("tokio-retry2", project::TOKIO_RETRY2),
    ("tryhard", project::TRYHARD),
    ("tower", project::TOWER),
    ("relentless", project::RELENTLESS),
    ("backoff", project::BACKOFF),
    ("thiserror", project::THISERROR),
    ("tracing", project::TRACING),
];

pub(super) fn measure(extent: Extent, figures: &mut Figures) {
    let place = Place { group: "cold build", scenario: "a program and its dependencies, dev profile" };
    let workshop = Workshop::new();
    let projects = DEPENDENCIES.map(|(name, dependencies)| {
        let project = workshop.project(name, dependencies, "main.rs");
        project.write("fn main() {}\n");
        (name, project)
    });
    let crates = Counted { metric: "crates besides the program", unit: "" };
    for (name, project) in &projects {
        let count = f64::from(u32::try_from(project.crates() - 1).unwrap());
        let figure = place.figure(name, crates, count);
        figures.push(if *name == "ours" { figure.at_most(16.0, "") } else { figure });
    }
    let seconds = least(extent.rounds, &projects, |project, _| project.cold(&["build"]));
    // 14 s and 7 s where tokio alone takes 3.7
    let bounds =
        [("ours", 3.78, "14 s where hand takes 3.7"), ("ours without macros", 1.89, "7 s where hand takes 3.7")];
    compared(figures, place, Counted { metric: "CPU", unit: "s" }, &seconds, ("hand", &bounds));
}
