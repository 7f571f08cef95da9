//! Whether the store works at the moment, and when to ask again (STORE D19).

use std::time::{Duration, SystemTime};

use retry_runtime::error::StoreError;

use crate::field::alarm::Alarm;
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
    /// A store that fails and works by turns says so once.
    alarm: Alarm,
    is_said: bool,
}

#[derive(Debug)]
struct Down {
    since: SystemTime,
    because: StoreError,
    probe_at: SystemTime,
}

impl Outage {
    /// Works, and what earlier runs spilled is to be taken in at once.
    pub(crate) const fn none(now: SystemTime) -> Self {
        Self { down: None, import_at: Some(now), alarm: Alarm::new(), is_said: false }
    }

    /// Why it does not work.
    pub(crate) fn because(&self) -> Option<&StoreError> {
        self.down.as_ref().map(|down| &down.because)
    }

    /// Since when it does not work, and why.
    pub(crate) fn down(&self) -> Option<(SystemTime, StoreError)> {
        self.down.as_ref().map(|down| (down.since, again(&down.because)))
    }

    /// It failed: everything goes past it until a probe succeeds. Says whether that is news.
    pub(crate) fn failed(&mut self, because: &StoreError, now: SystemTime) -> bool {
        let since = self.down.as_ref().map_or(now, |down| down.since);
        if self.down.is_none() {
            // It worked until now: an alarm of hours ago is another one's.
            let _quiet = self.alarm.is_news(None, now);
        }
        let news = self.alarm.is_news(Some(0), now);
        self.is_said |= news;
        self.down = Some(Down { since, because: again(because), probe_at: now + PROBE_EVERY });
        self.import_at = None;
        news
    }

    /// It works. Says whether that is news.
    pub(crate) fn worked(&mut self, now: SystemTime) -> bool {
        let up = self.down.take().is_some();
        if up {
            self.import_at = Some(now + STEADY_AFTER);
        }
        // Also forgets an alarm that was long ago.
        let _quiet = self.alarm.is_news(None, now);
        up && std::mem::take(&mut self.is_said)
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

    // F96: a full disk that has room by turns is one alarm
    #[test]
    fn failing_and_working_by_turns_is_said_once() {
        let mut outage = Outage::none(at(0));
        let mut said = (0, 0);
        for second in 0..1_000 {
            said.0 += u32::from(outage.failed(&full(), at(2 * second)));
            said.1 += u32::from(outage.worked(at(2 * second + 1)));
        }
        assert_eq!(said, (1, 1));
        assert!(outage.failed(&full(), at(9_000)), "an hour later it is news");
        assert_eq!(outage.down().map(|(since, because)| (since, because.kind())), Some((at(9_000), full().kind())));
        outage.failed(&full(), at(9_005));
        assert_eq!(outage.down().map(|(since, _)| since), Some(at(9_000)), "since the first failure");
        assert!(outage.failed(&full(), at(9_000 + 86_400)), "F93: and a day later again");
    }

    #[test]
    fn a_clock_set_back_does_not_stop_the_probes() {
        let mut outage = Outage::none(at(1_000));
        outage.failed(&full(), at(1_000));
        assert!(outage.probe_is_due(at(0)));
    }
}
