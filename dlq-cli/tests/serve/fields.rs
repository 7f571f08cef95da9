//! Every text that a page shows and somebody else wrote: each has a mark of its own, so that a failure says which of them
//! became markup.

use std::collections::BTreeSet;
use std::sync::Arc;

use dlq_cli::serve::{Dashboard, Identity, Means, Role, Tokens};
use retry_runtime::counters::{DailyCounters as _, Thresholds as _};
use retry_runtime::dead_letter::{
    Actor, BoxFuture, BulkOperations as _, Checkup, ClaimRequest, DeadLetterStore as _, Edit, FailureGroups as _,
    Filter, Finding, GroupsRequest, MemoryStore, OperationRequest, OperationRunner, Overview as _, Payload,
    ProcessFacts, ReplayError, Severity, StoreFacts, Verb,
};
use retry_runtime::error::StoreError;
use retry_runtime::ledger::{AttemptLedger as _, LedgerKey};
use retry_runtime::testing::{Faults, Planted};

use crate::client::{Client, letter, one, park};

/// What would become an element `<i>` with the field's name in it, an attribute, a character that steers.
fn evil(field: &str) -> String {
    format!("\"'</pre></textarea></title></option><i>{field}</i><script>alert(1)</script>\u{202e}\u{1b}[31m\u{200b}")
}

/// A store whose own words are hostile, too: findings, writers, processes.
struct Evil(Arc<MemoryStore>);

impl Faults for Evil {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    fn doctor(&self, _: Checkup) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        let found = Finding::new(Severity::Warning, "evil", evil("finding")).advise(evil("advice"));
        Box::pin(async { Ok(vec![found]) })
    }

    fn facts(&self) -> BoxFuture<'_, Result<StoreFacts, StoreError>> {
        Box::pin(async {
            let mut facts = self.0.facts().await?;
            facts.writers = vec![(evil("writer"), 1)];
            facts.processes = vec![ProcessFacts::new(evil("process"), facts.now, facts.now, facts.now)];
            Ok(facts)
        })
    }
}

fn actor(field: &str) -> Actor {
    Actor::new(evil(&format!("{field}-actor")), evil(&format!("{field}-reason")))
}

/// A store with a hostile text in every field, and the pages that show them.
async fn filled(store: &Arc<MemoryStore>) -> Vec<String> {
    let mut worst = letter(&evil("kind"), &evil("job"), &evil("class"));
    worst.error_message = evil("message");
    worst.error_type = evil("type");
    worst.model = Some(evil("model"));
    worst.payload = Payload::Json(serde_json::json!({ evil("key"): evil("payload") }).to_string());
    for record in &mut worst.history {
        record.message = evil("history");
    }
    park(&**store, worst).await;
    let mut unreadable = letter("fetch", "unreadable", "timeout");
    unreadable.payload = Payload::Unserializable(evil("unserializable"));
    park(&**store, unreadable).await;
    for job in ["held", "closed", "edited", "failing", "stopping"] {
        park(&**store, letter(job, job, "timeout")).await;
    }
    let id = |row: retry_runtime::dead_letter::LetterRow| row.letter_id;
    let claim = ClaimRequest::new(["held"], evil("owner"));
    store.claim(claim, actor("claim")).await.unwrap();
    store.discard(id(one(&**store, "closed").await), actor("discard")).await.unwrap();
    let edited = id(one(&**store, "edited").await);
    store.edit(Edit::new(&edited, 1, "{\"a\": 1}"), actor("edit")).await.unwrap();
    let groups = store.groups(GroupsRequest::new(Filter::owed())).await.unwrap().groups;
    for group in groups {
        store.note(group.counts.fingerprint, evil("note"), Actor::new(evil("noted-by"), "")).await.unwrap();
    }

    let mut ids = Vec::new();
    for (kind, how) in [("failing", false), ("stopping", true)] {
        let mut filter = Filter::all();
        filter.kinds.push(kind.to_owned());
        let request = OperationRequest::new(Verb::Replay, filter);
        let op = store.start(request, actor("operation")).await.unwrap();
        let runner = OperationRunner::new(Arc::clone(store)).name(evil("runner")).on(kind, move |_| async move {
            Err::<(), _>(if how {
                ReplayError::stop(evil("stop"))
            } else {
                ReplayError::failed(evil("detail").as_str())
            })
        });
        runner.run(op.id.clone()).await.unwrap();
        ids.push(op.id);
    }
    let mut filter = Filter::all();
    filter.kinds.push(evil("scope-of-operation"));
    ids.push(store.start(OperationRequest::new(Verb::Discard, filter), actor("operation")).await.unwrap().id);

    let _begun = store.begin(LedgerKey::new(evil("ledger-scope"), evil("ledger-key")), 3).await.unwrap();
    store.add(&evil("operation-counted"), &evil("counter"), 700).await.unwrap();
    store.set_threshold(evil("operation-counted"), evil("counter"), 5, actor("threshold")).await.unwrap();

    let mut pages: Vec<String> = [
        "/",
        "/groups",
        "/groups?order=newest",
        "/letters",
        "/letters?order=oldest",
        "/operations",
        "/audit",
        "/ledger",
        "/counters",
    ]
    .map(str::to_owned)
    .to_vec();
    for job in [evil("job").as_str(), "unreadable", "held", "closed", "edited", "failing"] {
        pages.push(format!("/letters/{}", id(one(&**store, job).await)));
    }
    for op in ids {
        pages.push(format!("/operations/{op}"));
        pages.push(format!("/operations/{op}?outcome=still_failing"));
    }
    let asked = |words: &str| form_urlencoded::byte_serialize(words.as_bytes()).collect::<String>();
    let word = dlq_cli::filters::word("kind", &evil("kind"));
    pages.push(format!("/letters?q={}", asked(&word)));
    pages.push(format!("/letters?q={}", asked(&format!("colour:{}", evil("q").replace(' ', "")))));
    pages.push(format!("/operations/new?verb=replay&q={}", asked(&word)));
    pages.push(format!("/operations/new?verb=discard&q={}", asked(&word)));
    pages.push(format!("/letters/{}", asked(&evil("path"))));
    pages.push(format!("/ledger?scope={}", asked(&evil("asked-scope"))));
    pages.push(format!("/counters?operation={}", asked(&evil("asked-operation"))));
    pages
}

