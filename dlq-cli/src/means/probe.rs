//! The first job is a probe: the others wait for what becomes of it.

use std::future::Future;
use std::sync::Arc;

use retry_runtime::dead_letter::ReplayError;
use tokio::sync::OnceCell;

/// Shared by all jobs of one run.
#[derive(Clone)]
pub(super) struct Probe {
    /// `Some(why)`: the probe was not recovered.
    result: Option<Arc<OnceCell<Option<String>>>>,
}

impl Probe {
    pub(super) fn new(probes: bool) -> Self {
        Self { result: probes.then(Arc::default) }
    }

    /// Does the job: as the probe where none was done yet, else when that was recovered.
    pub(super) async fn first<F>(&self, job: impl FnOnce() -> F) -> Result<(), ReplayError>
    where
        F: Future<Output = Result<(), ReplayError>>,
    {
        let Some(result) = &self.result else { return job().await };
        let mut job = Some(job);
        let mut own = None;
        // One of those that come together is the probe; where it is dropped, the next one is.
        let failed = result
            .get_or_init(|| async {
                let done = job.take()?().await;
                let failed = done.as_ref().err().map(ToString::to_string);
                own = Some(done);
                failed
            })
            .await;
        match (own, failed, job) {
            (Some(done), ..) => done,
            (None, Some(why), _) => {
                Err(ReplayError::stop(format!("the first letter, a probe, was not recovered: {why}")))
            }
            (None, None, Some(job)) => job().await,
            (None, None, None) => Err(ReplayError::not_started("the probe was interrupted")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn nobody_begins_before_the_probe_has_ended() {
        let probe = Probe::new(true);
        let begun = AtomicU32::new(0);
        let (open, gate) = tokio::sync::oneshot::channel::<()>();
        let first = probe.first(|| async {
            begun.fetch_add(1, Ordering::SeqCst);
            let _opened = gate.await;
            assert_eq!(begun.load(Ordering::SeqCst), 1);
            Ok(())
        });
        let second = probe.first(|| async {
            begun.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let opens = async {
            tokio::task::yield_now().await;
            let _sent = open.send(());
        };
        let (first, second, ()) = tokio::join!(first, second, opens);
        assert_eq!((first, second, begun.into_inner()), (Ok(()), Ok(()), 2));
    }

    #[tokio::test]
    async fn a_probe_that_fails_stops_all_others() {
        let probe = Probe::new(true);
        assert!(probe.first(|| async { Err(ReplayError::failed("broken")) }).await.is_err());
        let second = probe.first(|| async { Ok(()) }).await;
        assert!(second.is_err_and(|said| said.to_string().contains("probe") && said.to_string().contains("broken")));
        let without = Probe::new(false);
        assert!(without.first(|| async { Err(ReplayError::failed("broken")) }).await.is_err());
        assert_eq!(without.first(|| async { Ok(()) }).await, Ok(()));
    }
}
