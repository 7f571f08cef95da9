//! The example `retry_storm`: what its simulations find, against known figures, and what it prints and draws.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // tests fail by panicking

#[path = "helpers/mod.rs"]
mod helpers;
#[path = "../examples/retry_storm/simulation/mod.rs"]
mod simulation;

use helpers::{Outcome, Scratch, example, run};
use simulation::contention::{CLIENTS, WAYS, contend};
use simulation::layers::amplification;
use simulation::outage::{self, STRATEGIES, Strategy};

const SEED: u64 = 1;

fn assert_near(what: &str, found: f64, known: f64) {
    assert!((found / known - 1.0).abs() <= 0.15, "{what}: {found:.2}, known is {known}");
}

// The published figures of "Exponential Backoff And Jitter", 2.1 and 2.2 as a crowd feels them.
#[test]
fn a_crowd_of_writers_needs_what_is_known() {
    for way in WAYS {
        let found = contend(&way.policy, CLIENTS, SEED);
        assert_near(&format!("{}, write calls", way.name), found.calls, way.known_calls);
        assert_near(&format!("{}, seconds", way.name), found.seconds, way.known_seconds);
    }
}

// 7.1
#[test]
fn three_layers_of_three_attempts_amplify_27_times_and_not_with_budgets() {
    let without = amplification(1.0, false, SEED);
    assert!((without - 27.0).abs() < 1e-9, "every attempt of every layer is made: {without}");
    for seed in 1..=5 {
        let with = amplification(1.0, true, seed);
        assert!(with > 1.0 && with <= 1.2, "{with}");
    }
    // Where retries help, budgets let them: a retry that succeeds costs nothing.
    let (without, with) = (amplification(0.1, false, SEED), amplification(0.1, true, SEED));
    assert!((with / without - 1.0).abs() < 0.02 && with > 1.09, "{without} {with}");
}

fn strategy(name: &str) -> &'static Strategy {
    STRATEGIES.iter().find(|strategy| strategy.name == name).unwrap()
}

fn storm(name: &str) -> outage::Outcome {
    outage::run(strategy(name), 10_000, SEED)
}

#[test]
fn retries_without_a_limit_keep_a_service_down() {
    for name in ["at once", "exponential", "equal jitter", "full jitter", "decorrelated jitter"] {
        let found = storm(name);
        assert_eq!(found.recovered_after(), None, "{name}");
        assert!(found.amplification() > 3.0 && found.success() < 0.35, "{name}: {:?}", found.success());
        assert!(found.success_before() > 0.999, "{name} hides single faults while all is well");
    }
    let never = storm("no retry");
    assert!((never.amplification() - 1.0).abs() < 1e-9);
    assert!(never.recovered_after().unwrap() <= 4.0);
    assert!(never.success_before() < 0.995, "one attempt in a hundred fails");
}

// 7, 8
#[test]
fn budgets_and_breakers_let_it_recover() {
    let never = storm("no retry");
    for (name, amplification, seconds) in [
        ("full jitter, budget", 1.05, 4.0),
        ("full jitter, breaker", 1.2, 8.0),
        ("full jitter, budget, breaker", 1.05, 4.0),
    ] {
        let found = storm(name);
        assert!(found.amplification() <= amplification, "{name}: {}", found.amplification());
        assert!(found.recovered_after().is_some_and(|after| after <= seconds), "{name}: {:?}", found.recovered_after());
        assert!(found.success_before() > 0.999, "{name}: {}", found.success_before());
        assert!(found.success() > never.success() - 0.1, "{name}: {}", found.success());
    }
}

// 2.5
#[test]
fn a_seed_says_all() {
    let both = strategy("full jitter, budget, breaker");
    let once = outage::run(both, 2_000, 7);
    assert_eq!(outage::run(both, 2_000, 7), once);
    assert_ne!(outage::run(both, 2_000, 8), once);
    let served: u64 = once.seconds.iter().map(|second| second.answered).sum();
    let asked: u64 = once.seconds.iter().map(|second| second.requests).sum();
    assert!(asked == 2_000 && served > 1_000 && served < asked, "{served} of {asked}");
}

#[tokio::test]
async fn the_program_prints_the_tables_of_the_readme_and_draws_four_plots() -> Outcome {
    let scratch = Scratch::new();
    let mut command = example("retry_storm");
    command.arg("--out").arg(scratch.path("plots"));
    let done = run(&mut command).await?;
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.last_line(), format!("plots: {}", scratch.path("plots").display()));
    let tables = done.stdout.split("\n\n").filter(|part| part.starts_with('|'));
    let [writers, layers, outage]: [&str; 3] = tables.collect::<Vec<_>>().try_into().unwrap();
    let readme = include_str!("../README.md");
    for table in [writers, outage] {
        assert!(readme.contains(table), "README.md shows other numbers than these:\n{table}");
    }
    // what its text says of the third
    for row in ["| 100 % | 27.00 | 1.06 |", "| 50 % | 2.01 | 1.99 |"] {
        assert!(layers.contains(row), "{layers}");
    }
    assert!(readme.contains("into 27; with a default budget in each layer into 1.06."));
    assert!(readme.contains("it hardly binds (1.99 for 2.01)."));
    for plot in ["load.svg", "success.svg", "amplification.svg", "recovery.svg"] {
        let drawn = std::fs::read_to_string(scratch.path("plots").join(plot))?;
        assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"), "{plot}");
        for strategy in &STRATEGIES {
            assert!(drawn.contains(strategy.name), "{plot} without {}", strategy.name);
        }
    }
    Ok(())
}
