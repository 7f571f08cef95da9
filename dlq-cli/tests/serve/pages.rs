//! Every page, read without JavaScript.

use std::sync::Arc;

use retry_runtime::counters::{DailyCounters as _, Thresholds as _};
use retry_runtime::dead_letter::{Actor, DeadLetterStore as _, MemoryStore};
use retry_runtime::ledger::{AttemptLedger as _, Begin, End, LedgerKey};

use crate::client::{Client, acting, client, dashboard, letter, one, park, store};

// Line 3: the first screen.
#[tokio::test]
async fn the_first_page_answers_what_is_asked_at_night() {
    let store = store().await;
    let id = one(&*store, "page-3").await.letter_id;
    store.discard(id, Actor::new("ann", "the page is gone")).await.unwrap();
    let mut client = acting(&store).await;
    let page = client.page("/").await;
    page.says("29 letters are owed, the oldest for ").says("Still arriving: 30 since the full hour");
    page.says("/var/lib/shop/jobs.db");
    for (name, value) in [
        ("parked", ">29</a>"),
        ("replaying", ">0</a>"),
        ("abandoned", ">0</a>"),
        ("spilled", "<dd>0</dd>"),
        ("lost", "<dd>0</dd>"),
    ] {
        let (_, tile) = page.body.split_once(&format!("<dt>{name}</dt>")).unwrap();
        assert!(tile[..tile.find("</div>").unwrap()].contains(value), "{name}: {tile}");
    }
    // Buttons print their scope and their means.
    page.says("Replay 19 with the application&#39;s workers").says("Discard 19").says("Replay 8 with");
    page.says("no answer of fetch: timeout").says("shop::FetchError");
    // The sparkline is drawn on the server.
    page.says("<svg class=\"spark\"").says("20 parkings in the last 24 hours");
    page.says("exhausted:timeout").says("Class and age");
    page.says("ann discarded").says("<dt>health</dt>");
}

#[tokio::test]
async fn an_empty_store_says_that_nothing_is_owed() {
    let store = Arc::new(MemoryStore::new());
    let mut client = Client::new(dashboard(&store).router());
    client.page("/").await.says("Nothing is owed.").says("Nothing came in this hour");
    client.page("/letters").await.says("0 of 0 matching");
    client.page("/groups").await.says("Nothing is owed.");
    client.page("/operations").await.says("No operation was ever started here");
    client.page("/ledger").await.says("counts attempts per key");
    client.page("/counters").await.says("Nothing was counted");
    client.page("/audit").await;
}

#[tokio::test]
async fn the_list_is_filtered_counted_and_paged() {
    let store = Arc::new(MemoryStore::new());
    for n in 0..120 {
        park(&*store, letter("fetch", &format!("job-{n:03}"), if n % 3 == 0 { "timeout" } else { "dns" })).await;
    }
    let mut client = Client::new(dashboard(&store).router());
    let (mut path, mut seen, mut pages) = ("/letters?q=class%3Adns".to_owned(), Vec::new(), 0);
    loop {
        let page = client.page(&path).await;
        page.says("80 matching");
        seen.extend(page.body.split(">job-").skip(1).map(|rest| rest[..3].to_owned()));
        pages += 1;
        let Some((_, next)) = page.body.split_once("rel=\"next\" href=\"") else { break };
        path = next.split('"').next().unwrap().replace("&#38;", "&");
    }
    assert_eq!((pages, seen.len()), (2, 80));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 80, "each letter on one page");
    client.page("/letters?q=job-007").await.says("1 of 1 matching").says("job-007");
    let id = one(&*store, "job-009").await.letter_id;
    client.page(&format!("/letters?q={id}")).await.says("job-009");
    client.page("/letters?q=status%3Arecovered").await.says("0 of 0 matching");
    client.page("/letters?q=owed&order=oldest").await.says("newest first");
    let wrong = client.get("/letters?q=colour%3Ared").await;
    wrong.is(400).says("`colour` is no filter: accepted are kind").says("value=\"colour:red\"").says("aria-invalid");
}

#[tokio::test]
async fn a_letter_tells_its_story_and_hides_its_payload() {
    let store = store().await;
    let id = one(&*store, "page-5").await.letter_id;
    let mut client = client(&store, dashboard(&store)).await;
    let page = client.page(&format!("/letters/{id}")).await;
    page.says("page-5").says("Parked: it waits for a replay.").says("no answer of fetch: timeout");
    page.says("live call, attempt 3").says("after 1.2 s").says("3 recorded of 3 ever made").says("timeout 504");
    page.says("idempotency key").says(&format!("{id}.1")).says("<strong>parked</strong>");
    page.lacks("hunter2").lacks("&#34;page&#34;").says("Show the payload without its secrets");
    client.get("/letters/none").await.is(404).says("there is no such letter");
}

