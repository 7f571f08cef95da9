//! B3, the image archiver: the built example against two routes that misbehave as scripted.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use std::collections::BTreeMap;
use std::path::PathBuf;

use dlq_sqlite::SqliteStore;
use helpers::{Outcome, Run, Scratch, database, example, run};
use retry_runtime::dead_letter::{DeadLetterStore, Filter, PageRequest};
use support::plan::{Plan, Reply};
use support::server::Server;

mod helpers;
#[path = "../examples/support/mod.rs"]
mod support;

/// An archive whose both routes are one server.
struct Archive {
    server: Server,
    urls: PathBuf,
    db: PathBuf,
    scratch: Scratch,
}

fn url(name: &str) -> String {
    format!("https://images.example/{name}.png")
}

/// Scripts for the worker and for the direct route, by name of the image.
type Scripts<'a> = [(&'a str, &'a [Reply], &'a [Reply])];

impl Archive {
    async fn new(images: &Scripts<'_>) -> std::io::Result<Self> {
        let scratch = Scratch::new();
        let urls = scratch.lines("urls.txt", images.iter().map(|(name, ..)| url(name)));
        Ok(Self { server: Server::start(plan(images)).await?, urls, db: scratch.path("archive.db"), scratch })
    }

    /// The same archive an hour later: the routes are asked anew, the database is kept.
    async fn later(self, images: &Scripts<'_>) -> std::io::Result<Self> {
        Ok(Self { server: Server::start(plan(images)).await?, ..self })
    }

    async fn go(&self) -> Result<Run, Box<dyn std::error::Error>> {
        let mut command = example("image_archive");
        command.arg("--urls").arg(&self.urls).arg("--db").arg(&self.db).args(["--time-scale", "0.001"]);
        let run = run(command.args(["--worker-url", self.server.url(), "--direct-url", self.server.url()])).await?;
        // Whatever happened to single images, the batch ran to its end.
        assert!(run.status.success(), "{run:?}");
        Ok(run)
    }

    /// How often each route was asked for an image.
    fn asked(&self, name: &str) -> (usize, usize) {
        (self.server.asked(&format!("worker:{}", url(name))), self.server.asked(&format!("direct:/{name}.png")))
    }

