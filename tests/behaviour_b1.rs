//! B1, the batch pipeline over an LLM API: the built example against a server that misbehaves as scripted.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use std::path::{Path, PathBuf};
use std::time::Duration;

use helpers::{Outcome, Run, Scratch, database, example, run};
use retry_runtime::{Jitter, Policy};
use serde_json::json;
use support::plan::{Plan, Reply};
use support::server::Server;

mod helpers;
#[path = "../examples/support/mod.rs"]
mod support;

/// A pipeline with its own server, jobs and database.
struct Pipeline {
    server: Server,
    jobs: PathBuf,
    db: PathBuf,
    scratch: Scratch,
}

/// The line of a job whose prompt is its id.
fn job(id: &str) -> String {
    json!({"id": id, "model": "gemini-small", "prompt": id}).to_string()
}

impl Pipeline {
    /// Jobs that are each answered by a script.
    async fn new(scripts: &[(&str, Vec<Reply>)]) -> std::io::Result<Self> {
        let plan = scripts.iter().fold(Plan::good(), |plan, (id, script)| plan.script(*id, script.clone()));
        let scratch = Scratch::new();
        let jobs = scratch.lines("jobs.jsonl", scripts.iter().map(|(id, _)| job(id)));
        Ok(Self { server: Server::start(plan).await?, jobs, db: scratch.path("dead.db"), scratch })
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = example("gemini_pipeline");
        command.arg("--db").arg(&self.db).arg("--jobs").arg(&self.jobs).arg("--no-progress");
        command.args(["--base-url", self.server.url(), "--time-scale", "0.001"]);
        command
    }

    async fn go(&self, arguments: &[&str]) -> Result<Run, Box<dyn std::error::Error>> {
        run(self.command().args(arguments)).await
    }
}

/// One row of the view `dead_letter`, by job id.
#[derive(Debug, PartialEq)]
struct Row {
    error_class: String,
    attempts: i64,
    status: String,
    message: String,
}

fn row(db: &Path, job_id: &str) -> rusqlite::Result<Row> {
    database(db)?.query_row(
        "SELECT error_class, attempts, status, error_message FROM dead_letter WHERE job_id = ?1",
        [job_id],
        |row| Ok(Row { error_class: row.get(0)?, attempts: row.get(1)?, status: row.get(2)?, message: row.get(3)? }),
    )
}

fn count(db: &Path, condition: &str) -> rusqlite::Result<i64> {
    database(db)?.query_row(&format!("SELECT count(*) FROM dead_letter WHERE {condition}"), [], |row| row.get(0))
}

const GOOD: Reply = Reply::Good(0);

fn says(status: u16, message: &'static str) -> Vec<Reply> {
    vec![Reply::Google(status, "STATUS", message)]
}

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
    use retry_runtime::dead_letter::DeadLetterStore;
    let id: String =
        database(db)?.query_row("SELECT letter_id FROM dead_letter WHERE job_id = ?1", [job_id], |row| row.get(0))?;
    let store = dlq_sqlite::SqliteStore::open(db)?;
    let letter = store.get(id).await?.ok_or("no such letter")?;
    Ok(letter.history.iter().filter_map(|attempt| attempt.wait).collect())
}

