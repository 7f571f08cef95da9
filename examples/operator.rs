//! A day of whoever looks after the dead letters: look, repair, replay with care, tidy up.
//!
//! `docs/dead-letters.md` shows these functions. The letters here are made by `park`; in a program, `#[retry]` parks them.

use std::error::Error;
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Actor, BulkOperations, Checkup, DeadLetter, DeadLetterSink, DeadLetterStore, Doctor, Edit, EventQuery, Exporter,
    FailureGroups, Filter, GroupsRequest, Importer, OperationRequest, OperationRunner, PageRequest, Payload,
    PayloadDiff, PruneRequest, ReplayError, ReplayJob, StoreAdmin, Verb,
};
use retry_runtime::{Disposition, StopReason};

type Done = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let directory = tempfile::tempdir()?;
    let store = SqliteStore::open(directory.path().join("jobs.db"))?;
    for n in 0..30 {
        park(&store, n).await;
    }
    look(&store).await?;
    understand(&store).await?;
    repair(&store).await?;
    replay(&store).await?;
    tidy(&store, &directory.path().join("jobs-copy.db")).await?;
    carry(&store, &SqliteStore::open(directory.path().join("elsewhere.db"))?).await?;
    store.close(Duration::from_secs(10));
    Ok(())
}

async fn park(store: &SqliteStore, n: u32) {
    let forbidden = n % 10 == 9;
    let reason = if forbidden { StopReason::Permanent } else { StopReason::Exhausted };
    let mut letter = DeadLetter::new("summarise", reason, SystemTime::now());
    letter.job_id = Some(format!("page-{n}"));
    letter.disposition = if forbidden { Disposition::Permanent } else { Disposition::Retryable };
    letter.class = Some(if forbidden { "forbidden" } else { "timeout" }.into());
    letter.error_message =
        if forbidden { format!("page {n} is not for us") } else { format!("no answer for page {n} after 30.0 s") };
    letter.payload = Payload::Json(format!("{{\"page\":{n},\"model\":\"small\"}}"));
    letter.attempts = 3;
    let parking = store.submit(letter).await;
    assert!(parking.is_kept(), "{parking}");
}

/// What is owed, and what a replay would probably do.
async fn look(store: &SqliteStore) -> Done {
    println!("{}", store.summary().await?);
    println!("{}", store.plan(OperationRequest::new(Verb::Replay, Filter::all())).await?);
    for finding in store.doctor(Checkup::quick()).await? {
        println!("{finding}");
    }
    Ok(())
}

/// The failures that are one failure, with a note for the colleagues.
async fn understand(store: &SqliteStore) -> Done {
    let page = store.groups(GroupsRequest::new(Filter::owed())).await?;
    for group in &page.groups {
        println!("{} letters, e.g. {}", group.counts.letters(), group.newest.error_message);
    }
    if let Some(largest) = page.groups.first() {
        let note = "the provider is at it, until noon".to_owned();
        store.note(largest.counts.fingerprint.clone(), note, Actor::new("ada", "")).await?;
    }
    Ok(())
}

/// One letter's payload is corrected. The old revision stays, and so does who did it.
async fn repair(store: &SqliteStore) -> Done {
    let mut filter = Filter::parked();
    filter.classes.push("forbidden".into());
    let page = store.list(filter, PageRequest::default()).await?;
    let Some(row) = page.rows.first() else { return Ok(()) };
    let Some(detail) = store.get(row.letter_id.clone()).await? else { return Ok(()) };
    let Payload::Json(old) = detail.payload else { return Ok(()) };

    let new = old.replace("small", "large");
    println!("{}", PayloadDiff::between(&old, &new));
    let edit = Edit::new(row.letter_id.clone(), row.payload_revision, new);
    store.edit(edit, Actor::new("ada", "the small model may not see this page")).await?;
    Ok(())
}

/// A durable operation over letters that are frozen now: one first, then ten, then the rest.
async fn replay(store: &SqliteStore) -> Done {
    let mut filter = Filter::parked();
    filter.kinds.push("summarise".into());
    let mut request = OperationRequest::new(Verb::Replay, filter);
    request.options.canary = true;
    request.options.concurrency = 4;
    request.options.rate = Some(1_000.0);
    let operation = store.start(request, Actor::new("ada", "the quota was raised")).await?;

    let runner = OperationRunner::new(store.clone()).on("summarise", summarise);
    let operation = runner.run(operation.id).await?;
    println!("{operation}");
    Ok(())
}

#[derive(serde::Deserialize)]
struct Page {
    page: u32,
    model: String,
}

/// Does a job again; usually this calls the annotated function itself.
async fn summarise(job: ReplayJob) -> Result<(), ReplayError> {
    let page: Page = job.payload()?;
    if page.model == "small" && page.page == 19 {
        return Err(ReplayError::failed("still forbidden"));
    }
    Ok(())
}

/// What nobody will do again is given up aloud; what is closed for long is deleted, and counted; the store is copied.
async fn tidy(store: &SqliteStore, copy: &std::path::Path) -> Done {
    let ada = || Actor::new("ada", "the page is gone");
    let given_up = store.start(OperationRequest::new(Verb::Discard, Filter::parked()), ada()).await?;
    OperationRunner::new(store.clone()).run(given_up.id).await?;
    let month = PruneRequest::older_than(Duration::from_secs(30 * 86_400));
    println!("{} letters deleted", store.prune(month, ada()).await?.total());
    println!("a copy of {} bytes", store.backup(copy).await?.bytes);
    println!("{}", store.summary().await?);
    for event in store.events(EventQuery::all().limit(3)).await?.events {
        println!("{} by {}", event.what, event.actor.unwrap_or_default());
    }
    Ok(())
}

/// Letters travel as lines of JSON, with everything that belongs to them. Importing again changes nothing.
async fn carry(from: &SqliteStore, to: &SqliteStore) -> Done {
    let mut export = Exporter::new(from, Filter::all());
    let mut lines = String::new();
    while let Some(more) = export.next().await? {
        lines.push_str(&more);
    }
    let report = Importer::new(to, Actor::new("ada", "the new machine")).read(lines.as_bytes()).await?;
    println!("{} letters came, {} lines refused", report.new, report.refused.len());
    Ok(())
}
