//! The README shows what runs.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use std::fs;
use std::path::Path;

use retry_runtime::Policy;

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

/// Whatever the libraries say aloud stands in the README's list.
#[test]
fn every_notice_is_listed() {
    let readme = include_str!("../README.md");
    let mut names = Vec::new();
    for library in ["retry-runtime/src", "dlq-sqlite/src"] {
        notices(&Path::new(env!("CARGO_MANIFEST_DIR")).join(library), &mut names);
    }
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(readme.contains(&format!("`{name}`")), "README.md says nothing about the notice {name}");
    }
}

/// The names in `Notice::warning("name", ..)` and `Notice::error("name", ..)` below a directory.
fn notices(directory: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("the sources are there") {
        let path = entry.expect("the sources can be listed").path();
        if path.is_dir() {
            notices(&path, names);
        } else {
            let source = fs::read_to_string(&path).expect("the sources can be read");
            let calls = ["Notice::warning(", "Notice::error("].map(|call| source.split(call).skip(1));
            let names_of_calls = calls.into_iter().flatten().filter_map(|rest| rest.trim_start().strip_prefix('"'));
            names.extend(names_of_calls.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()));
        }
    }
}
