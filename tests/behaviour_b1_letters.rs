//! B1.6 to B1.9, the batch pipeline over an LLM API: what is kept of a job that was given up, and how it comes back.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use helpers::{Outcome, database, run};
use pipeline::{GOOD, Pipeline, Row, count, job, row, says};
use support::plan::{Plan, Reply};
use support::server::Server;

mod helpers;
#[path = "helpers/pipeline.rs"]
mod pipeline;
#[path = "../examples/support/mod.rs"]
mod support;

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
