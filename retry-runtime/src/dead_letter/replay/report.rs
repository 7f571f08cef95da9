//! What a replay did, adding up to what matched.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use crate::counters::Utc;

/// What a replay did, or, dry, would do.
///
/// `recovered + still_failing + abandoned + gone + not_due + would_replay + skipped.total()` is `matched`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Nothing was changed.
    pub dry_run: bool,
    /// Parked letters that matched at the start, those included whose replay had died and whose lease was over; and
    /// abandoned ones where they were [asked for](crate::dead_letter::Replayer::abandoned).
    pub matched: u64,
    /// Letters looked at, the one longest unseen first.
    pub scanned: u64,
    /// Replayed, and done.
    pub recovered: u64,
    /// Replayed, and parked again.
    pub still_failing: u64,
    /// Given up: their replays failed, or died, too often. (Dry: only those whose last replay has died.)
    pub abandoned: u64,
    /// Replayed, and there is nothing any more.
    pub gone: u64,
    /// A server asked to leave them alone for longer.
    pub not_due: u64,
    /// When the first of those is due.
    pub first_due: Option<SystemTime>,
    /// A dry run's letters that a real one would replay.
    pub would_replay: u64,
    /// Abandoned letters that were restored with a grant or, dry, would be. Each is counted above too, by what became of
    /// it.
    pub restored: u64,
    /// Letters that match and are being replayed elsewhere, or were when their process died: left alone until their lease
    /// ends. Not counted in `matched`.
    pub under_way: u64,
    /// When the first of those leases ends, unless it is extended.
    pub first_lease_end: Option<SystemTime>,
    /// Passed over.
    pub skipped: Skipped,
    /// Kinds without a handler, and how many letters of each were passed over.
    pub blocked_kinds: BTreeMap<String, u64>,
    /// Why the run ended before its end.
    pub stopped: Option<String>,
}

/// Letters that were passed over, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// No handler for their kind.
    pub blocked: u64,
    /// Their payload was altered when it was stored; they wait to be edited, or forced.
    pub altered: u64,
    /// Their payload could not be serialised when they were parked, or cannot be read now.
    pub without_payload: u64,
    /// Their handler could not be started: given back as they were.
    pub not_started: u64,
    /// Changed by somebody else in the meantime.
    pub changed: u64,
    /// The lease had gone when the result came: recorded as late.
    pub late: u64,
    /// Beyond the limit.
    pub over_limit: u64,
    /// Not reached before the run stopped.
    pub not_reached: u64,
}

impl Skipped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.blocked
            + self.altered
            + self.without_payload
            + self.not_started
            + self.changed
            + self.late
            + self.over_limit
            + self.not_reached
    }
}

impl ReplayReport {
    /// Whether everything that matched was recovered, and nothing is under way elsewhere.
    pub fn is_complete(&self) -> bool {
        !self.dry_run && self.under_way == 0 && self.stopped.is_none() && self.recovered == self.matched
    }

    pub(super) fn block(&mut self, kind: &str) {
        self.skipped.blocked += 1;
        *self.blocked_kinds.entry(kind.to_owned()).or_default() += 1;
    }

    pub(super) fn not_due(&mut self, at: Option<SystemTime>) {
        self.not_due += 1;
        self.first_due = earlier(self.first_due, at);
    }

    pub(super) fn count_under_way(&mut self, until: Option<SystemTime>) {
        self.under_way += 1;
        self.first_lease_end = earlier(self.first_lease_end, until);
    }

    fn counted(&self) -> u64 {
        let replayed = self.recovered + self.still_failing + self.abandoned + self.gone;
        replayed + self.not_due + self.would_replay + self.skipped.total()
    }

    /// Where the letters are that matched at the start and were not met.
    pub(super) fn close(&mut self, reached_limit: bool) {
        let missing = self.matched.saturating_sub(self.counted());
        if reached_limit {
            self.skipped.over_limit += missing;
        } else if self.stopped.is_some() {
            self.skipped.not_reached += missing;
        } else {
            self.skipped.changed += missing;
        }
        // A letter may have come between counting and looking.
        self.matched = self.counted();
    }
}

fn earlier(a: Option<SystemTime>, b: Option<SystemTime>) -> Option<SystemTime> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { matched, scanned, recovered, still_failing, abandoned, gone, not_due, .. } = self;
        if self.dry_run {
            write!(f, "dry run: {} of {matched} matching would be replayed", self.would_replay)?;
            if *abandoned > 0 {
                write!(f, ", {abandoned} abandoned")?;
            }
        } else {
            write!(f, "{scanned} of {matched} matching: {recovered} recovered, {still_failing} still failing, ")?;
            write!(f, "{abandoned} abandoned, {gone} gone")?;
        }
        write!(f, ", {not_due} not due")?;
        if let Some(at) = self.first_due {
            write!(f, " (first at {})", Utc(at))?;
        }
        write!(f, ", {} skipped", self.skipped.total())?;
        let reasons = [
            (self.skipped.blocked, "without a handler"),
            (self.skipped.altered, "altered"),
            (self.skipped.without_payload, "without payload"),
            (self.skipped.not_started, "not started"),
            (self.skipped.changed, "changed meanwhile"),
            (self.skipped.late, "with a late result"),
            (self.skipped.over_limit, "over the limit"),
            (self.skipped.not_reached, "not reached"),
        ];
        let reasons: Vec<_> = reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
        if !reasons.is_empty() {
            write!(f, " ({})", reasons.join(", "))?;
        }
        if !self.blocked_kinds.is_empty() {
            let kinds: Vec<_> = self.blocked_kinds.iter().map(|(kind, n)| format!("`{kind}` {n}")).collect();
            write!(f, "; no handler for {}", kinds.join(", "))?;
        }
        if self.restored > 0 {
            write!(f, "; {} abandoned before", self.restored)?;
        }
        if self.under_way > 0 {
            write!(f, "; {} under way elsewhere", self.under_way)?;
            if let Some(at) = self.first_lease_end {
                write!(f, " (first lease until {})", Utc(at))?;
            }
        }
        match &self.stopped {
            Some(why) => write!(f, "; stopped: {why}"),
            None => Ok(()),
        }
    }
}