// B1.6
#[tokio::test]
async fn a_parked_job_keeps_everything() -> Outcome {
    let pipeline = Pipeline::new(&[("unused", vec![])]).await?;
    let line = r#"{"prompt":"why?", "id":"job-1","model":"gemini-large",  "priority": 3}"#;
    pipeline.scratch.lines("jobs.jsonl", [line, &job("busy")]);
    let plan = Plan::good().script("why?", says(403, "not you")).script("busy", [Reply::RetryInfo("1s")]);
    let pipeline = Pipeline { server: Server::start(plan).await?, ..pipeline };
    let before = std::time::SystemTime::now();
    assert_eq!(pipeline.go(&["run"]).await?.last_line(), "jobs=2 ok=0 parked=2 lost=0");
    let (kind, payload, model, first, last): (String, String, String, f64, f64) = database(&pipeline.db)?.query_row(
        "SELECT kind, payload_json, model, first_seen, last_seen FROM dead_letter WHERE job_id = 'job-1'",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)),
    )?;
    assert_eq!((kind.as_str(), payload.as_str(), model.as_str()), ("gemini.generate", line, "gemini-large"));
    let now = before.duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    assert!(first <= last && (now - 1.0..now + 600.0).contains(&first), "{first} {last} {now}");
    let expected = Row {
        error_class: "permanent:403".into(),
        attempts: 1,
        status: "parked".into(),
        message: "403 STATUS: not you".into(),
    };
    assert_eq!(row(&pipeline.db, "job-1")?, expected);
    assert_eq!(row(&pipeline.db, "busy")?.error_class, "exhausted:429");
    Ok(())
}

// B1.7
#[tokio::test]
async fn parked_again_is_still_one_row() -> Outcome {
    let pipeline =
        Pipeline::new(&[("a", vec![Reply::Status(500); 4].into_iter().chain(says(403, "no")).collect())]).await?;
    pipeline.go(&[]).await?;
    assert_eq!(row(&pipeline.db, "a")?.error_class, "exhausted:500");
    pipeline.go(&[]).await?;
    assert_eq!(count(&pipeline.db, "1")?, 1);
    let again = row(&pipeline.db, "a")?;
    assert_eq!((again.error_class.as_str(), again.attempts), ("permanent:403", 5));
    assert_eq!(count(&pipeline.db, "last_seen > first_seen")?, 1);
    Ok(())
}

/// Parks jobs one run after the other, so that each was last seen later than the one before.
async fn parked_in_order(ids: &[&str], then: Vec<Reply>) -> Result<Pipeline, Box<dyn std::error::Error>> {
    let script: Vec<_> = says(403, "no").into_iter().chain(then).collect();
    let scripts: Vec<_> = ids.iter().map(|id| (*id, script.clone())).collect();
    let pipeline = Pipeline::new(&scripts).await?;
    // One job at a time: the order of the file is the order of parking.
    let run = pipeline.go(&["--concurrency", "1"]).await?;
    assert!(run.status.success(), "{run:?}");
    Ok(pipeline)
}

