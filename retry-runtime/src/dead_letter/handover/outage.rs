//! Whether a sink works at the moment, and when to ask again.

use std::time::{Duration, Instant};

use crate::error::{StoreError, StoreErrorKind};

/// A sink that is down is asked again so often.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// A sink has to work so long before spilled letters are brought home.
const STEADY_AFTER: Duration = Duration::from_secs(10);

/// Letters the sink refuses, though it works, are offered again so often.
const REFUSED_AGAIN: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(super) struct Outage {
    down: Option<Down>,
    import_at: Option<Instant>,
}

#[derive(Debug)]
struct Down {
    kind: StoreErrorKind,
    message: String,
    probe_at: Instant,
}

impl Outage {
    /// Works; what earlier processes spilled is brought home at once.
    pub(super) const fn none(now: Instant) -> Self {
        Self { down: None, import_at: Some(now) }
    }

    /// Why the sink is not to be asked now; `None`: ask it.
    pub(super) fn because(&self, now: Instant) -> Option<StoreError> {
        let down = self.down.as_ref().filter(|down| now < down.probe_at)?;
        Some(StoreError::new(down.kind, down.message.clone()))
    }

    /// Whether it failed the last time it was asked.
    pub(super) const fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// It failed. Says whether that is news.
    pub(super) fn failed(&mut self, because: &StoreError, now: Instant) -> bool {
        let news = self.down.is_none();
        self.down = Some(Down { kind: because.kind(), message: because.to_string(), probe_at: now + PROBE_EVERY });
        self.import_at = None;
        news
    }

    /// It works.
    pub(super) fn worked(&mut self, now: Instant) {
        if self.down.take().is_some() {
            self.import_at = Some(now + STEADY_AFTER);
        }
    }

    /// A letter was spilled although the sink works.
    pub(super) fn spilled(&mut self, now: Instant) {
        if self.down.is_none() {
            self.import_at.get_or_insert(now + STEADY_AFTER);
        }
    }

    /// Whether spilled letters are to be brought home now: they are due, or nothing else is there to probe with.
    pub(super) fn import_is_due(&self, now: Instant) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    /// What was spilled is home, or all of it that the sink does not refuse.
    pub(super) fn imported(&mut self, is_whole: bool, now: Instant) {
        self.import_at = (!is_whole).then(|| now + REFUSED_AGAIN);
    }

    /// When there is something to do without a letter.
    pub(super) fn next(&self) -> Option<Instant> {
        self.down.as_ref().map_or(self.import_at, |down| Some(down.probe_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> StoreError {
        StoreError::new(StoreErrorKind::Full, "no space")
    }

    // D19
    #[test]
    fn a_sink_that_failed_is_asked_every_five_seconds() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut outage = Outage::none(start);
        assert!(outage.because(start).is_none());
        assert!(outage.failed(&full(), at(1)));
        assert_eq!(outage.because(at(5)).map(|error| error.kind()), Some(StoreErrorKind::Full));
        assert!(outage.because(at(6)).is_none(), "a probe is due");
        assert!(!outage.failed(&full(), at(6)), "the same outage is no news");
        assert!(outage.because(at(10)).is_some());
        outage.worked(at(11));
        assert!(outage.because(at(11)).is_none());
    }

    // D8
    #[test]
    fn spilled_letters_come_home_at_open_and_after_ten_steady_seconds() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut outage = Outage::none(start);
        assert!(outage.import_is_due(start));
        outage.imported(true, start);
        assert!(!outage.import_is_due(at(100)));
        outage.failed(&full(), at(100));
        outage.worked(at(105));
        assert!(!outage.import_is_due(at(114)));
        assert!(outage.import_is_due(at(115)));
        outage.imported(true, at(115));
        outage.spilled(at(200));
        assert!(outage.import_is_due(at(210)));
        outage.imported(false, at(210));
        assert!(!outage.import_is_due(at(809)), "refused letters are not offered in a loop");
        assert!(outage.import_is_due(at(810)));
    }
}
