//! What a call writes down while it runs: nothing, its start, or everything.

use std::time::{Duration, Instant};

use crate::clock;
use crate::context::RetryContext;
use crate::engine::Stop;
use crate::verdict::Verdict;

/// Takes what happens in a call. `()` takes nothing and costs nothing.
pub trait Recorder {
    /// Whether the error's text is wanted: it is made for nobody else.
    const WANTS_TEXT: bool;

    /// A new one.
    fn fresh() -> Self;
    /// The call starts: what was there is cleared.
    fn start(&mut self);
    /// An attempt starts.
    fn attempt(&mut self);
    /// The time since the start.
    fn elapsed(&self) -> Duration;
    #[doc(hidden)]
    fn failed(&mut self, verdict: &Verdict, text: &str);
    #[doc(hidden)]
    fn waiting(&mut self, wait: Duration);
    /// The call ends.
    #[doc(hidden)]
    fn stopped(&mut self, stop: Hidden);
    /// A copy of the whole record, for the report.
    fn report(&self) -> RetryContext;
}

/// Keeps the engine's own type out of a public signature.
#[derive(Debug)]
pub struct Hidden(pub(crate) Stop);

impl Recorder for () {
    const WANTS_TEXT: bool = false;

    #[inline]
    fn fresh() {}
    #[inline]
    fn start(&mut self) {}
    #[inline]
    fn attempt(&mut self) {}
    #[inline]
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    #[inline]
    fn failed(&mut self, _: &Verdict, _: &str) {}
    #[inline]
    fn waiting(&mut self, _: Duration) {}
    #[inline]
    fn stopped(&mut self, _: Hidden) {}
    fn report(&self) -> RetryContext {
        RetryContext::new()
    }
}

/// The start alone, for a deadline.
#[derive(Debug)]
pub struct Timer(Instant);

impl Recorder for Timer {
    const WANTS_TEXT: bool = false;

    #[inline]
    fn fresh() -> Self {
        Self(clock::monotonic())
    }
    #[inline]
    fn start(&mut self) {}
    #[inline]
    fn attempt(&mut self) {}
    fn elapsed(&self) -> Duration {
        clock::monotonic().saturating_duration_since(self.0)
    }
    #[inline]
    fn failed(&mut self, _: &Verdict, _: &str) {}
    #[inline]
    fn waiting(&mut self, _: Duration) {}
    #[inline]
    fn stopped(&mut self, _: Hidden) {}
    fn report(&self) -> RetryContext {
        RetryContext::new()
    }
}

impl Recorder for RetryContext {
    const WANTS_TEXT: bool = true;

    fn fresh() -> Self {
        Self::new()
    }
    fn start(&mut self) {
        self.begin();
    }
    fn attempt(&mut self) {
        self.begin_attempt();
    }
    fn elapsed(&self) -> Duration {
        Self::elapsed(self)
    }
    fn failed(&mut self, verdict: &Verdict, text: &str) {
        Self::failed(self, verdict, text);
    }
    fn waiting(&mut self, wait: Duration) {
        Self::waiting(self, wait);
    }
    fn stopped(&mut self, stop: Hidden) {
        Self::stopped(self, stop.0);
    }
    fn report(&self) -> RetryContext {
        self.clone()
    }
}
