//! Whether the store works at the moment, and when to ask again (STORE D19).

use std::time::{Duration, SystemTime};

use retry_runtime::error::StoreError;

use crate::worker::batch::again;

/// One probe in so long.
pub(crate) const PROBE_EVERY: Duration = Duration::from_secs(5);

/// So long it has to work again before spilled letters are taken in.
pub(crate) const STEADY_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Outage {
    down: Option<Down>,
    /// Spilled letters may wait; they are taken in from then on.
    import_at: Option<SystemTime>,
}

#[derive(Debug)]
struct Down {
    because: StoreError,
    probe_at: SystemTime,
}

impl Outage {
    /// Works, and what earlier runs spilled is to be taken in at once.
    pub(crate) const fn none(now: SystemTime) -> Self {
        Self { down: None, import_at: Some(now) }
    }

    /// Why it does not work.
    pub(crate) fn because(&self) -> Option<&StoreError> {
        self.down.as_ref().map(|down| &down.because)
    }

    /// It failed: everything goes past it until a probe succeeds. Says whether that is news.
    pub(crate) fn failed(&mut self, because: &StoreError, now: SystemTime) -> bool {
        let news = self.down.is_none();
        self.down = Some(Down { because: again(because), probe_at: now + PROBE_EVERY });
        self.import_at = None;
        news
    }

    /// It works. Says whether that is news.
    pub(crate) fn worked(&mut self, now: SystemTime) -> bool {
        let news = self.down.take().is_some();
        if news {
            self.import_at = Some(now + STEADY_AFTER);
        }
        news
    }

    pub(crate) fn probe_is_due(&self, now: SystemTime) -> bool {
        self.down.as_ref().is_some_and(|down| is_due(down.probe_at, PROBE_EVERY, now))
    }

    /// Whether spilled letters are to be taken in now; asked once.
    pub(crate) fn take_import(&mut self, now: SystemTime) -> bool {
        let due = self.down.is_none() && self.import_at.is_some_and(|at| is_due(at, STEADY_AFTER, now));
        if due {
            self.import_at = None;
        }
        due
    }

    /// Something was spilled although the store works (one letter it would not take), or an import was cut short: another
    /// import is due.
    pub(crate) fn import_again(&mut self, now: SystemTime) {
        if self.down.is_none() && self.import_at.is_none() {
            self.import_at = Some(now + STEADY_AFTER);
        }
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<SystemTime> {
        match &self.down {
            Some(down) => Some(down.probe_at),
            None => self.import_at,
        }
    }
}

/// Whether `at`, which was set to `span` ahead, has come. A clock that was set back does not keep it waiting for longer
/// than `span`.
pub(crate) fn is_due(at: SystemTime, span: Duration, now: SystemTime) -> bool {
    at.duration_since(now).map_or(true, |ahead| ahead.is_zero() || ahead > span)
}

#[cfg(test)]
mod tests {
    use retry_runtime::error::StoreErrorKind;

    use super::*;

    const T0: SystemTime = SystemTime::UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        T0 + Duration::from_secs(1_000_000 + seconds)
    }

    fn full() -> StoreError {
        StoreError::new(StoreErrorKind::Full, "full")
    }

    // D19: one probe every 5 s
    #[test]
    fn a_failure_is_probed_every_five_seconds() {
        let mut outage = Outage::none(at(0));
        assert!(outage.failed(&full(), at(0)));
        assert!(!outage.probe_is_due(at(4)) && outage.probe_is_due(at(5)));
        assert!(!outage.failed(&full(), at(5)), "the same outage is said once");
        assert!(!outage.probe_is_due(at(9)) && outage.probe_is_due(at(10)));
        assert!(outage.worked(at(10)) && !outage.worked(at(11)));
        assert!(!outage.probe_is_due(at(99)));
    }

    // D8: import at open, and after it has worked for 10 s
    #[test]
    fn spilled_letters_come_back_at_open_and_after_ten_seconds() {
        let mut outage = Outage::none(at(0));
        assert!(outage.take_import(at(0)) && !outage.take_import(at(1)));
        outage.failed(&full(), at(2));
        assert!(!outage.take_import(at(100)), "not while it is down");
        outage.worked(at(100));
        assert!(!outage.take_import(at(109)) && outage.take_import(at(110)));
    }

    #[test]
    fn a_clock_set_back_does_not_stop_the_probes() {
        let mut outage = Outage::none(at(1_000));
        outage.failed(&full(), at(1_000));
        assert!(outage.probe_is_due(at(0)));
    }
}
