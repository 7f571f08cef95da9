//! The README shows what runs, and its lists and that of the audit's words name what the sources say.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use retry_runtime::Policy;
use retry_runtime::dead_letter::{Incident, OperationStatus};

/// The plan that the README prints is the one that a policy prints.
#[test]
fn the_plan_is_what_a_policy_prints() {
    let readme = include_str!("../README.md");
    assert!(readme.contains(&format!("```text\n{}\n```", Policy::new())));
}

/// The quickstart of the README is the example of that name, which CI runs.
#[test]
fn the_quickstart_is_the_example() {
    let readme = include_str!("../README.md");
    let example = include_str!("../examples/quickstart.rs");
    let shown = readme.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).map(|(code, _)| code);
    let run = example.split_once("\n\n").map(|(_, code)| code);
    assert_eq!(shown, run);
    assert!(example.lines().count() < 40);
}

/// The guide's programs are parts of an example, which CI runs.
#[test]
fn the_guide_shows_what_the_example_runs() {
    let guide = include_str!("../docs/dead-letters.md");
    let example = include_str!("../examples/operator.rs");
    let blocks: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(code, _)| code).collect();
    assert!(blocks.len() >= 6, "{}", blocks.len());
    for block in blocks {
        assert!(example.contains(block), "not in examples/operator.rs:\n{block}");
    }
}

/// The same of the guide to testing.
#[test]
fn the_guide_to_testing_shows_what_its_tests_run() {
    let guide = include_str!("../docs/testing.md");
    let tests = include_str!("guide_testing.rs");
    let blocks: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(code, _)| code).collect();
    assert!(blocks.len() >= 10, "{}", blocks.len());
    for block in blocks {
        assert!(tests.contains(block), "not in tests/guide_testing.rs:\n{block}");
    }
}

/// Cargo refuses a manifest that says the same thing twice.
#[test]
fn the_dependencies_are_named_once_each() {
    let readme = include_str!("../README.md");
    let shown = readme.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).map(|(toml, _)| toml);
    let names: Vec<&str> =
        shown.unwrap_or_default().lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert!(names.len() >= 4 && names.len() == once.len(), "{names:?}");
}

/// The figures of the README are those of the page that is written from what was measured; until then there are none.
#[test]
fn every_figure_was_measured() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance.md")).unwrap_or_default();
    let readme = include_str!("../README.md");
    assert_eq!(figures(readme), Some(figures(&page).unwrap_or_default()));
    let around = readme.split("\n## ").find(|section| section.starts_with("What it costs\n")).unwrap_or_default();
    let written = figures(around).expect("the section has the figures in it");
    assert!(!around.replace(written, "").contains(|c: char| c.is_ascii_digit()), "a figure beside those: {around}");
}

/// What stands between the lines that `./bench report` writes.
fn figures(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<!-- written by ./bench report: begin -->\n")?;
    rest.split_once("<!-- written by ./bench report: end -->").map(|(figures, _)| figures)
}

/// Whatever the libraries say aloud stands in the README's list.
#[test]
fn every_notice_is_listed() {
    let readme = include_str!("../README.md");
    let mut names = Vec::new();
    for source in sources() {
        let calls = ["Notice::warning(", "Notice::error(", "warn_once("].map(|call| source.split(call).skip(1));
        let names_of_calls = calls.into_iter().flatten().filter_map(|rest| rest.trim_start().strip_prefix('"'));
        names.extend(names_of_calls.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()));
    }
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(readme.contains(&format!("`{name}`")), "README.md says nothing about the notice {name}");
    }
}

/// The words that both stores write into the audit are those of the table beside its type, no more and no fewer.
#[test]
fn every_word_of_the_audit_is_in_its_table() {
    let mut written = BTreeSet::new();
    for source in sources() {
        // The arguments of the functions that write events, and the choices made just before.
        let calls = ["event(", ".happened(", ".happened_to(", "self.note(", "state.note(", ".by_hand(", "change(tx, "];
        let arguments = calls.iter().flat_map(|call| source.split(call).skip(1)).map(arguments);
        let first = arguments.filter_map(|arguments| words(arguments).next());
        let choices = source.lines().filter_map(|line| line.trim_start().strip_prefix("let what = "));
        written.extend(first.chain(choices.flat_map(words)));
    }
    assert!(written.remove("operation_{}"), "{written:?}");
    let statuses = OperationStatus::ALL.iter().map(|status| format!("operation_{status}"));
    let incidents = Incident::ALL.iter().map(|incident| incident.as_str().to_owned());
    let written: BTreeSet<String> = written.into_iter().chain(statuses).chain(incidents).collect();

    let table = include_str!("../retry-runtime/src/dead_letter/event.rs");
    let rows = table.lines().filter_map(|line| line.strip_prefix("/// | `")).filter(|row| !row.starts_with("what`"));
    let listed: BTreeSet<String> = rows
        .filter_map(|row| row.split_once("` |"))
        .flat_map(|(words, _)| words.split("`, `"))
        .map(str::to_owned)
        .collect();
    assert_eq!(written, listed);
}

/// Up to the bracket that closes the call.
fn arguments(rest: &str) -> &str {
    let mut open = 1;
    let end = rest.find(|c| {
        open += i32::from(c == '(') - i32::from(c == ')');
        open == 0
    });
    rest.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// What is quoted and could be a word of the audit.
fn words(code: &str) -> impl Iterator<Item = String> {
    let is_word = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || "_{}".contains(c));
    code.split('"').skip(1).step_by(2).filter(is_word).map(str::to_owned)
}

/// The text of every source file of both libraries.
fn sources() -> Vec<String> {
    let mut texts = Vec::new();
    for library in ["retry-runtime/src", "dlq-sqlite/src"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(library), &mut texts);
    }
    texts
}

fn read(directory: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("the sources are there") {
        let path = entry.expect("the sources can be listed").path();
        if path.is_dir() {
            read(&path, texts);
        } else {
            texts.push(fs::read_to_string(&path).expect("the sources can be read"));
        }
    }
}