// B1.8: a dry run by default, 20 by default.
#[tokio::test]
async fn a_replay_is_dry_unless_told_otherwise() -> Outcome {
    let ids: Vec<_> = (0..25).map(|n| format!("job-{n:02}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let pipeline = parked_in_order(&ids, vec![GOOD]).await?;
    let run = pipeline.go(&["replay"]).await?;
    assert_eq!(run.last_line(), "scanned=20 recovered=0 still_failing=0 dry_run=yes", "{run:?}");
    assert!(run.stdout.contains("job-19") && !run.stdout.contains("job-20"), "{run:?}");
    assert_eq!(pipeline.server.seen().len(), 25, "a dry run asked the server");
    assert_eq!(count(&pipeline.db, "status = 'parked'")?, 25);
    Ok(())
}

// B1.8: longest unseen first, each success recovered with its time, each failure still parked.
#[tokio::test]
async fn a_replay_recovers_what_succeeds() -> Outcome {
    let pipeline = parked_in_order(&["old", "middle", "new"], vec![GOOD]).await?;
    let run = pipeline.go(&["replay", "--execute", "--limit", "2"]).await?;
    assert_eq!(run.last_line(), "scanned=2 recovered=2 still_failing=0 dry_run=no", "{run:?}");
    let asked: Vec<_> = pipeline.server.seen().into_iter().skip(3).map(|seen| seen.key).collect();
    assert_eq!(asked, ["old", "middle"]);
    assert_eq!(count(&pipeline.db, "status = 'recovered' AND closed_at >= last_seen")?, 2);
    assert_eq!(row(&pipeline.db, "new")?.status, "parked");

    let failing = parked_in_order(&["a"], says(403, "still")).await?;
    let run = failing.go(&["replay", "--execute"]).await?;
    assert_eq!(run.last_line(), "scanned=1 recovered=0 still_failing=1 dry_run=no", "{run:?}");
    let row = row(&failing.db, "a")?;
    assert_eq!((row.status.as_str(), row.attempts, row.message.as_str()), ("parked", 2, "403 STATUS: still"));
    Ok(())
}

// B1.8: what was reported before a crash stays done.
#[tokio::test]
async fn a_killed_replay_undoes_nothing() -> Outcome {
    let pipeline = parked_in_order(&["a", "b", "c", "stuck", "never"], vec![GOOD]).await?;
    let stuck = Plan::good().script("stuck", [Reply::Hang]);
    let pipeline = Pipeline { server: Server::start(stuck).await?, ..pipeline };
    let mut child = pipeline.command().args(["replay", "--execute"]).spawn()?;
    while pipeline.server.asked("stuck") == 0 {
        assert!(child.try_wait()?.is_none(), "the replay ended early");
        tokio::task::yield_now().await;
    }
    child.kill().await?;
    assert_eq!(count(&pipeline.db, "status = 'recovered'")?, 3);
    assert_eq!(pipeline.server.asked("never"), 0);
    Ok(())
}

// B1.9
#[tokio::test]
async fn the_summary_is_clean_or_counts_by_class() -> Outcome {
    let mut scripts = vec![("fine", vec![GOOD])];
    let pipeline = Pipeline::new(&scripts).await?;
    pipeline.go(&[]).await?;
    assert_eq!(pipeline.go(&["summary"]).await?.stdout, "dead-letter: clean (0 parked)\n");
    scripts.extend([("a", says(403, "no")), ("b", says(403, "no")), ("c", says(500, "no")), ("d", says(400, "no"))]);
    let pipeline = Pipeline::new(&scripts).await?;
    pipeline.go(&[]).await?;
    let summary = "dead-letter: 4 parked\n     2  permanent:403\n     1  exhausted:500\n     1  permanent:400\n";
    assert_eq!(pipeline.go(&["summary"]).await?.stdout, summary);
    Ok(())
}

/// Looking makes no store: a path that is wrong stays wrong.
#[tokio::test]
async fn no_store_is_made_by_looking() -> Outcome {
    let pipeline = Pipeline::new(&[]).await?;
    for command in ["summary", "replay"] {
        let run = pipeline.go(&[command]).await?;
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        assert!(run.stderr.contains("dead.db"), "the path is not named: {run:?}");
    }
    assert!(!pipeline.db.exists());
    Ok(())
}

/// The key reaches the server in a header and nothing else, even when the server echoes it.
#[tokio::test]
async fn the_key_stays_in_its_header() -> Outcome {
    const KEY: &str = "AIza-very-secret";
    let pipeline = Pipeline::new(&[
        ("echo", says(400, "the key AIza-very-secret is not valid")),
        ("cut", vec![Reply::Cut]),
        ("redirect", vec![Reply::Status(307)]),
    ])
    .await?;
    let run = run(pipeline.command().env("GEMINI_API_KEY", KEY)).await?;
    assert_eq!(run.last_line(), "jobs=3 ok=0 parked=3 lost=0", "{run:?}");
    for seen in pipeline.server.seen() {
        assert_eq!(seen.headers["x-goog-api-key"], KEY);
        assert!(!seen.uri.contains(KEY) && !seen.body.contains(KEY));
    }
    assert!(!format!("{run:?}").contains(KEY), "{run:?}");
    for file in std::fs::read_dir(pipeline.db.parent().expect("a directory"))? {
        let bytes = std::fs::read(file?.path())?;
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
    }
    assert!(row(&pipeline.db, "echo")?.message.contains("[key]"));
    Ok(())
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
