//! The means by which `dlq` does jobs again itself: a command, or a request over HTTP. (The application's own workers are
//! another: they take operations that wait.)

mod exec;
mod http;
mod probe;

use std::time::Duration;

use retry_runtime::dead_letter::{Aggregate, BoxFuture, Filter, GroupKey, Handlers, ReplayError, ReplayJob};

pub(crate) use exec::BY_EXEC;
pub use exec::Exec;
pub use http::Http;

use crate::exit::Failure;
use crate::stores::Store;
use probe::Probe;

/// How long one job may take unless told otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// How jobs are done again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Means {
    /// By a command.
    Exec(Exec),
    /// By a POST.
    Http(Http),
}

impl Means {
    fn run(&self, job: ReplayJob) -> BoxFuture<'static, Result<(), ReplayError>> {
        match self {
            Self::Exec(exec) => {
                let exec = exec.clone();
                Box::pin(async move { exec.run(job).await })
            }
            Self::Http(http) => {
                let http = http.clone();
                Box::pin(async move { http.run(job).await })
            }
        }
    }

    /// Handlers for every kind the store has letters of. With `probes`, the first job is done alone, and all others only when
    /// it was recovered: a command that is broken fails once, and not 214 times.
    ///
    /// # Errors
    /// Where the kinds cannot be read.
    pub async fn handlers(&self, store: &Store, probes: bool) -> Result<Handlers, Failure> {
        let kinds = store.aggregate(Aggregate::new(Filter::all(), [GroupKey::Kind])).await?;
        let probe = Probe::new(probes);
        let mut handlers = Handlers::new();
        for kind in kinds.into_iter().filter_map(|group| group.keys.into_iter().next()) {
            let (means, probe) = (self.clone(), probe.clone());
            handlers = handlers.on(kind, move |job| {
                let (means, probe) = (means.clone(), probe.clone());
                async move { probe.first(|| means.run(job)).await }
            });
        }
        Ok(handlers)
    }

    /// In a word or two, for a button or a line: the command with its arguments, or the address.
    pub fn said(&self) -> String {
        match self {
            Self::Exec(exec) => format!("the command `{}`", crate::text::cut(&exec.shown(), 120)),
            Self::Http(http) => format!("a POST to {}", crate::text::cut(&http.shown(), 200)),
        }
    }
}