/// The fields whose markup came through, and whether a character that steers did.
fn obeyed(page: &str) -> BTreeSet<String> {
    let marks = page.split("<i>").skip(1).map(|rest| rest.split('<').next().unwrap_or_default().to_owned());
    let mut obeyed: BTreeSet<String> = marks.collect();
    // The value of a field is sent back as it is, and never drawn.
    let mut drawn = String::new();
    for (at, part) in page.split("value=\"").enumerate() {
        drawn.push_str(if at == 0 { part } else { part.split_once('"').map_or("", |(_, rest)| rest) });
    }
    for c in ['\u{202e}', '\u{1b}', '\u{200b}'] {
        if let Some(at) = drawn.find(c) {
            let before: String = drawn[..at].chars().rev().take(90).collect();
            obeyed.insert(format!("{c:?} behind {:?}", before.chars().rev().collect::<String>()));
        }
    }
    obeyed
}

// Line 4: error text and payloads are hostile, and so is every name.
#[tokio::test]
async fn no_field_of_any_page_becomes_markup() {
    let store = Arc::new(MemoryStore::new());
    let pages = filled(&store).await;
    let means = Means::own(evil("means"), |_| Box::pin(std::future::pending()));
    let dashboard = Dashboard::new(Planted(Evil(Arc::clone(&store))))
        .named(evil("store"))
        .open_to(Identity::new(evil("visitor"), Role::Admin))
        .means(means)
        .allow_actions(true);
    let mut client = Client::new(dashboard.router());
    let mut all = BTreeSet::new();
    let mut look = |path: &str, body: &str| {
        assert!(body.trim_end().ends_with("</html>"), "{path}");
        all.extend(
            obeyed(body).into_iter().map(|field| format!("{field} at {}", path.split('?').next().unwrap_or(path))),
        );
    };
    for path in &pages {
        look(path, &client.get(path).await.body);
    }
    let at = format!("/letters/{}", one(&*store, &evil("job")).await.letter_id);
    let page = client.page(&at).await;
    let shown = client.submit(&page, &format!("{at}/payload"), &[]).await;
    shown.is(200).says("payload&#60;/i&#62;");
    look("payload", &shown.body);
    let edit = client.submit(&page, &format!("{at}/edit"), &[]).await;
    edit.is(200).says("payload&#60;/i&#62;");
    look("edit", &edit.body);
    for (step, payload) in
        [("review", serde_json::json!({ "new": evil("new") }).to_string()), ("review", evil("no-json"))]
    {
        let fields = [("step", step), ("base", "1"), ("payload", &payload), ("reason", &evil("reason"))];
        look("edit, the difference", &client.submit(&edit, &format!("{at}/edit"), &fields).await.is(200).body);
    }
    let tokens = Tokens::new().with(Identity::new("ada", Role::Admin), "dlq_x");
    let mut stranger = Client::new(Dashboard::new(store).tokens(tokens).router());
    let next: String = form_urlencoded::byte_serialize(format!("/{}", evil("next")).as_bytes()).collect();
    let page = stranger.page(&format!("/login?next={next}")).await;
    look("login", &page.body);
    let refused = stranger.submit(&page, "/login", &[("token", &evil("token")), ("next", "/")]).await;
    look("login", &refused.is(403).body);
    assert!(all.is_empty(), "{all:#?}");
}
