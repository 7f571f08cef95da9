//! The README shows what runs.

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
