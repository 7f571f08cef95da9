//! The example `graceful_shutdown`: whatever is in flight when the signal comes is in the database when the program has ended.
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a helper of a test fails as a test does

#[path = "helpers/mod.rs"]
mod helpers;

use std::process::Stdio;

use helpers::{Outcome, Scratch, database, example, run};
use tokio::io::{AsyncBufReadExt, BufReader};

const LAST: &str = "jobs=50 parked=50 lost=0";

/// Letters of one attempt: 20 had failed once and waited, 20 were in their first attempt; these end as cancelled. 10 know of no
/// token, and were dropped.
fn letters(scratch: &Scratch) -> rusqlite::Result<Vec<(String, u32)>> {
    let database = database(&scratch.path("jobs.db"))?;
    let mut query =
        database.prepare("SELECT error_class, count(*) FROM dead_letter WHERE attempts = 1 GROUP BY 1 ORDER BY 1")?;
    query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn all() -> Vec<(String, u32)> {
    vec![("cancelled".into(), 20), ("cancelled:busy".into(), 20), ("dropped".into(), 10)]
}

#[tokio::test]
async fn what_is_in_flight_is_parked() -> Outcome {
    let scratch = Scratch::new();
    let done = run(example("graceful_shutdown").arg("--db").arg(scratch.path("jobs.db"))).await?;
    assert!(done.status.success(), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.last_line(), LAST, "{}", done.stdout);
    let told = done.stdout.lines().find_map(|line| line.strip_prefix("stopped after ")).expect("how long it took");
    assert!(told.ends_with("ms") || told.ends_with("µs"), "parked in under a second: {told}");
    assert_eq!(letters(&scratch)?, all());
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_does_the_same() -> Outcome {
    let scratch = Scratch::new();
    let mut command = example("graceful_shutdown");
    command.arg("--db").arg(scratch.path("jobs.db")).arg("--wait").stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next_line().await?.as_deref(), Some("running"));
    let id = child.id().expect("it runs").to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status()?.success());
    let mut last = String::new();
    while let Some(line) = lines.next_line().await? {
        last = line;
    }
    assert!(child.wait().await?.success());
    assert_eq!(last, LAST);
    assert_eq!(letters(&scratch)?, all());
    Ok(())
}
