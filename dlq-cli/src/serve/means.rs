//! Who does the jobs again.

use std::fmt;
use std::sync::Arc;

use retry_runtime::dead_letter::{BoxFuture, Operation};
use retry_runtime::error::StoreError;

use super::shown;

type Run = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Operation, StoreError>> + Send + Sync>;

/// Who does the jobs of a replay again. (Discards and restores need nobody: the dashboard does them itself.)
#[derive(Clone, Default)]
pub struct Means {
    own: Option<(String, Run)>,
}

impl Means {
    /// The application's own workers: an operation waits until one of them takes it.
    pub fn workers() -> Self {
        Self::default()
    }

    /// The dashboard's process itself. `said` is printed on the buttons, behind "Replay 214 "; `run` takes the operation of
    /// this id and runs it to its end.
    pub fn own(
        said: impl Into<String>,
        run: impl Fn(String) -> BoxFuture<'static, Result<Operation, StoreError>> + Send + Sync + 'static,
    ) -> Self {
        Self { own: Some((quoted(&shown::line(&said.into(), 300)), Arc::new(run))) }
    }

    /// What buttons say behind the scope.
    pub(super) fn said(&self) -> &str {
        self.own.as_ref().map_or("with the application's workers", |(said, _)| said.as_str())
    }

    /// Runs an operation, where that is for this process to do.
    pub(super) fn run(&self, op_id: String) -> Option<BoxFuture<'static, Result<Operation, StoreError>>> {
        self.own.as_ref().map(|(_, run)| run(op_id))
    }

    pub(super) fn are_own(&self) -> bool {
        self.own.is_some()
    }
}

/// What a terminal puts between backticks, a page puts between quotes.
fn quoted(said: &str) -> String {
    match (said.find('`'), said.rfind('`')) {
        (Some(first), Some(last)) if first < last => {
            let parts = (said.get(..first), said.get(first + 1..last), said.get(last + 1..));
            format!("{}“{}”{}", parts.0.unwrap_or_default(), parts.1.unwrap_or_default(), parts.2.unwrap_or_default())
        }
        _ => said.to_owned(),
    }
}

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Means").field(&self.said()).finish()
    }
}
