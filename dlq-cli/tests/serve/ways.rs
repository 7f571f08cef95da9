//! Ways through the pages: what a list shows before anybody filters, how to go back, who is found by which word.

use std::sync::Arc;

use dlq_cli::serve::Means;
use retry_runtime::Disposition;
use retry_runtime::dead_letter::{
    Actor, BulkOperations as _, DeadLetterStore as _, Filter, MemoryStore, OperationRequest, OperationRunner,
    OperationStatus, ReplayError, Verb,
};

use crate::client::{Client, acting, client, dashboard, letter, one, park, store};
use crate::night::acting_on;

// As the command's list: what is owed, unless something else is asked for.
#[tokio::test]
async fn lists_show_what_is_owed_until_asked_otherwise() {
    let store = store().await;
    store.discard(one(&*store, "page-3").await.letter_id, Actor::new("ann", "")).await.unwrap();
    let mut client = acting(&store).await;
    let page = client.page("/letters").await;
    page.says("What is owed. <strong>29 of 29 matching").says("href=\"/letters?all=1\">All letters, closed ones too");
    page.says("Replay all 29");
    let page = client.page("/letters?all=1").await;
    page.says("30 of 30 matching")
        .says("All letters, closed ones too.")
        .says("Only what is owed")
        .says("Restore all 1");
    client.page("/letters?q=class%3Atimeout").await.says("What is owed. <strong>21 of 21");
    client.page("/letters?q=class%3Atimeout&all=1").await.says("<strong>22 of 22");
    client.page("/letters?q=status%3Adiscarded").await.says("1 of 1 matching").lacks("What is owed.");
    // Groups as well.
    client.page("/groups").await.says(">19 letters</a>").says("All failures, closed ones too");
    client.page("/groups?all=1").await.says(">20 letters</a>").says("1 discarded");
    client.page("/groups?q=kind%3Asummarise").await.says(">2 letters</a>").lacks("rate_limit");
    client.get("/groups?q=colour%3Ared").await.is(400).says("`colour` is no filter").says("aria-invalid");
}

// What a card counts is what its buttons mean.
#[tokio::test]
async fn a_button_of_a_filtered_group_keeps_the_filter() {
    let store = Arc::new(MemoryStore::new());
    for (job, verdict) in [("a", Disposition::Retryable), ("b", Disposition::Unknown)] {
        let mut one = letter("fetch", job, "timeout");
        one.disposition = verdict;
        park(&*store, one).await;
    }
    let mut client = acting_on(&store);
    let page = client.page("/groups?q=verdict%3Aunknown").await;
    page.says("Replay 1 with");
    let (_, to) = page.body.split_once("class=\"act\" href=\"").unwrap();
    let to = to.split('"').next().unwrap().replace("&#38;", "&");
    client.page(&to).await.says("Replay 1 letter?");
}

// By the beginning of a job, as the command finds it, in whatever state.
#[tokio::test]
async fn a_word_is_a_job_or_the_beginning_of_some() {
    let store = store().await;
    store.discard(one(&*store, "page-12").await.letter_id, Actor::new("ann", "")).await.unwrap();
    let mut client = acting(&store).await;
    let page = client.page("/letters?q=page-2").await;
    page.says("1 of 1 matching").says("Letters of the job page-2");
    client.page("/letters?q=page-12").await.says("1 of 1 matching").says("discarded");
    let page = client.page("/letters?q=pag").await;
    page.says("30 of 30 matching").says("whose job or id begins with pag").says("Discard all 29");
    client
        .page("/letters?q=exhausted")
        .await
        .says("0 of 0 matching")
        .says("No job and no letter begins with exhausted");
}

#[tokio::test]
async fn nothing_ticked_is_said_on_the_list() {
    let store = store().await;
    let mut client = acting(&store).await;
    let to = client.get("/operations/new?selection=1&listed=class%3Atimeout&verb=discard").await;
    let to = to.is(303).header("location").to_owned();
    assert_eq!(to, "/letters?q=class%3Atimeout&said=none-selected");
    client.page(&to).await.says("No letter was selected, and nothing was done").says("22 of 22 matching");
    assert_eq!(store.operations(None, 1).await.unwrap(), []);
}

#[tokio::test]
async fn a_plan_can_be_left_and_says_what_need_not_be_said() {
    let store = store().await;
    let mut client = acting(&store).await;
    let plan = client.page("/operations/new?verb=replay&q=kind%3Afetch").await;
    plan.says("<a class=\"plain\" href=\"/letters?q=kind%3Afetch\">Cancel</a>")
        .says("Why (optional;")
        .says("(optional; empty:");
    let id = one(&*store, "page-0").await.letter_id;
    let plan = client.page(&format!("/operations/new?verb=discard&q=id%3A{id}")).await;
    plan.says(&format!("href=\"/letters/{id}\">Cancel</a>")).says("Why (needed");
}

async fn enqueued(store: &MemoryStore) -> String {
    let mut filter = Filter::parked();
    filter.kinds.push("summarise".to_owned());
    store.start(OperationRequest::new(Verb::Replay, filter), Actor::new("bob", "")).await.unwrap().id
}

