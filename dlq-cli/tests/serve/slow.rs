//! Stores that take their time: no page waits for them longer than people do.

use std::sync::Arc;

use retry_runtime::dead_letter::{BoxFuture, BulkOperations as _, MemoryStore, OperationRequest, Plan};
use retry_runtime::error::StoreError;
use retry_runtime::testing::{Faults, Planted};

use crate::client::{Client, store};
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
