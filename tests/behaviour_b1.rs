//! B1.1 to B1.5, the batch pipeline over an LLM API: what is tried again, how often and when.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use std::path::Path;
use std::time::Duration;

use helpers::{Outcome, Scratch, database, example, run};
use pipeline::{GOOD, Pipeline, count, job, row, says};
use retry_runtime::dead_letter::DeadLetterStore;
use retry_runtime::{Jitter, Policy};
use support::plan::{Plan, Reply};
use support::server::Server;

mod helpers;
#[path = "helpers/pipeline.rs"]
mod pipeline;
#[path = "../examples/support/mod.rs"]
mod support;

/// Runs one job for each case and compares requests and error class.
async fn decides(cases: &[(&str, Vec<Reply>, usize, &str)]) -> Outcome {
    let scripts: Vec<_> = cases.iter().map(|(id, script, ..)| (*id, script.clone())).collect();
    let pipeline = Pipeline::new(&scripts).await?;
    let run = pipeline.go(&[]).await?;
    let n = cases.len();
    assert_eq!(run.last_line(), format!("jobs={n} ok=0 parked={n} lost=0"), "{run:?}");
    assert!(run.status.success());
    for (id, _, requests, error_class) in cases {
        let row = row(&pipeline.db, id)?;
        assert_eq!((pipeline.server.asked(id), row.error_class.as_str()), (*requests, *error_class), "{id}: {row:?}");
        assert_eq!(row.attempts, i64::try_from(*requests)?, "{id}");
    }
    Ok(())
}

// B1.1, B1.4: permanent statuses are parked at once, retryable ones after four attempts.
#[tokio::test]
async fn statuses_decide() -> Outcome {
    decides(&[
        ("400", says(400, "no"), 1, "permanent:400"),
        ("403", says(403, "no"), 1, "permanent:403"),
        ("404", says(404, "no"), 1, "permanent:404"),
        ("422", says(422, "no"), 1, "permanent:422"),
        ("429", says(429, "no"), 4, "exhausted:429"),
        ("500", says(500, "no"), 4, "exhausted:500"),
        ("502", says(502, "no"), 4, "exhausted:502"),
        ("503", says(503, "no"), 4, "exhausted:503"),
        ("504", says(504, "no"), 4, "exhausted:504"),
    ])
    .await
}

// B1.2: the message decides where the status does not, whatever its letter case; else unknown, which is tried again (B1.4).
#[tokio::test]
async fn messages_decide() -> Outcome {
    decides(&[
        ("argument", says(418, "Invalid_Argument: prompt"), 1, "permanent:418"),
        ("precondition", says(418, "failed_precondition"), 1, "permanent:418"),
        ("safety", says(418, "stopped for Safety"), 1, "permanent:418"),
        ("blocked", says(418, "BLOCKED"), 1, "permanent:418"),
        ("status name", vec![Reply::Google(418, "INVALID_ARGUMENT", "prompt")], 1, "permanent:418"),
        ("deadline", says(418, "deadline_exceeded"), 4, "exhausted:418"),
        ("unavailable", says(418, "the model is Unavailable"), 4, "exhausted:418"),
        ("unknown", says(418, "short and stout"), 4, "exhausted:418"),
        ("redirect", vec![Reply::Status(302)], 4, "exhausted:302"),
    ])
    .await
}

// B1.3: permanent status, permanent message, retryable status, retryable message, unknown.
#[tokio::test]
async fn the_first_rule_that_fits_decides() -> Outcome {
    decides(&[
        ("permanent status first", says(403, "UNAVAILABLE"), 1, "permanent:403"),
        ("permanent message before retryable status", says(503, "SAFETY"), 1, "permanent:503"),
        ("permanent message before retryable message", says(418, "UNAVAILABLE, for SAFETY"), 1, "permanent:418"),
        ("retryable message last", says(418, "UNAVAILABLE"), 4, "exhausted:418"),
    ])
    .await
}

// B1.4: time-outs, resets and pages instead of JSON are tried again; a job that succeeds in the end leaves nothing.
#[tokio::test]
async fn what_passes_leaves_no_letter() -> Outcome {
    let failures = [
        ("hang", Reply::Hang),
        ("cut", Reply::Cut),
        ("html", Reply::Html),
        ("busy", Reply::Status(503)),
        ("unknown", Reply::Status(418)),
        ("hint", Reply::RetryInfo("0.5s")),
        ("header", Reply::RetryAfter("1")),
    ];
    let scripts: Vec<_> =
        failures.into_iter().map(|(id, failure)| (id, vec![failure.clone(), failure, GOOD])).collect();
    let pipeline = Pipeline::new(&scripts).await?;
    let run = pipeline.go(&[]).await?;
    assert_eq!(run.last_line(), "jobs=7 ok=7 parked=0 lost=0", "{run:?}");
    for (id, _) in &scripts {
        assert_eq!(pipeline.server.asked(id), 3, "{id}");
    }
    assert!(run.stdout.contains("dead-letter: clean (0 parked)"), "{run:?}");
    Ok(())
}

