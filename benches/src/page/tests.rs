//! From figures to the page, to the letter.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests fail by panicking

use super::*;

const COLD: &str = include_str!("../../fixtures/compile-cold.json");
/// `check` is not missed, and nobody asked why it is.
const REASONS: &str = "# Why\n\n## release binary, a program\n\nFor a reason.\n\n## check\n\nFor none.\n";
const BINARY: &str = include_str!("../../fixtures/compile-binary.json");

fn measured() -> Vec<(&'static Part, Figures)> {
    let part = |name: &str| PARTS.iter().find(|part| part.file == name).unwrap();
    vec![
        (part("compile-cold"), serde_json::from_str(COLD).unwrap()),
        (part("compile-binary"), serde_json::from_str(BINARY).unwrap()),
    ]
}

#[test]
fn the_page_is_made_of_the_figures_alone() {
    let measured = measured();
    let directory = tempfile::tempdir().unwrap();
    let drawn = plots::draw(directory.path(), &measured);
    let page = page(&measured, &drawn, REASONS);
    if std::env::var_os("OVERWRITE").is_some() {
        fs::write(root().join("benches/fixtures/performance.md"), &page).unwrap();
    }
    assert_eq!(page, include_str!("../../fixtures/performance.md"));
    let plot = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let (cold, binary) = (plot("cold-build.svg"), plot("binary.svg"));
    assert!(cold.contains("13.32") && binary.contains("-12"), "{cold}{binary}");
    assert_eq!(plots::draw(directory.path(), &measured).len(), 2);
    assert_eq!((plot("cold-build.svg"), plot("binary.svg")), (cold, binary));
}

#[test]
fn a_busy_machine_is_told_of() {
    let mut figures: Figures = serde_json::from_str(COLD).unwrap();
    assert!(!tables::measured_on(&figures).contains("busy"));
    figures.machine.load = 2.5;
    assert!(tables::measured_on(&figures).contains("load 2.5: **others were busy, measure again**"));
}

#[test]
fn what_was_not_measured_is_told_with_its_command() {
    let mut measured = measured();
    let lines = lacking(&measured);
    assert!(lines.contains(&"not measured: Times; `./bench times` measures it".to_owned()), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("cold")), "{lines:?}");
    // a file that was measured by an older program, which called things otherwise
    measured[0].1.figures.retain(|figure| figure.metric != "CPU");
    let lines = lacking(&measured);
    let line = "compile-cold has no `cold build, a program and its dependencies, dev profile, CPU`; \
                `./bench compile --only cold` measures it";
    assert!(lines.iter().any(|said| said == line), "{lines:?}");
}

#[test]
fn a_goal_that_is_missed_without_a_reason_is_told_of() {
    let measured = measured();
    assert_eq!(reasons::lacking(&measured, REASONS), [""; 0]);
    let line = "missed, and benches/reasons.md does not say why: release binary, a program with a retried call: text over hand's";
    assert_eq!(reasons::lacking(&measured, "# Why\n\n## check\n\nFor none.\n"), [line]);
}

#[test]
fn the_largest_of_a_scenario_counts() {
    let figure = Looked { file: "f", group: "g", scenario: "N functions", metric: "m" };
    let mut figures: Figures = serde_json::from_str(COLD).unwrap();
    figures.figures.clear();
    for (scenario, value) in [("100 functions", 1.0), ("1000 functions", 2.0), ("1000 enums", 3.0)] {
        figures.push(retry_benches::figures::Figure::new("g", scenario, "ours", "m", "ms", value));
    }
    assert_eq!(figure.all(&figures), [("ours", 2.0)]);
}

#[test]
fn the_readme_changes_between_its_lines_alone() {
    let directory = tempfile::tempdir().unwrap();
    let readme = directory.path().join("README.md");
    fs::write(&readme, format!("a\n{BEGIN}old\n{END}z\n")).unwrap();
    quote(&readme, "new\n");
    assert_eq!(fs::read_to_string(readme).unwrap(), format!("a\n{BEGIN}new\n{END}z\n"));
}