    fn ledger(&self, name: &str) -> rusqlite::Result<(String, i64)> {
        database(&self.db)?.query_row(
            "SELECT status, attempts FROM attempt_ledger WHERE key = ?1 AND scope = 'image_archive'",
            [url(name)],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    fn counters(&self) -> rusqlite::Result<BTreeMap<String, i64>> {
        let database = database(&self.db)?;
        let mut rows = database.prepare("SELECT counter, value FROM daily_stats WHERE operation = 'image_archive'")?;
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }
}

fn plan(images: &Scripts<'_>) -> Plan {
    images.iter().fold(Plan::good(), |plan, (name, worker, direct)| {
        plan.script(format!("worker:{}", url(name)), *worker).script(format!("direct:/{name}.png"), *direct)
    })
}

const GOOD: Reply = Reply::Good(1_000);

// B3.1, B3.2: gone is final on either route: not tried again, no second route, nothing to replay.
#[tokio::test]
async fn gone_is_a_final_answer() -> Outcome {
    let images: &Scripts = &[
        ("missing", &[Reply::Status(404)], &[GOOD]),
        ("removed", &[Reply::Status(410)], &[GOOD]),
        ("gone-directly", &[Reply::Status(403)], &[Reply::Status(404)]),
    ];
    let archive = Archive::new(images).await?;
    assert_eq!(archive.go().await?.last_line(), "fetched=0 fallback=0 gone=3 failed=0 skipped=0 degraded=no");
    assert_eq!((archive.asked("missing"), archive.asked("removed")), ((1, 0), (1, 0)));
    assert_eq!(archive.asked("gone-directly"), (1, 1));
    for (name, ..) in images {
        assert_eq!(archive.ledger(name)?, ("gone".into(), 1), "{name}");
    }
    let letters: i64 = database(&archive.db)?.query_row("SELECT count(*) FROM dead_letter", [], |row| row.get(0))?;
    assert_eq!(letters, 0);
    let later = archive.later(&[]).await?;
    assert_eq!(later.go().await?.last_line(), "fetched=0 fallback=0 gone=0 failed=0 skipped=3 degraded=no");
    assert!(later.server.seen().is_empty(), "what is gone was asked for again");
    Ok(())
}

// B3.1: a page instead of an image, a refusal, a time-out may depend on the route: the other one is asked.
// B3.2: a refusal goes on at once; anything else is tried three times first.
#[tokio::test]
async fn what_depends_on_the_route_goes_to_the_other() -> Outcome {
    let archive = Archive::new(&[
        ("refused", &[Reply::Status(403)], &[GOOD]),
        ("illegal", &[Reply::Status(451)], &[GOOD]),
        ("page", &[Reply::Html], &[GOOD]),
        ("slow", &[Reply::Hang], &[GOOD]),
        ("cut", &[Reply::Cut], &[GOOD]),
        ("broken", &[Reply::Status(500)], &[GOOD]),
        ("hiccup", &[Reply::Status(503), GOOD], &[GOOD]),
        ("fine", &[GOOD], &[GOOD]),
    ])
    .await?;
    assert_eq!(archive.go().await?.last_line(), "fetched=2 fallback=6 gone=0 failed=0 skipped=0 degraded=no");
    for refused in ["refused", "illegal"] {
        assert_eq!(archive.asked(refused), (1, 1), "{refused}");
    }
    for failing in ["page", "slow", "cut", "broken"] {
        assert_eq!(archive.asked(failing), (3, 1), "{failing}");
    }
    assert_eq!((archive.asked("hiccup"), archive.asked("fine")), ((2, 0), (1, 0)));
    Ok(())
}

// B3.2: the direct route is asked for path and query, once.
#[tokio::test]
async fn the_direct_route_is_tried_once() -> Outcome {
    let archive = Archive::new(&[]).await?;
    archive.scratch.lines("urls.txt", ["https://images.example/a/b.png?size=2&x=%20"]);
    let plan = Plan::good()
        .script("worker:https://images.example/a/b.png?size=2&x=%20", [Reply::Status(403)])
        .script("direct:/a/b.png?size=2&x=%20", [Reply::Status(500)]);
    let archive = Archive { server: Server::start(plan).await?, ..archive };
    assert_eq!(archive.go().await?.last_line(), "fetched=0 fallback=0 gone=0 failed=1 skipped=0 degraded=no");
    let asked: Vec<_> = archive.server.seen().into_iter().map(|seen| seen.uri).collect();
    let encoded = "/fetch?url=https%3A%2F%2Fimages.example%2Fa%2Fb.png%3Fsize%3D2%26x%3D%2520";
    assert_eq!(asked, [encoded, "/a/b.png?size=2&x=%20"]);
    Ok(())
}

// B3.3: ok: never again; failed: while its attempts are below three; across restarts.
#[tokio::test]
async fn the_ledger_remembers_across_restarts() -> Outcome {
    let images: &Scripts = &[("good", &[GOOD], &[]), ("bad", &[Reply::Status(403)], &[Reply::Status(403)])];
    let mut archive = Archive::new(images).await?;
    let mut lines = Vec::new();
    for _ in 0..5 {
        lines.push(archive.go().await?.last_line().to_owned());
        archive = archive.later(images).await?;
    }
    let again = "fetched=0 fallback=0 gone=0 failed=1 skipped=1 degraded=no";
    let done = "fetched=0 fallback=0 gone=0 failed=0 skipped=2 degraded=no";
    assert_eq!(lines, ["fetched=1 fallback=0 gone=0 failed=1 skipped=0 degraded=no", again, again, done, done]);
    assert_eq!(archive.ledger("good")?, ("ok".into(), 1));
    assert_eq!(archive.ledger("bad")?, ("open".into(), 3));
    Ok(())
}

// B3.4: a refusal by one route is not the end: the ledger says ok after the other's success, open after its failure.
#[tokio::test]
async fn a_refusal_does_not_mean_gone() -> Outcome {
    let archive = Archive::new(&[
        ("saved", &[Reply::Status(403)], &[GOOD]),
        ("owed", &[Reply::Status(451)], &[Reply::Status(403)]),
    ])
    .await?;
    assert_eq!(archive.go().await?.last_line(), "fetched=0 fallback=1 gone=0 failed=1 skipped=0 degraded=no");
    assert_eq!(archive.ledger("saved")?, ("ok".into(), 1));
    assert_eq!(archive.ledger("owed")?, ("open".into(), 1));
    let class: String = database(&archive.db)?.query_row(
        "SELECT error_class FROM dead_letter WHERE job_id = ?1",
        [url("owed")],
        |row| row.get(0),
    )?;
    assert!(class.starts_with("permanent:"), "{class}");
    Ok(())
}

// B3.5
#[tokio::test]
async fn counters_are_kept_apart() -> Outcome {
    let archive = Archive::new(&[
        ("a", &[GOOD], &[]),
        ("b", &[Reply::Status(500), GOOD], &[]),
        ("c", &[Reply::Status(403)], &[Reply::Good(2_000)]),
        ("d", &[Reply::Status(500)], &[Reply::Good(3_000)]),
        ("e", &[Reply::Status(451)], &[Reply::Status(500)]),
        ("f", &[Reply::Status(404)], &[]),
        ("g", &[Reply::Status(403)], &[Reply::Status(410)]),
    ])
    .await?;
    assert_eq!(archive.go().await?.last_line(), "fetched=2 fallback=2 gone=2 failed=1 skipped=0 degraded=no");
    let expected = [
        ("fallback_bytes", 5_000),
        ("fallback_failed", 1),
        ("fallback_ok", 2),
        ("worker_ok", 2),
        ("worker_refused", 3),
    ];
    assert_eq!(archive.counters()?, expected.map(|(name, n)| (name.to_owned(), n)).into());
    Ok(())
}

// B3.5: above 500,000 bytes a day, not at it, and over all runs of the day.
#[tokio::test]
async fn many_fallback_bytes_show_as_degraded() -> Outcome {
    let big: &Scripts = &[("big", &[Reply::Status(403)], &[Reply::Good(500_000)])];
    let archive = Archive::new(big).await?;
    assert_eq!(archive.go().await?.last_line(), "fetched=0 fallback=1 gone=0 failed=0 skipped=0 degraded=no");
    archive.scratch.lines("urls.txt", [url("small")]);
    let archive = archive.later(&[("small", &[Reply::Status(403)], &[Reply::Good(8)])]).await?;
    assert_eq!(archive.go().await?.last_line(), "fetched=0 fallback=1 gone=0 failed=0 skipped=0 degraded=yes");
    Ok(())
}

/// A batch with every ending, for stores that fail.
const EVERY: &Scripts = &[
    ("good", &[GOOD], &[]),
    ("saved", &[Reply::Status(403)], &[GOOD]),
    ("gone", &[Reply::Status(404)], &[]),
    ("bad", &[Reply::Status(403)], &[Reply::Status(500)]),
];
const EVERY_ENDING: &str = "fetched=1 fallback=1 gone=1 failed=1 skipped=0 degraded=no";

// B3.6: a database that cannot even be opened.
#[tokio::test]
async fn without_books_everything_is_fetched_all_the_same() -> Outcome {
    let archive = Archive::new(EVERY).await?;
    std::fs::create_dir(&archive.db)?;
    let run = archive.go().await?;
    assert_eq!(run.last_line(), EVERY_ENDING, "{run:?}");
    assert!(run.stderr.contains("archive.db"), "nobody says that the books are not kept: {run:?}");
    Ok(())
}

// B3.6: a database that another program holds locked.
#[tokio::test]
async fn locked_books_do_not_stop_a_fetch() -> Outcome {
    let archive = Archive::new(&[]).await?;
    archive.go().await?; // makes the database
    let lock = rusqlite::Connection::open(&archive.db)?;
    lock.execute_batch("BEGIN IMMEDIATE")?;
    archive.scratch.lines("urls.txt", EVERY.iter().map(|(name, ..)| url(name)));
    let archive = archive.later(EVERY).await?;
    let run = archive.go().await?;
    assert_eq!(run.last_line(), EVERY_ENDING, "{run:?}");
    assert!(run.stderr.contains("archive.db"), "nobody says that the books are not kept: {run:?}");
    drop(lock);
    // The dead letter waited in the spill file, and whoever opens the store next brings it in.
    let store = SqliteStore::open(&archive.db)?;
    while store.count(Filter::all()).await? == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.list(Filter::all(), PageRequest::default()).await?.rows[0].job_id, url("bad"));
    Ok(())
}

// B3.7
#[tokio::test]
async fn one_bad_key_never_stops_the_batch() -> Outcome {
    let archive = Archive::new(&[
        ("slow", &[Reply::Hang], &[Reply::Hang]),
        ("cut", &[Reply::Cut], &[Reply::Cut]),
        ("fine", &[GOOD], &[]),
    ])
    .await?;
    archive
        .scratch
        .lines("urls.txt", ["no url at all", "ftp://images.example/x", &url("slow"), &url("cut"), &url("fine")]);
    let plan = plan(&[("slow", &[Reply::Hang], &[Reply::Hang]), ("cut", &[Reply::Cut], &[Reply::Cut])])
        .script("worker:no url at all", [Reply::Status(403)])
        .script("worker:ftp://images.example/x", [Reply::Status(403)])
        .script("direct:/x", [Reply::Status(403)]);
    let archive = Archive { server: Server::start(plan).await?, ..archive };
    let run = archive.go().await?;
    assert_eq!(run.last_line(), "fetched=1 fallback=0 gone=0 failed=4 skipped=0 degraded=no", "{run:?}");
    Ok(())
}
