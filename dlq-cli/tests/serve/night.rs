//! The first screen says what the command's first page says, and never as if it were new.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dlq_cli::serve::{Dashboard, Identity, Role};
use retry_runtime::Disposition;
use retry_runtime::dead_letter::{
    Actor, BoxFuture, DeadLetterStore as _, FailureGroups as _, GroupsPage, GroupsRequest, MemoryStore, Summary,
};
use retry_runtime::error::StoreError;
use retry_runtime::testing::{Faults, Planted};

use crate::client::{Client, acting, dashboard, letter, one, park, store};

/// Stops to answer: what is counted, or what is known at once.
struct Stuck {
    store: Arc<MemoryStore>,
    groups: AtomicBool,
    summary: AtomicBool,
}

impl Faults for Stuck {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    fn groups(&self, request: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage, StoreError>> {
        if self.groups.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        self.store.groups(request)
    }

    fn summary(&self) -> BoxFuture<'_, Result<Summary, StoreError>> {
        if self.summary.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        self.store.summary()
    }
}

async fn stuck() -> (Arc<Planted<Stuck>>, Client) {
    let stuck = Stuck { store: store().await, groups: AtomicBool::new(false), summary: AtomicBool::new(false) };
    let stuck = Arc::new(Planted(stuck));
    let dashboard = Dashboard::new(Arc::clone(&stuck)).allow_actions(true).open_to(Identity::new("ann", Role::Admin));
    let mut client = Client::new(dashboard.router());
    client.page("/").await.says("30 letters are owed").lacks("did not answer in time");
    (stuck, client)
}

// However long nobody looked: what others did is in the first answer.
#[tokio::test(start_paused = true)]
async fn numbers_of_before_are_not_shown_as_if_they_were_new() {
    let (stuck, mut client) = stuck().await;
    for n in 0..4 {
        let id = one(&*stuck.0.store, &format!("page-{n}")).await.letter_id;
        stuck.0.store.discard(id, Actor::new("bob", "")).await.unwrap();
        tokio::time::advance(Duration::from_secs(if n == 0 { 4 } else { 80 })).await;
        client.page("/").await.says(&format!("{} letters are owed", 29 - n)).lacks("did not answer in time");
    }
}

// What takes long to count holds up nothing that is known at once, and says how old it is.
#[tokio::test(start_paused = true)]
async fn what_is_known_at_once_does_not_wait_for_what_is_counted() {
    let (stuck, mut client) = stuck().await;
    stuck.0.groups.store(true, Ordering::Relaxed);
    let id = one(&*stuck.0.store, "page-0").await.letter_id;
    stuck.0.store.discard(id, Actor::new("bob", "")).await.unwrap();
    tokio::time::advance(Duration::from_secs(80)).await;
    let begun = tokio::time::Instant::now();
    let page = client.page("/").await;
    page.says("29 letters are owed").says("Failures, ages and arrivals were counted 1 min ago");
    page.lacks("All numbers are");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_answers_no_more_is_said_loudly() {
    let (stuck, mut client) = stuck().await;
    stuck.0.summary.store(true, Ordering::Relaxed);
    tokio::time::advance(Duration::from_secs(125)).await;
    let page = client.page("/").await;
    page.says("role=\"alert\">All numbers are 2 min old").says("the store did not answer in time");
}

// What was done here is in the very next page, however dear the numbers are.
#[tokio::test(start_paused = true)]
async fn who_acted_sees_what_became_of_it() {
    let (stuck, mut client) = stuck().await;
    let id = one(&*stuck.0.store, "page-0").await.letter_id;
    client.forms_at = format!("/letters/{id}");
    client.post(&format!("/letters/{id}/discard"), &[("reason", "x")]).await.is(303);
    client.page("/").await.says("29 letters are owed").says(">19 letters</a>").says("ann discarded: x");
}

// Line 0: the same questions as the command's first page, above the failures.
#[tokio::test]
async fn the_questions_of_the_night_are_answered_above_the_failures() {
    let store = Arc::new(MemoryStore::new());
    let mut client = Client::new(dashboard(&store).router());
    let page = client.page("/").await;
    page.says("nobody is replaying").says("nobody did anything").says("no letter yet");
    page.says("would give up nothing").says("no failure that was not there yesterday");

    let store = crate::client::store().await;
    let mut client = Client::new(dashboard(&store).router());
    let page = client.page("/").await;
    page.says("30 parkings in the last 24 hours, 0 in the 24 before");
    page.says("20 letters, first now: exhausted:timeout of fetch");
    page.says("of all would give up 30 letters; it can be restored until somebody prunes");
    page.says("no server asked to wait").says("nothing spilled, nothing set aside").says("of the newest letters");
    page.says("nothing found by a quick examination");
    let at = |text: &str| page.body.find(text).unwrap();
    assert!(at("class=\"night\"") < at("What fails"));

    let id = one(&*store, "page-1").await.letter_id;
    let claim = retry_runtime::dead_letter::ClaimRequest::new(["summarise"], "worker-7");
    store.claim(claim, Actor::new("worker-7", "")).await.unwrap();
    let mut acting = acting(&store).await;
    acting.post(&format!("/letters/{id}/discard"), &[("reason", "the page is gone")]).await.is(303);
    let page = acting.page("/").await;
    page.says("worker-7 replays page-2").says(", lease ends in").lacks("nobody is replaying");
    page.says("now: ann discarded: the page is gone");
    page.says("1 letter is discarded already, which can be restored");
}

// One button a card at most says what to do; nothing shouts to replay what will fail again.
#[tokio::test]
async fn cards_are_calm() {
    let store = Arc::new(MemoryStore::new());
    let mut gone = letter("fetch", "page-gone", "forbidden");
    gone.disposition = Disposition::Permanent;
    park(&*store, gone).await;
    let mut client = acting_on(&store);
    let page = client.page("/").await;
    page.says("Permanent: it fails again unless the payload is edited.");
    page.lacks("class=\"act\"").lacks("class=\"do\"");
    page.says("Replay 1 with the application&#39;s workers");
    park(&*store, letter("fetch", "page-1", "timeout")).await;
    // Another dashboard: this one keeps its numbers for a second.
    let page = acting_on(&store).page("/groups").await;
    assert_eq!(page.body.matches("class=\"act\"").count(), 1, "{}", page.body);
    assert_eq!(page.body.matches("class=\"do\"").count(), 0, "{}", page.body);
}

pub(crate) fn acting_on(store: &Arc<MemoryStore>) -> Client {
    Client::new(dashboard(store).allow_actions(true).router())
}
