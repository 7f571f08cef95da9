//! What one retried call adds to a release program, and a second one.

use std::fs;
use std::process::Command;

use super::contenders::Contender;
use super::peers::RETRYING;
use super::project::{Keep, Project, Workshop};
use retry_benches::figures::Figures;

use super::{Counted, Extent, Place};

pub(super) fn measure(_: Extent, figures: &mut Figures) {
    let place = Place { group: "release binary", scenario: "a program with a retried call" };
    let workshop = Workshop::new();
    let sizes: Vec<(&str, [f64; 2])> =
        RETRYING.iter().map(|contender| (contender.name, sizes(&workshop, contender))).collect();
    let hand = sizes.iter().find(|(name, _)| *name == "hand").map_or([f64::NAN; 2], |(_, sizes)| *sizes);
    for (name, [one, two]) in sizes {
        figures.push(place.figure(name, Counted { metric: "text", unit: "B" }, one));
        if name == "hand" {
            continue;
        }
        let over = place.figure(name, Counted { metric: "text over hand's", unit: "B" }, one - hand[0]);
        let second = Counted { metric: "a second function over hand's", unit: "B" };
        let second = place.figure(name, second, (two - one) - (hand[1] - hand[0]));
        let promised = name == "ours";
        figures.push(if promised { over.at_most(4_096.0, "4 KB") } else { over });
        figures.push(if promised { second.at_most(307.0, "0.3 KB") } else { second });
    }
}

/// Of the program with one call, and with two.
fn sizes(workshop: &Workshop, contender: &Contender) -> [f64; 2] {
    eprintln!("  {}", contender.name);
    let project = workshop.project(contender.name, contender.dependencies, "main.rs");
    [1, 2].map(|count| {
        project.write(&contender.program(count));
        project.cpu(&["build", "--release"], Keep::Nothing);
        does_what_it_says(&project, contender, count);
        if contender.name == "ours" {
            links_what_it_uses(&project);
        }
        project.text()
    })
}

/// A figure about a program that does something else would be no figure.
fn does_what_it_says(project: &Project, contender: &Contender, calls: u32) {
    for (address, attempts) in [("", 3), ("x", 1), ("page", 1)] {
        let attempts = match (contender.name, address) {
            ("plain", _) => 1,
            ("tryhard", "x") => 3,
            _ => attempts,
        };
        let run = Command::new(project.program("release")).arg(address).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert_eq!(said.trim(), (attempts * calls).to_string(), "{}: {address:?}", contender.name);
    }
}

/// What is large in the runtime, and of no use to a call without dead letters: the names of its functions would tell.
const UNUSED: [&str; 6] = ["11dead_letter", "6config", "6ledger", "4kept", "8counters", "6budget"];

fn links_what_it_uses(project: &Project) {
    let program = fs::read(project.program("release")).unwrap();
    let has = |module: &str| {
        let name = format!("13retry_runtime{module}");
        program.windows(name.len()).any(|bytes| bytes == name.as_bytes())
    };
    assert!(has("6engine"), "a program without names tells nothing");
    let linked: Vec<&str> = UNUSED.into_iter().filter(|module| has(module)).collect();
    assert!(linked.is_empty(), "a plain retried call links {linked:?}");
}
