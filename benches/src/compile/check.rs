//! What a function, or a derived enum, adds to `cargo check`.

use super::contenders::ATTRIBUTES;
use super::enums::DERIVERS;
use super::project::{Keep, Project, Workshop};
use retry_benches::figures::Figures;

use super::{Counted, Extent, Place, added, compared, least};

pub(super) fn measure(extent: Extent, figures: &mut Figures) {
    for count in [extent.functions / 10, extent.functions] {
        functions(count, extent.rounds, figures);
        enums(count, extent.rounds, figures);
    }
}

/// A project, and the text of its source after so many edits.
type Edited = (Project, Box<dyn Fn(u32) -> String>);

fn functions(count: u32, rounds: u32, figures: &mut Figures) {
    let workshop = Workshop::new();
    let projects = ATTRIBUTES.map(|contender| {
        let project = workshop.project(contender.name, contender.dependencies, "main.rs");
        let source = move |edit| contender.functions(count, edit);
        (contender.name, (project, Box::new(source) as Box<dyn Fn(u32) -> String>))
    });
    let scenario = format!("{count} functions");
    let place = Place { group: "check of functions", scenario: &scenario };
    let [whole, again] = checked(&projects, rounds);
    let counted = Counted { metric: "check", unit: "ms" };
    compared(figures, place, counted, &added(&whole, count), ("hand", &[("ours", 1.3, "")]));
    let bounds = [("ours", 2.25, "0.9 ms where hand takes 0.4")];
    let counted = Counted { metric: "check after an edit", unit: "ms" };
    compared(figures, place, counted, &added(&again, count), ("hand", &bounds));
}

fn enums(count: u32, rounds: u32, figures: &mut Figures) {
    let workshop = Workshop::new();
    let projects = DERIVERS.map(|deriver| {
        let project = workshop.project(deriver.name, deriver.dependencies, "lib.rs");
        let source = move |edit| deriver.enums(count, edit);
        (deriver.name, (project, Box::new(source) as Box<dyn Fn(u32) -> String>))
    });
    let scenario = format!("{count} enums of 10 variants");
    let place = Place { group: "check of enums", scenario: &scenario };
    let [whole, again] = checked(&projects, rounds);
    for (metric, seconds) in [("check", whole), ("check after an edit", again)] {
        let counted = Counted { metric, unit: "ms" };
        compared(figures, place, counted, &added(&seconds, count), ("thiserror", &[("ours", 1.0, "")]));
    }
}

/// The seconds of a check from nothing but the dependencies, and of one after an edit of the last item.
fn checked(projects: &[(&'static str, Edited)], rounds: u32) -> [Vec<(&'static str, f64)>; 2] {
    [Keep::Nothing, Keep::Incremental].map(|keep| {
        for (_, (project, source)) in projects {
            project.write(&source(0));
            project.cpu(&["check"], keep);
        }
        least(rounds, projects, |(project, source), round| {
            project.write(&source(round));
            project.cpu(&["check"], keep)
        })
    })
}