// Line 3: an operation that the command left to others is run by whoever presses the button, where there are means.
#[tokio::test]
async fn what_waits_for_a_worker_can_be_run_here() {
    let store = store().await;
    let id = enqueued(&store).await;
    let at = format!("/operations/{id}");
    let mut without = acting(&store).await;
    let page = without.page(&at).await;
    page.says("waits for a worker").says(&format!("<code>dlq replay --resume {id} --exec COMMAND</code>"));
    page.lacks("Run it here");
    without.post(&format!("{at}/run"), &[]).await.is(400).says("has no means to");
    without.page("/").await.says("waits for a worker");

    let runs = Arc::clone(&store);
    let means = Means::own("by `redo-page`", move |id| {
        let runner = OperationRunner::new(Arc::clone(&runs)).on("summarise", |job| async move {
            if job.job_id == "page-28" { Err(ReplayError::failed("still broken")) } else { Ok(()) }
        });
        Box::pin(async move { runner.run(id).await })
    });
    let only_looking = dashboard(&store).means(means.clone());
    Client::new(only_looking.router()).page(&at).await.lacks("Run it here");
    let mut with = client(&store, dashboard(&store).allow_actions(true).means(means)).await;
    with.page(&at).await.says(">Run it here</button>").lacks("dlq replay --resume");
    with.post(&format!("{at}/run"), &[]).await.is(303);
    while !store.operation(id.clone()).await.unwrap().unwrap().status.is_over() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    with.post(&format!("{at}/run"), &[]).await.is(409).says("it is done");

    // It is over: the page says how, of which jobs, and nothing of its beginning.
    let page = with.page(&format!("{at}?said=started")).await;
    page.says("Replay of 2 letters: <span class=\"status failed\">done, 1 still failing</span>");
    page.lacks("its members are frozen").says(">page-28</a>").says("2 of 2 ended, 1 failed");
    let (_, main) = page.body.split_once("<main").unwrap();
    assert!(!main.contains(&format!("href=\"{at}\">operation")), "no row of it leads to itself");
    assert!(!main.contains(&format!("class=\"big\" href=\"{at}\"")), "nor does its title");
    assert_eq!(store.operation(id).await.unwrap().unwrap().status, OperationStatus::Done);
}

#[tokio::test]
async fn the_audit_is_asked_by_hand_by_letter_by_actor_and_since() {
    let store = store().await;
    for n in 0..60 {
        park(&*store, letter("audited", &format!("more-{n}"), "timeout")).await;
        let id = one(&*store, &format!("more-{n}")).await.letter_id;
        store.discard(id, Actor::new(if n % 2 == 0 { "Bea" } else { "carl" }, format!("reason {n}"))).await.unwrap();
    }
    let mut client = Client::new(dashboard(&store).router());
    // Only what people did, on pages that end where they should.
    let (mut path, mut seen) = ("/audit?by=hand".to_owned(), 0);
    loop {
        let page = client.page(&path).await;
        page.lacks("data-label=\"what\">parked</td>").says(">more-");
        seen += page.body.matches("data-label=\"what\">discarded</td>").count();
        let Some((_, next)) = page.body.split_once("rel=\"next\" href=\"") else { break };
        path = next.split('"').next().unwrap().replace("&#38;", "&");
        assert!(path.contains("by=hand"), "{path}");
    }
    assert_eq!(seen, 60);
    let page = client.page("/audit?by=hand&actor=bea").await;
    page.says("reason 58").lacks("reason 59").lacks("Older events").says("value=\"bea\"");
    let page = client.page("/audit?letter=more-7").await;
    page.is(200).lacks("reason 8");
    page.says("reason 7").says("data-label=\"what\">parked</td>");
    client.get("/audit?letter=more").await.is(400).says("means several letters");
    client.get("/audit?letter=nobody").await.is(400).says("no letter or job begins with");
    client.get("/audit?since=never").await.is(400).says("`never` is no time");
    client.page("/audit?since=1h&actor=dora").await.says("Nothing of the kind happened here.");
}

// A letter shows one line for the looks of one person, and what was planned as planned.
#[tokio::test]
async fn looks_at_a_payload_are_one_line() {
    let store = store().await;
    let mut waited = letter("fetch", "page-w", "timeout");
    for record in &mut waited.history {
        record.wait = Some(std::time::Duration::from_secs(8));
    }
    park(&*store, waited).await;
    let id = one(&*store, "page-w").await.letter_id;
    let mut client = acting(&store).await;
    for _ in 0..2 {
        client.post(&format!("/letters/{id}/payload"), &[]).await.is(200);
        client.post(&format!("/letters/{id}/edit"), &[]).await.is(200);
    }
    let page = client.page(&format!("/letters/{id}")).await;
    assert_eq!(page.body.matches("<strong>payload shown").count(), 1, "{}", page.body);
    page.says("payload shown 4 times").says("redacted, revision 1; in full, to edit it, revision 1");
    page.says("planned until the next").lacks("then waited");
}

#[tokio::test]
async fn parkings_are_counted_and_a_page_that_is_none_says_only_that() {
    let store = store().await;
    let mut client = Client::new(dashboard(&store).router());
    let page = client.page("/counters").await;
    page.says("dead letters: parkings").says("30 in 30 days").lacks("Nothing was counted");
    client.get("/nonesuch").await.is(404).says("there is no such page").lacks("retention");
}