// B1.5
#[tokio::test]
async fn waits_double_up_to_thirty_seconds_and_a_second_of_jitter() -> Outcome {
    let rule = Policy::new()
        .base_delay(Duration::from_secs(2))
        .max_delay(Duration::from_secs(31))
        .jitter(Jitter::Additive(Duration::from_secs(1)));
    for (retry, seconds) in [2, 4, 8, 16, 30, 30].into_iter().enumerate() {
        let range = (Duration::from_secs(seconds), Duration::from_secs(seconds + 1));
        assert_eq!(rule.wait_range(u32::try_from(retry)?), range);
    }
    // The example's own waits, as its letters tell them: true numbers, whatever the time scale.
    let ids: Vec<_> = (0..30).map(|n| n.to_string()).collect();
    let scripts: Vec<_> = ids.iter().map(|id| (id.as_str(), vec![Reply::Status(500)])).collect();
    let pipeline = Pipeline::new(&scripts).await?;
    assert!(pipeline.go(&[]).await?.status.success());
    let mut seen: [Vec<f64>; 3] = Default::default();
    for id in &ids {
        let waits = waits(&pipeline.db, id).await?;
        assert_eq!(waits.len(), 3);
        for (wait, seen) in waits.into_iter().zip(&mut seen) {
            seen.push(wait.as_secs_f64());
        }
    }
    for (seen, least) in seen.iter().zip([2.0, 4.0, 8.0]) {
        assert!(seen.iter().all(|wait| (least..=least + 1.0).contains(wait)), "{seen:?}");
        let spread = seen.iter().fold(0.0_f64, |most, wait| most.max(wait - seen[0]).max(seen[0] - wait));
        assert!(spread > 0.05, "no jitter: {seen:?}");
    }
    Ok(())
}

// B1.5 with a hint: the server's wait, when it is longer; one of an hour is not waited for.
#[tokio::test]
async fn hints_are_obeyed_up_to_two_minutes() -> Outcome {
    let pipeline = Pipeline::new(&[
        ("info", vec![Reply::RetryInfo("53s"), Reply::Status(403)]),
        ("header", vec![Reply::RetryAfter("17"), Reply::Status(403)]),
        ("short", vec![Reply::RetryAfter("1"), Reply::Status(403)]),
        ("hour", vec![Reply::RetryAfter("3600")]),
    ])
    .await?;
    assert!(pipeline.go(&[]).await?.status.success());
    for (id, least, most) in [("info", 53.0, 58.3), ("header", 17.0, 18.7), ("short", 2.0, 3.0)] {
        let waits = waits(&pipeline.db, id).await?;
        assert!(waits.len() == 1 && (least..=most + 0.001).contains(&waits[0].as_secs_f64()), "{id}: {waits:?}");
    }
    assert_eq!(row(&pipeline.db, "hour")?.error_class, "hint_too_long:429");
    assert_eq!(pipeline.server.asked("hour"), 1);
    Ok(())
}

async fn waits(db: &Path, job_id: &str) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let id: String =
        database(db)?.query_row("SELECT letter_id FROM dead_letter WHERE job_id = ?1", [job_id], |row| row.get(0))?;
    let store = dlq_sqlite::SqliteStore::open(db)?;
    let letter = store.get(id).await?.ok_or("no such letter")?;
    Ok(letter.history.iter().filter_map(|attempt| attempt.wait).collect())
}
/// Ten thousand jobs, 64 at a time, on the seeded plan: each is ok or parked, none is lost.
#[tokio::test]
async fn ten_thousand_jobs() -> Outcome {
    let scratch = Scratch::new();
    let jobs = scratch.lines("jobs.jsonl", (0..10_000).map(|n| job(&format!("job {n}"))));
    let server = Server::start(Plan::seeded(3)).await?;
    let db = scratch.path("dead.db");
    let mut command = example("gemini_pipeline");
    command.arg("--jobs").arg(jobs).arg("--db").arg(&db).args(["--base-url", server.url()]);
    let run = run(command.args(["--concurrency", "64", "--time-scale", "0.001"])).await?;
    let parked = count(&db, "status = 'parked'")?;
    assert_eq!(run.last_line(), format!("jobs=10000 ok={} parked={parked} lost=0", 10_000 - parked), "{run:?}");
    assert!(parked > 500 && run.status.success());
    assert!(run.stderr.lines().any(|line| line.starts_with("10000/10000 ")), "no plain lines of progress");
    Ok(())
}

/// A file that is no list of jobs is refused before anything is asked.
#[tokio::test]
async fn a_line_that_is_no_job_is_named() -> Outcome {
    let pipeline = Pipeline::new(&[("a", vec![])]).await?;
    pipeline.scratch.lines("jobs.jsonl", [job("a"), r#"{"id": "b"}"#.to_owned()]);
    let run = pipeline.go(&[]).await?;
    assert_eq!(run.status.code(), Some(1));
    assert!(run.stderr.contains("jobs.jsonl:2: no job: missing field `model`"), "{run:?}");
    assert!(pipeline.server.seen().is_empty());
    Ok(())
}
