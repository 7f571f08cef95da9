//! What a server sent is shown, and never obeyed.

use std::sync::Arc;

use retry_runtime::dead_letter::{Actor, FailureGroups as _, Filter, GroupsRequest, MemoryStore, Payload};

use crate::client::{Client, acting, client, dashboard, letter, one, park};

const HOSTILE: &str = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'><b>\u{202e}gpj.exe\u{1b}[31m\u{0}\u{200b}{{ 7*7 }}{% raw %}";

async fn store() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let mut evil = letter(HOSTILE, "page-0", HOSTILE);
    evil.error_message = HOSTILE.into();
    evil.error_type = HOSTILE.into();
    evil.model = Some(HOSTILE.to_owned());
    evil.payload = Payload::Json(serde_json::json!({ "text": HOSTILE, "password": "hunter2" }).to_string());
    for record in &mut evil.history {
        record.message = HOSTILE.into();
    }
    park(&*store, evil).await;
    let mut odd = letter("fetch", HOSTILE, "timeout");
    odd.error_message = "x".repeat(10 << 20);
    park(&*store, odd).await;
    let group = store.groups(GroupsRequest::new(Filter::owed())).await.unwrap().groups;
    for group in group {
        store.note(group.counts.fingerprint, HOSTILE.to_owned(), Actor::new(HOSTILE, HOSTILE)).await.unwrap();
    }
    store
}

/// No markup of the letter's, nothing that turns or steers, and the page is whole.
#[track_caller]
fn is_tame(path: &str, page: &str) {
    for obeyed in ["<script>alert", "<img src=x", "<b>", "onerror=alert(2)>"] {
        assert!(!page.contains(obeyed), "{path}: {obeyed}");
    }
    for c in ['\u{202e}', '\u{1b}', '\u{0}', '\u{200b}'] {
        assert!(!page.contains(c), "{path}: {c:?}");
    }
    assert!(page.trim_end().ends_with("</html>"), "{path}");
    assert!(page.len() < 300_000, "{path}: {} bytes", page.len());
}

#[tokio::test]
async fn no_page_obeys_what_it_shows() {
    let store = store().await;
    let mut client = acting(&store).await;
    let evil = one(&*store, "page-0").await.letter_id;
    let odd = one(&*store, HOSTILE).await.letter_id;
    let q: String =
        form_urlencoded::byte_serialize(format!("job:\"{}\"", HOSTILE.replace('"', "\\\"")).as_bytes()).collect();
    for path in [
        "/".to_owned(),
        "/groups".to_owned(),
        "/letters".to_owned(),
        format!("/letters?q={q}"),
        format!("/letters/{evil}"),
        format!("/letters/{odd}"),
        format!("/operations/new?verb=replay&id={evil}"),
        format!("/operations/new?verb=discard&q={q}"),
        "/audit".to_owned(),
        "/ledger".to_owned(),
        "/counters".to_owned(),
    ] {
        let page = client.page(&path).await;
        is_tame(&path, &page.body);
    }
    let page = client.page(&format!("/letters/{evil}")).await;
    page.says("&#60;script&#62;alert(1)").says("\\u{202e}gpj.exe\\u{1b}[31m\\u{0}\\u{200b}").says("{{ 7*7 }}");
    // The payload, and the payload to edit.
    let shown = client.submit(&page, &format!("/letters/{evil}/payload"), &[]).await;
    is_tame("payload", &shown.is(200).body);
    shown.says("[redacted]").lacks("hunter2").says("gpj.exe");
    let edit = client.submit(&page, &format!("/letters/{evil}/edit"), &[]).await;
    is_tame("edit", &edit.is(200).body);
    edit.says("\\u202egpj.exe").says("hunter2");
    // Ten megabytes in one line are cut, and say so.
    client.page(&format!("/letters/{odd}")).await.says("bytes cut");
}

// What a request brings along is hostile too.
#[tokio::test]
async fn no_page_obeys_its_address() {
    let store = store().await;
    let mut client = client(&store, dashboard(&store)).await;
    for path in [
        "/letters?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/letters?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "/letters?said=%3Cscript%3Ealert(1)%3C/script%3E",
        "/letters?q=kind%3A%ff%fe%00",
        "/groups?order=%3Cscript%3Ealert(1)",
        "/ledger?scope=%3Cscript%3Ealert(1)%3C/script%3E&status=%3Cb%3E",
        "/counters?operation=%3Cscript%3Ealert(1)%3C/script%3E",
        "/letters/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/operations/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        let page = client.get(path).await;
        is_tame(path, &page.body);
    }
}

#[tokio::test]
async fn a_payload_of_ten_megabytes_is_shown_in_part_and_not_edited() {
    let store = Arc::new(MemoryStore::new());
    let mut large = letter("fetch", "page-0", "timeout");
    large.payload = Payload::Json(format!("[\"{}\"]", "é<".repeat(5 << 20)));
    park(&*store, large).await;
    let mut client = acting(&store).await;
    let id = one(&*store, "page-0").await.letter_id;
    let page = client.page(&format!("/letters/{id}")).await;
    page.says("15.0 MiB").says("too large for a page");
    let shown = client.submit(&page, &format!("/letters/{id}/payload"), &[]).await;
    is_tame("payload", &shown.is(200).body);
    shown.says("64.0 KiB of it are shown").says("bytes cut");
    client.submit(&page, &format!("/letters/{id}/edit"), &[]).await.is(413);
}

#[tokio::test]
async fn requests_have_bounds() {
    let store = store().await;
    let mut client = acting(&store).await;
    client.get(&format!("/letters?q={}", "a".repeat(9_000))).await.is(414);
    client.get(&format!("/letters?q={}", "a".repeat(5_000))).await.is(400).says("accepted are 4000");
    client.get("/letters?after=1.2.3").await.is(400);
    client.get("/letters?after=99999999999999999999.1").await.is(400);
    client.get("/groups?after=x").await.is(400);
    client.get("/audit?after=-1").await.is(400);
    let ids = "&id=x".repeat(101);
    client.get(&format!("/operations/new?verb=replay{ids}")).await.is(400).says("accepted are 100");
    client.get("/operations/new?verb=replay").await.is(400).says("no letter was selected");
    client.get("/operations/new?verb=drop&all=1").await.is(400);
    let body = format!("csrf=x&payload={}", "a".repeat(1 << 20));
    client.request("POST", "/letters/x/edit", &body).await.is(413);
    client.request("PUT", "/letters", "").await.is(405);
    client.request("POST", "/letters", "").await.is(403);
    let mut json = client.clone().with("content-type", "application/json");
    json.request("POST", "/operations", "{}").await.is(415);
    let mut strange = Client::new(dashboard(&store).router()).with("accept", "*/*");
    strange.get("/nothing/here").await.is(404);
}