#[tokio::test]
async fn the_ledger_is_read_by_scope_and_status() {
    let store = store().await;
    for n in 0..60 {
        let key = LedgerKey::new("archive", format!("https://example.org/{n}"));
        let Begin::Go { token, .. } = store.begin(key.clone(), 5).await.unwrap() else { panic!("refused") };
        store.end(key, token, if n < 3 { End::Gone } else { End::Ok }).await.unwrap();
    }
    let mut client = Client::new(dashboard(&store).router());
    let page = client.page("/ledger").await;
    page.says("0 open, 57 ok, 3 gone").says("Next keys").lacks("Open this key again");
    let gone = client.page("/ledger?scope=archive&status=gone").await;
    gone.says("https://example.org/1").lacks("https://example.org/7").lacks("Next keys");
}

#[tokio::test]
async fn counters_are_drawn_with_the_line_above_which_a_day_is_degraded() {
    let store = store().await;
    store.add("archive", "fallback_bytes", 700).await.unwrap();
    store.add("archive", "worker_ok", 5).await.unwrap();
    store.set_threshold("archive".into(), "fallback_bytes".into(), 500, Actor::new("ann", "")).await.unwrap();
    let mut client = Client::new(dashboard(&store).router());
    let page = client.page("/counters").await;
    page.says("archive: fallback_bytes").says("degraded above 500").says("1 degraded").says("class=\"limit\"");
    page.says("data-above=\"500\"").says("<td class=\"n\" data-value=\"700\">700 degraded</td>");
    assert_eq!(page.body.matches("<svg class=\"days\"").count(), 3);
    client.page("/").await.says("degraded today: archive: fallback_bytes is 700");
    client.page("/counters?operation=other").await.says("Nothing was counted");
}

#[tokio::test]
async fn the_audit_is_paged_and_says_who_and_why() {
    let store = store().await;
    for n in 0..30 {
        let id = one(&*store, &format!("page-{n}")).await.letter_id;
        store.discard(id, Actor::new("bea", format!("reason {n}"))).await.unwrap();
    }
    let mut client = Client::new(dashboard(&store).router());
    let page = client.page("/audit").await;
    page.says("bea").says("reason 29").says("parked → discarded").says("Older events");
    let (_, next) = page.body.split_once("rel=\"next\" href=\"").unwrap();
    let older = client.page(&next.split('"').next().unwrap().replace("&#38;", "&")).await;
    older.says("parked").lacks("reason 29");
}

// Mounted in a service: links stay inside.
#[tokio::test]
async fn it_lives_under_a_path_of_a_service() {
    let store = store().await;
    let inner = dashboard(&store).allow_actions(true).mounted_at("/ops/dead/").router();
    let mut client = Client::new(axum::Router::new().merge(inner));
    let page = client.page("/ops/dead/").await;
    for place in ["href=\"", "action=\"", "src=\""] {
        for link in page.body.split(place).skip(1) {
            assert!(link.starts_with('#') || link.starts_with("/ops/dead/"), "{place}{}", &link[..60]);
        }
    }
    page.says("data-live=\"/ops/dead/live\"");
    client.page("/ops/dead").await.says("letters are owed");
    client.get("/ops/dead/nothing/here").await.is(404).says("no such page");
    let id = one(&*store, "page-0").await.letter_id;
    client.forms_at = format!("/ops/dead/letters/{id}");
    let done = client.post(&format!("/ops/dead/letters/{id}/discard"), &[("reason", "x")]).await;
    assert_eq!(done.is(303).header("location"), format!("/ops/dead/letters/{id}?said=discarded"));
}

#[tokio::test]
async fn assets_are_in_the_binary_with_their_licences() {
    let store = store().await;
    let mut client = Client::new(dashboard(&store).router());
    for (name, kind) in [
        ("dlq.css", "text/css; charset=utf-8"),
        ("dlq.js", "text/javascript; charset=utf-8"),
        ("htmx-4.0.1.min.js", "text/javascript; charset=utf-8"),
        ("uplot-1.6.32.iife.min.js", "text/javascript; charset=utf-8"),
        ("uplot-1.6.32.min.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        assert_eq!(client.page(&format!("/assets/{name}")).await.header("content-type"), kind);
    }
    client.page("/assets/htmx-4.0.1.LICENSE").await.says("Zero-Clause BSD");
    client.page("/assets/uplot-1.6.32.LICENSE").await.says("The MIT License");
    client.get("/assets/..%2fmod.rs").await.is(404);
}
