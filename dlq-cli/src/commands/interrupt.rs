//! Ctrl-C: the first one asks for an orderly end, the second one ends.

use std::future::Future;
use std::pin::pin;

use super::context::aside;

/// How work ended that may be interrupted.
pub(crate) enum Ended<T> {
    /// By itself.
    Done(T),
    /// It was asked to end, and did.
    Asked(T),
    /// It was asked twice, and dropped.
    Dropped,
}

/// Works; at the first Ctrl-C (or SIGTERM) asks for an end by `ask` and works on until it has come.
pub(crate) async fn interruptible<T, A: Future<Output = ()>>(
    work: impl Future<Output = T>,
    ask: impl FnOnce() -> A,
) -> Ended<T> {
    let mut work = pin!(work);
    let mut signals = Signals::new();
    tokio::select! {
        biased;
        done = &mut work => return Ended::Done(done),
        () = signals.next() => {}
    }
    aside("\npausing: what is under way is let to its end; Ctrl-C again to drop it");
    {
        let mut asked = pin!(ask());
        tokio::select! {
            () = &mut asked => {}
            // It may end while it is asked.
            done = &mut work => {
                asked.await;
                return Ended::Asked(done);
            }
            () = signals.next() => return Ended::Dropped,
        }
    }
    tokio::select! {
        biased;
        done = &mut work => Ended::Asked(done),
        () = signals.next() => Ended::Dropped,
    }
}

/// Waits for Ctrl-C.
pub(crate) async fn interrupted() {
    Signals::new().next().await;
}

#[cfg(unix)]
struct Signals(Option<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)>);

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let both = signal(SignalKind::interrupt()).and_then(|first| Ok((first, signal(SignalKind::terminate())?)));
        // Without them the system's own way stays: the process ends, and leases run out.
        Self(both.ok())
    }

    async fn next(&mut self) {
        match &mut self.0 {
            Some((interrupt, terminate)) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
