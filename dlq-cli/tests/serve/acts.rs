//! Everything that can be done, by plain forms.

use std::sync::Arc;
use std::time::Duration;

use dlq_cli::serve::Means;
use retry_runtime::counters::Thresholds as _;
use retry_runtime::dead_letter::{
    Actor, BulkOperations as _, ClaimRequest, DeadLetterStore as _, FailureGroups as _, Filter, GroupsRequest,
    LetterState, MemoryStore, Operation, OperationRunner, OperationStatus, Payload, ReplayError,
};
use retry_runtime::ledger::{AttemptLedger as _, LedgerKey};

use crate::client::{Answer, Client, acting, client, dashboard, events, letter, one, park, store};

async fn operation(store: &MemoryStore, answer: &Answer) -> Operation {
    let to = answer.is(303).header("location");
    let id = to.trim_start_matches("/operations/").split('?').next().unwrap();
    store.operation(id.to_owned()).await.unwrap().unwrap()
}

/// Waits for what another task does.
async fn until(store: &MemoryStore, id: &str, status: OperationStatus) -> Operation {
    for _ in 0..500 {
        let operation = store.operation(id.to_owned()).await.unwrap().unwrap();
        if operation.status == status {
            return operation;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never {status}");
}

/// Follows the button of a plan.
async fn confirm(client: &mut Client, plan: &Answer, more: &[(&str, &str)]) -> Answer {
    let field = |name: &str| {
        let (_, rest) = plan.body.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().replace("&#34;", "\"").replace("&#38;", "&")
    };
    let (verb, filter, expected) = (field("verb"), field("filter"), field("expected"));
    let fields =
        [("verb", verb.as_str()), ("filter", &filter), ("expected", &expected), ("reason", "the quota was raised")];
    let fields: Vec<_> = fields.iter().chain(more).copied().collect();
    client.submit(plan, "/operations", &fields).await
}

// Line 3: without means of its own the operation waits, and the page says for whom.
#[tokio::test]
async fn a_replay_is_planned_started_waits_for_a_worker_and_is_done() {
    let store = store().await;
    let mut client = acting(&store).await;
    let plan = client.page("/operations/new?verb=replay&q=kind%3Afetch+status%3Aparked").await;
    plan.says("Replay 28 letters?").says("20 timeouts: likely to pass").says("8 rate limits: likely to pass");
    plan.says("Replay 28 with the application&#39;s workers</button>");
    assert_eq!(store.operations(None, 10).await.unwrap(), []);
    let started = confirm(&mut client, &plan, &[("rate", "500"), ("concurrency", "4")]).await;
    let op = operation(&store, &started).await;
    assert_eq!((op.counts.total(), op.options.rate, op.options.concurrency), (28, Some(500.0), 4));
    assert_eq!(op.actor, Actor::new("ann", "the quota was raised"));
    let page = client.page(started.header("location")).await;
    page.says("waits for a worker").says(">Pause</button>").says("Cancel the rest").says("28 pending");
    client.page("/").await.says("Operations under way").says("waits for a worker");

    // The application's worker.
    let runner = OperationRunner::new(Arc::clone(&store)).on("fetch", |job| async move {
        if job.job_id == "page-3" { Err(ReplayError::failed("still broken")) } else { Ok(()) }
    });
    runner.run(op.id.clone()).await.unwrap();
    let page = client.page(&format!("/operations/{}", op.id)).await;
    page.says("27 recovered").says("1 still failing").says("28 of 28 ended, 1 failed").says("done, 1 still failing");
    page.lacks(">Pause</button>");
    client
        .page(&format!("/operations/{}?outcome=still_failing", op.id))
        .await
        .says("still failing")
        .lacks(">recovered<");
    // What others did is seen when the numbers are next asked for, a second later at most where that is cheap.
    let until = std::time::Instant::now() + Duration::from_secs(30);
    while !client
        .page("/")
        .await
        .body
        .contains("<dt>recovered in 24 h</dt><dd><a href=\"/letters?q=status%3Arecovered\">27</a>")
    {
        assert!(std::time::Instant::now() < until, "never 27 recovered");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_operation_is_stopped_goes_on_and_is_cancelled() {
    let store = store().await;
    let mut client = acting(&store).await;
    let plan = client.page("/operations/new?verb=replay&all=1").await;
    let started = confirm(&mut client, &plan, &[("canary", "1")]).await;
    let op = operation(&store, &started).await;
    assert!(op.options.canary);
    let at = format!("/operations/{}", op.id);
    client.post(&format!("{at}/pause"), &[]).await.is(303);
    client.page(&at).await.says("paused by hand").says(">Resume</button>").lacks(">Pause</button>");
    client.post(&format!("{at}/pause"), &[]).await.is(409);
    client.post(&format!("{at}/resume"), &[]).await.is(303);
    client.post(&format!("{at}/cancel"), &[]).await.is(303);
    client
        .page(&format!("{at}?said=cancel"))
        .await
        .says("Cancelled. What was done stays done.")
        .lacks(">Resume</button>");
    client.post(&format!("{at}/explode"), &[]).await.is(404);
    client.post("/operations/none/pause", &[]).await.is(400);
}

// Given means of its own, the dashboard runs it, and says so on the buttons.
#[tokio::test]
async fn the_dashboard_replays_by_its_own_means() {
    let store = store().await;
    let runs = Arc::clone(&store);
    let means = Means::own("by `redo-page`", move |id| {
        let runner = OperationRunner::new(Arc::clone(&runs)).on("fetch", |_| async { Ok::<(), ReplayError>(()) });
        Box::pin(async move { runner.run(id).await })
    });
    let mut client = client(&store, dashboard(&store).allow_actions(true).means(means)).await;
    client.page("/").await.says("Replay 20 by “redo-page”");
    let plan = client.page("/operations/new?verb=replay&q=kind%3Afetch").await;
    let started = confirm(&mut client, &plan, &[]).await;
    let op = operation(&store, &started).await;
    let op = until(&store, &op.id, OperationStatus::Done).await;
    assert_eq!(op.counts.to_string(), "28 recovered");
    client.page("/").await.says("2 letters are owed");
}

// B23: what is on the screen is what is hit, and nothing that came later.
#[tokio::test]
async fn what_matches_later_is_shown_before_it_is_touched() {
    let store = store().await;
    let mut client = acting(&store).await;
    let plan = client.page("/operations/new?verb=discard&q=kind%3Afetch").await;
    plan.says("Discard 28 letters?").says("can be").says("until then");
    park(&*store, letter("fetch", "page-new", "timeout")).await;
    let again = confirm(&mut client, &plan, &[]).await;
    again.is(200).says("29 match by now, not 28").says("Discard 29 letters?");
    assert_eq!(store.operations(None, 10).await.unwrap(), [], "nothing was done");
    let started = confirm(&mut client, &again, &[]).await;
    let op = operation(&store, &started).await;
    // Discards need nobody: the dashboard does them.
    let op = until(&store, &op.id, OperationStatus::Done).await;
    assert_eq!(op.counts.to_string(), "29 discarded");
    let plan = client.page("/operations/new?verb=restore&q=status%3Adiscarded").await;
    let started = confirm(&mut client, &plan, &[("more_replays", "2")]).await;
    let op = operation(&store, &started).await;
    until(&store, &op.id, OperationStatus::Done).await;
    assert_eq!(store.count(Filter::parked()).await.unwrap(), 31);
}

#[tokio::test]
async fn selected_letters_are_what_is_meant() {
    let store = store().await;
    let mut client = acting(&store).await;
    client
        .page("/letters?q=owed")
        .await
        .says("type=\"checkbox\"")
        .says("Replay all 30 with the application&#39;s")
        .says("Discard all 30")
        .lacks("Restore all");
    let (a, b) = (one(&*store, "page-1").await.letter_id, one(&*store, "page-2").await.letter_id);
    let plan = client.page(&format!("/operations/new?id={a}&id={b}&verb=discard")).await;
    plan.says("Discard 2 letters?");
    let started = confirm(&mut client, &plan, &[]).await;
    let op = operation(&store, &started).await;
    until(&store, &op.id, OperationStatus::Done).await;
    assert_eq!(one(&*store, "page-1").await.state, LetterState::Discarded);
    assert_eq!(one(&*store, "page-3").await.state, LetterState::Parked);
    let nothing = client.page(&format!("/operations/new?id={a}&verb=replay")).await;
    nothing.says("No letter here can be replayed").lacks("<button class=\"do\">");
}

#[tokio::test]
async fn starting_wants_sense() {
    let store = store().await;
    let mut client = acting(&store).await;
    for (fields, says) in [
        (vec![("verb", "replay"), ("filter", "nonsense"), ("expected", "99")], "is no filter"),
        (vec![("verb", "replay"), ("filter", "{}"), ("expected", "x")], "`expected` is no number"),
        (vec![("verb", "replay"), ("filter", "{}")], "`expected` is no number"),
        (vec![("verb", "replay"), ("filter", "{}"), ("expected", "99"), ("rate", "fast")], "rate is no number"),
        (vec![("verb", "replay"), ("filter", "{}"), ("expected", "99"), ("concurrency", "5000")], "1 to 1024"),
        (vec![("verb", "discard"), ("filter", "{}"), ("expected", "99"), ("reason", " ")], "say why"),
    ] {
        client.post("/operations", &fields).await.is(400).says(says);
    }
    assert_eq!(store.operations(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn one_letter_is_discarded_restored_and_resolved() {
    let store = store().await;
    let mut client = acting(&store).await;
    let id = one(&*store, "page-0").await.letter_id;
    let at = format!("/letters/{id}");
    client.post(&format!("{at}/discard"), &[("reason", " ")]).await.is(400).says("say why");
    let done = client.post(&format!("{at}/discard"), &[("reason", "the page is gone")]).await;
    assert_eq!(done.is(303).header("location"), format!("{at}?said=discarded"));
    client
        .page(&format!("{at}?said=discarded"))
        .await
        .says("Discarded. It can be restored")
        .says("the page is gone")
        .says("parked → discarded");
    client
        .post(&format!("{at}/discard"), &[("reason", "again")])
        .await
        .is(409)
        .says("only a parked or abandoned letter");
    client.post(&format!("{at}/restore"), &[("more_replays", "x")]).await.is(400);
    client.post(&format!("{at}/restore"), &[("more_replays", "2"), ("reason", "it is back")]).await.is(303);
    assert_eq!(one(&*store, "page-0").await.state, LetterState::Parked);
    client.post(&format!("{at}/resolve"), &[("reason", "")]).await.is(400);
    client.post(&format!("{at}/resolve"), &[("reason", "by phone")]).await.is(303);
    let row = one(&*store, "page-0").await;
    assert_eq!((row.state, row.closed_reason.as_deref()), (LetterState::Recovered, Some("resolved_by_hand")));
    client.page(&at).await.says("Resolved by hand").says("by ann");
    client.post("/letters/none/discard", &[("reason", "x")]).await.is(400);
    client.post(&format!("{at}/explode"), &[("reason", "x")]).await.is(404);
}

#[tokio::test]
async fn a_letter_is_taken_from_a_replay_by_force() {
    let store = store().await;
    let mut client = acting(&store).await;
    let mut claim = ClaimRequest::new(["fetch"], "worker-7");
    claim.filter.job_ids.push("page-0".to_owned());
    store.claim(claim, Actor::new("worker-7", "")).await.unwrap();
    let at = format!("/letters/{}", one(&*store, "page-0").await.letter_id);
    client
        .page(&at)
        .await
        .says("Being replayed by worker-7; the lease ends in")
        .says("Take it from the replay that holds it");
    client.post(&format!("{at}/release"), &[("reason", "it hangs")]).await.is(303);
    assert_eq!(one(&*store, "page-0").await.state, LetterState::Parked);
}

// E92: an edit shows what it changes, and is a revision.
#[tokio::test]
async fn a_payload_is_edited_with_its_differences() {
    let store = store().await;
    let mut client = acting(&store).await;
    let id = one(&*store, "page-0").await.letter_id;
    let at = format!("/letters/{id}/edit");
    let edit = client.post(&at, &[]).await;
    edit.is(200).says("&#34;page&#34;: 7").says("name=\"base\" value=\"1\"").lacks("Save this");
    let bad = client.submit(&edit, &at, &[("step", "review"), ("base", "1"), ("payload", "{\"page\": }")]).await;
    bad.is(200).says("is not JSON").says("{&#34;page&#34;: }").lacks("Save this");
    let new = "{\r\n  \"job\": \"page-0\",\r\n  \"password\": \"hunter2\",\r\n  \"page\": 8\r\n}";
    let fields = [("step", "review"), ("base", "1"), ("payload", new), ("reason", "off by one")];
    let review = client.submit(&edit, &at, &fields).await;
    review.is(200).says("~ /page: 7 -&#62; 8").says("Save this as a new revision").says("off by one");
    assert_eq!(one(&*store, "page-0").await.payload_revision, 1, "looking changes nothing");
    let fields = [("step", "save"), ("base", "1"), ("payload", new), ("reason", "off by one")];
    let saved = client.submit(&review, &at, &fields).await;
    assert_eq!(saved.is(303).header("location"), format!("/letters/{id}?said=edited"));
    let detail = store.get(id.clone()).await.unwrap().unwrap();
    let Payload::Json(json) = &detail.payload else { panic!("{detail:?}") };
    assert_eq!(json, &new.replace("\r\n", "\n"));
    let page = client.page(&format!("/letters/{id}")).await;
    page.says("revision 2 of 2").says("ann: off by one").says("in use");
    // Somebody was faster.
    let late = client.submit(&review, &at, &[("step", "save"), ("base", "1"), ("payload", "{}")]).await;
    late.is(200).says("is at revision 2, and the edit was made from revision 1");
    let same = client.submit(&review, &at, &[("step", "save"), ("base", "2"), ("payload", json)]).await;
    assert!(same.is(303).header("location").ends_with("said=same"));
}

#[tokio::test]
async fn notes_thresholds_and_keys() {
    let store = store().await;
    let mut client = acting(&store).await;
    let group = store.groups(GroupsRequest::new(Filter::owed())).await.unwrap().groups.remove(0).counts.fingerprint;
    let noted =
        client.post("/groups/note", &[("group", &group), ("note", "the vendor knows"), ("from", "Groups")]).await;
    assert_eq!(noted.is(303).header("location"), "/groups?said=noted");
    client.page("/groups").await.says("the vendor knows").says("ann, now");

    client
        .post("/counters/threshold", &[("operation", "archive"), ("counter", "bytes"), ("above", "500")])
        .await
        .is(303);
    assert_eq!(store.thresholds().await.unwrap()[0].above, 500);
    client
        .post("/counters/threshold", &[("operation", "archive"), ("counter", "bytes"), ("above", "many")])
        .await
        .is(400);
    client.post("/counters/threshold", &[("operation", "archive"), ("counter", "bytes"), ("above", "")]).await.is(303);
    assert_eq!(store.thresholds().await.unwrap(), []);

    let key = LedgerKey::new("archive", "https://example.org/");
    let _begun = store.begin(key.clone(), 3).await.unwrap();
    client
        .post("/ledger/reset", &[("scope", "archive"), ("key", "https://example.org/")])
        .await
        .is(400)
        .says("say why");
    let reset = [("scope", "archive"), ("key", "https://example.org/"), ("reason", "the site is back")];
    client.post("/ledger/reset", &reset).await.is(303);
    assert_eq!(store.entry(key).await.unwrap().unwrap().attempts, 0);
    assert_eq!(events(&*store, 1).await[0].0, "ledger_reset");
    client.post("/ledger/reset", &[("scope", "archive"), ("key", "none"), ("reason", "x")]).await.is(404);
}

// Numbers follow what was done here at once, and are asked for once however many look.
#[tokio::test]
async fn the_first_page_follows_what_was_done() {
    let store = store().await;
    let mut client = acting(&store).await;
    client.page("/").await.says("30 letters are owed");
    for n in 0..3 {
        let id = one(&*store, &format!("page-{n}")).await.letter_id;
        client.post(&format!("/letters/{id}/discard"), &[("reason", "x")]).await.is(303);
        client.page("/").await.says(&format!("{} letters are owed", 29 - n));
    }
}
