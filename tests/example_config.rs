//! The example `config_reload`: what it is told by its file and by the environment.

#[path = "helpers/mod.rs"]
mod helpers;

use helpers::{Outcome, example, run};

/// The attempts of each round of work.
fn attempts(stdout: &str) -> Vec<&str> {
    let rounds = stdout.lines().filter_map(|line| line.strip_prefix("the server is down: "));
    rounds.filter_map(|line| line.strip_suffix(" attempts")).collect()
}

// 14.1
#[tokio::test]
async fn a_file_is_followed_and_a_mistake_in_it_changes_nothing() -> Outcome {
    let done = run(&mut example("config_reload")).await?;
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    assert_eq!(attempts(&done.stdout), ["5", "2", "2", "7"], "{}", done.stdout);
    assert!(done.stdout.contains("retry.toml:3: policy.inventory.jiter"), "{}", done.stdout);
    assert!(done.stderr.contains("error config_rejected"), "{}", done.stderr);
    Ok(())
}

// 14.1
#[tokio::test]
async fn the_environment_comes_over_the_file() -> Outcome {
    let done = run(example("config_reload").env("RETRY_POLICY_INVENTORY_MAX_RETRIES", "2")).await?;
    assert_eq!(attempts(&done.stdout), ["3", "3", "3", "3"], "{}", done.stdout);
    let done = run(example("config_reload").env("RETRY_DISABLED", "1")).await?;
    assert_eq!(attempts(&done.stdout), ["1", "1", "1", "1"], "{}", done.stdout);
    let done = run(example("config_reload").env("RETRY_POLICY_INVENTORY_MAX_RETRYS", "2")).await?;
    assert!(!done.status.success(), "{}", done.stdout);
    assert!(done.stderr.contains("MAX_RETRYS = 2: it ends with no key"), "{}", done.stderr);
    Ok(())
}
