//! Stores that take their time: no page waits for them longer than people do.

use std::collections::BTreeSet;
use std::sync::Arc;

use retry_runtime::dead_letter::{
    BoxFuture, BulkOperations as _, FailureGroups as _, GroupsPage, GroupsRequest, MemoryStore, OperationRequest, Plan,
};
use retry_runtime::error::StoreError;
use retry_runtime::testing::{Faults, Planted};

use crate::client::{Client, dashboard, letter, park, store};
use dlq_cli::serve::{Dashboard, Identity, Role};

/// Never says what would become of the letters.
struct NeverPlans(Arc<MemoryStore>);

impl Faults for NeverPlans {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    fn plan(&self, _: OperationRequest) -> BoxFuture<'_, Result<Plan, StoreError>> {
        Box::pin(std::future::pending())
    }
}

// A plan of very many letters is shown with how many they are, and can be started.
#[tokio::test(start_paused = true)]
async fn a_plan_that_takes_long_is_not_waited_for() {
    let store = store().await;
    let dashboard = Dashboard::new(Arc::clone(&store))
        .numbers_by(Planted(NeverPlans(Arc::clone(&store))))
        .allow_actions(true)
        .open_to(Identity::new("ann", Role::Admin));
    let mut client = Client::new(dashboard.router());
    let begun = tokio::time::Instant::now();
    let plan = client.page("/operations/new?verb=replay&q=kind%3Afetch").await;
    plan.says("Replay 28 letters?").says("it takes longer than a page waits").says("Replay 28 with the application");
    assert!(begun.elapsed() < std::time::Duration::from_millis(300), "{:?}", begun.elapsed());
    let filter = r#"{"kinds":["fetch"]}"#;
    let started =
        client.submit(&plan, "/operations", &[("verb", "replay"), ("filter", filter), ("expected", "28")]).await;
    started.is(303);
    let op = store.operations(None, 1).await.unwrap().remove(0);
    assert_eq!(op.counts.total(), 28);
}

/// Never says which groups there are.
struct NeverCounts(Arc<MemoryStore>);

impl Faults for NeverCounts {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    fn groups(&self, _: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage, StoreError>> {
        Box::pin(std::future::pending())
    }
}

// Line 6: a cold first page shows what is known at once, and asks again by itself.
#[tokio::test(start_paused = true)]
async fn what_is_counted_for_long_is_not_waited_for() {
    let store = store().await;
    let dashboard = Dashboard::new(Arc::clone(&store))
        .numbers_by(Planted(NeverCounts(Arc::clone(&store))))
        .open_to(Identity::new("ann", Role::Viewer));
    let mut client = Client::new(dashboard.router());
    for path in ["/", "/groups", "/groups?order=newest"] {
        let begun = tokio::time::Instant::now();
        let page = client.page(path).await;
        assert!(begun.elapsed() < std::time::Duration::from_millis(300), "{path}: {:?}", begun.elapsed());
        page.says("eing counted").lacks("Nothing is owed").lacks("Nothing found");
        assert_eq!(page.header("refresh"), "1", "{path}");
    }
    client.page("/").await.says("30 letters are owed").says(">30</a>");
}

/// Says which groups are the largest, and no more in any time.
struct KnowsTheLargest(Arc<MemoryStore>);

impl Faults for KnowsTheLargest {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    fn groups(&self, request: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage, StoreError>> {
        // The first screen asks for many at once, and gets two.
        if request.limit > 20 { self.0.groups(request.limit(2)) } else { Box::pin(std::future::pending()) }
    }
}

// Line 6: also a page that nobody asked for yet.
#[tokio::test(start_paused = true)]
async fn groups_that_nobody_knows_yet_are_not_waited_for() {
    let store = store().await;
    let dashboard = Dashboard::new(Arc::clone(&store))
        .numbers_by(Planted(KnowsTheLargest(Arc::clone(&store))))
        .open_to(Identity::new("ann", Role::Viewer));
    let mut client = Client::new(dashboard.router());
    client.page("/").await.says("20 letters").says("All groups").lacks("eing counted");
    for path in ["/groups", "/groups?order=newest"] {
        let begun = tokio::time::Instant::now();
        let page = client.page(path).await;
        assert!(begun.elapsed() < std::time::Duration::from_millis(300), "{path}: {:?}", begun.elapsed());
        page.says("Being counted").lacks("Nothing is owed");
    }
}

// More groups than the first screen knows: every one is on one page, in either order.
#[tokio::test]
async fn many_groups_are_paged() {
    let store = Arc::new(MemoryStore::new());
    let classes: Vec<String> = (0..230)
        .map(|n| format!("class{}", String::from_iter([char::from(b'a' + n / 26), char::from(b'a' + n % 26)])))
        .collect();
    for (n, class) in classes.iter().enumerate() {
        for job in 0..=usize::from(n % 7 == 0) {
            park(&*store, letter("fetch", &format!("{class}-{job}"), class)).await;
        }
    }
    let mut client = Client::new(dashboard(&store).router());
    for first in ["/groups", "/groups?order=newest"] {
        let (mut path, mut seen, mut pages) = (first.to_owned(), Vec::new(), 0);
        loop {
            let page = client.page(&path).await;
            assert_eq!(page.header("refresh"), "", "{path}");
            seen.extend(page.body.split("<span class=\"chip\">exhausted:").skip(1).map(|rest| rest[..7].to_owned()));
            pages += 1;
            let Some((_, next)) = page.body.split_once("rel=\"next\" href=\"") else { break };
            path = next.split('"').next().unwrap().replace("&#38;", "&");
        }
        let once: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!((pages, seen.len(), once), (12, 230, classes.iter().cloned().collect()), "{first}");
    }
}
