//! What retries do to a service in trouble: seeded simulations with the library's own policies, budgets and breakers.
//!
//! `retry_storm [--clients N] [--runs N] [--seed N] [--out DIR]` prints three tables and draws four plots. A million
//! clients take a minute: `cargo run --release --example retry_storm -- --clients 1000000 --runs 1`.

#![allow(clippy::cast_precision_loss)] // what is counted here is small enough for decimal numbers

mod plots;
mod simulation;
mod table;

use std::path::PathBuf;

use clap::Parser;
use simulation::outage::{Outcome, STRATEGIES, Strategy};
use simulation::{contention, outage};

#[derive(Parser)]
struct Arguments {
    /// How many clients ask the service that is slow for a while.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    clients: u64,
    /// How many runs each number about that service is the mean of.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
    /// The same seed gives the same numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the plots go [default: `retry_storm` among the temporary files].
    #[arg(long)]
    out: Option<PathBuf>,
}

/// A way to retry, with what came of it in each run.
type Compared = (&'static Strategy, Vec<Outcome>);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { clients, runs, seed, out } = Arguments::parse();

    println!(
        "{} clients write to one row, who lost the race reads again; means of {} runs\n",
        contention::CLIENTS,
        contention::RUNS
    );
    println!("{}", table::contention(seed));

    println!("three layers of three attempts each: calls of the dependency for each request\n");
    println!("{}", table::layers(seed));

    println!(
        "{clients} clients in {} s, of which the service is slow for {}; means of {runs} runs\n",
        outage::SECONDS,
        outage::TROUBLE.len()
    );
    let run = |strategy| (0..runs).map(|run| outage::run(strategy, clients, seed.wrapping_add(run))).collect();
    let compared: Vec<Compared> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            STRATEGIES.iter().map(|strategy| (strategy, scope.spawn(move || run(strategy)))).collect();
        threads.into_iter().filter_map(|(strategy, thread)| Some((strategy, thread.join().ok()?))).collect()
    });
    assert_eq!(compared.len(), STRATEGIES.len(), "a simulation panicked");
    println!("{}", table::outage(&compared));

    let out = out.unwrap_or_else(|| std::env::temp_dir().join("retry_storm"));
    std::fs::create_dir_all(&out)?;
    plots::draw(&out, &compared)?;
    println!("plots: {}", out.display());
    Ok(())
}
