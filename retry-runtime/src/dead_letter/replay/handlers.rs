//! What does the jobs of each kind.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::job::{IntoReplayError, ReplayError, ReplayJob};
use crate::dead_letter::BoxFuture;

type Asynchronous = dyn Fn(ReplayJob) -> BoxFuture<'static, Result<(), ReplayError>> + Send + Sync;
type Blocking = dyn Fn(ReplayJob) -> Result<(), ReplayError> + Send + Sync;

#[derive(Clone)]
pub(super) enum Handler {
    Asynchronous(Arc<Asynchronous>),
    Blocking(Arc<Blocking>),
}

/// What does jobs again, by kind: for a [`Replayer`](crate::dead_letter::Replayer), an
/// [`OperationRunner`](crate::dead_letter::OperationRunner) and a [`ReplayWorker`](crate::dead_letter::ReplayWorker). Cheap to
/// clone.
///
/// A handler runs inside a [`ReplayScope`](crate::dead_letter::ReplayScope): when it calls the annotated function itself
/// and that gives up again, no second letter is parked. What the handler spawns is outside of it.
#[derive(Clone, Default)]
pub struct Handlers {
    by_kind: HashMap<String, Handler>,
}

impl Handlers {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// What does jobs of a kind again. The newest one counts.
    #[must_use]
    pub fn on<F, Fut, T, E>(mut self, kind: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ReplayJob) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: IntoReplayError + 'static,
        T: 'static,
    {
        let handler = move |job| {
            let future = handler(job);
            let future: BoxFuture<'static, _> =
                Box::pin(async move { future.await.map(drop).map_err(E::into_replay_error) });
            future
        };
        self.by_kind.insert(kind.into(), Handler::Asynchronous(Arc::new(handler)));
        self
    }

    /// The same, for blocking work. One at a time it blocks the thread that drives the replay; where several run at once,
    /// each gets a thread of its own.
    #[must_use]
    pub fn on_blocking<F, T, E>(mut self, kind: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ReplayJob) -> Result<T, E> + Send + Sync + 'static,
        E: IntoReplayError,
    {
        let handler = move |job| handler(job).map(drop).map_err(E::into_replay_error);
        self.by_kind.insert(kind.into(), Handler::Blocking(Arc::new(handler)));
        self
    }

    /// The kinds there are handlers for, in order.
    pub fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<_> = self.by_kind.keys().cloned().collect();
        kinds.sort();
        kinds
    }

    pub(super) fn get(&self, kind: &str) -> Option<&Handler> {
        self.by_kind.get(kind)
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.kinds()).finish()
    }
}
