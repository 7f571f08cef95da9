//! What became of each member.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

macro_rules! outcomes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $sort:ident;)*) => {
        /// What became of a member of an operation. The text form is stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ItemOutcome {
            $($(#[$doc])* $name,)*
        }

        impl ItemOutcome {
            /// Every outcome.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable text form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            const fn sort(self) -> Sort {
                match self { $(Self::$name => Sort::$sort,)* }
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Not begun.
    Open,
    /// Under way.
    Running,
    /// It was done, and there is nothing left to do.
    Good,
    /// It was done, and failed.
    Bad,
    /// Not done and not to be done: the reason is the outcome.
    Skipped,
    /// Not done now: a later run takes it up.
    Waiting,
}

outcomes! {
    /// Not begun.
    Pending = "pending", Open;
    /// Being replayed.
    Running = "running", Running;
    /// Replayed, and done.
    Recovered = "recovered", Good;
    /// Replayed, and there is nothing any more.
    Gone = "gone", Good;
    /// Replayed, and parked again.
    StillFailing = "still_failing", Bad;
    /// Replayed, or dead while it was, too often.
    Abandoned = "abandoned", Bad;
    /// Discarded by this operation.
    Discarded = "discarded", Good;
    /// Parked again by this operation.
    Restored = "restored", Good;
    /// It was no longer in a state this operation is for: somebody else was at it.
    Changed = "changed", Skipped;
    /// Its payload is newer than the one that was frozen.
    Edited = "edited", Skipped;
    /// The letter is no longer there.
    Removed = "removed", Skipped;
    /// Its stored payload was altered; it waits to be edited, or forced.
    Altered = "altered", Skipped;
    /// Its payload could not be serialised when it was parked.
    WithoutPayload = "without_payload", Skipped;
    /// The rules of letters refused; the detail says why.
    Refused = "refused", Skipped;
    /// The runner has no handler for its kind.
    Blocked = "blocked", Waiting;
    /// A server asked to leave it alone for longer.
    NotDue = "not_due", Waiting;
    /// Its handler could not be started: given back as it was.
    NotStarted = "not_started", Waiting;
}

impl ItemOutcome {
    /// The outcome of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|outcome| outcome.as_str() == text)
    }

    /// Passed over for good.
    pub const fn is_skipped(self) -> bool {
        matches!(self.sort(), Sort::Skipped)
    }

    /// Passed over for now: the next run of the operation takes it up again.
    pub const fn is_waiting(self) -> bool {
        matches!(self.sort(), Sort::Waiting)
    }

    /// A replay that gave a result (or died too often).
    pub const fn is_result(self) -> bool {
        matches!(self, Self::Recovered | Self::Gone | Self::StillFailing | Self::Abandoned)
    }

    /// A result that counts as a failure.
    pub const fn is_failure(self) -> bool {
        matches!(self.sort(), Sort::Bad)
    }
}

impl fmt::Display for ItemOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A member of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationItem {
    /// The letter's number.
    pub seq: u64,
    /// The letter's id; `None` when the letter is no longer there.
    pub letter_id: Option<String>,
    /// The revision of the payload when the members were frozen; 0 without a payload.
    pub revision: u32,
    /// What became of it.
    pub outcome: ItemOutcome,
    /// More about that: the reason of a skip, the error class of a failure.
    pub detail: Option<String>,
    /// When it got this outcome; `None` while nothing has happened.
    pub at: Option<SystemTime>,
}

impl OperationItem {
    /// A member nothing has happened to.
    pub fn new(seq: u64, letter_id: Option<String>, revision: u32) -> Self {
        Self { seq, letter_id, revision, outcome: ItemOutcome::Pending, detail: None, at: None }
    }
}

/// One page of members, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemPage {
    /// The members.
    pub items: Vec<OperationItem>,
    /// Behind which number the next page starts; `None` when this is the last one.
    pub next: Option<u64>,
}

impl ItemPage {
    /// The page of `items`, which may hold one more than `limit`: that one says that there is a next page.
    pub fn of(mut items: Vec<OperationItem>, limit: u32) -> Self {
        let more = items.len() > limit as usize;
        items.truncate(limit as usize);
        let next = if more { items.last().map(|item| item.seq) } else { None };
        Self { items, next }
    }
}

/// How many members ended how. Adds up to the members at every moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    by: BTreeMap<ItemOutcome, u64>,
}

impl OutcomeCounts {
    /// How many have this outcome.
    pub fn get(&self, outcome: ItemOutcome) -> u64 {
        self.by.get(&outcome).copied().unwrap_or(0)
    }

    /// Adds some.
    pub fn add(&mut self, outcome: ItemOutcome, n: u64) {
        if n > 0 {
            *self.by.entry(outcome).or_default() += n;
        }
    }

    /// One goes from an outcome to another.
    pub fn step(&mut self, from: ItemOutcome, to: ItemOutcome) {
        if let Some(n) = self.by.get_mut(&from) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.by.remove(&from);
            }
        }
        self.add(to, 1);
    }

    /// Those that are not zero, in the order of [`ItemOutcome::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (ItemOutcome, u64)> + '_ {
        self.by.iter().map(|(outcome, n)| (*outcome, *n))
    }

    /// All members.
    pub fn total(&self) -> u64 {
        self.by.values().sum()
    }

    /// Not begun.
    pub fn pending(&self) -> u64 {
        self.get(ItemOutcome::Pending)
    }

    /// Being replayed.
    pub fn running(&self) -> u64 {
        self.get(ItemOutcome::Running)
    }

    /// Passed over for good.
    pub fn skipped(&self) -> u64 {
        self.sum(ItemOutcome::is_skipped)
    }

    /// Passed over for now.
    pub fn waiting(&self) -> u64 {
        self.sum(ItemOutcome::is_waiting)
    }

    /// Replays that gave a result.
    pub fn results(&self) -> u64 {
        self.sum(ItemOutcome::is_result)
    }

    /// Results that count as failures.
    pub fn failures(&self) -> u64 {
        self.sum(ItemOutcome::is_failure)
    }

    fn sum(&self, of: fn(ItemOutcome) -> bool) -> u64 {
        self.by.iter().filter(|(outcome, _)| of(**outcome)).map(|(_, n)| n).sum()
    }
}

/// `3 recovered, 1 still failing`; `nothing` for an operation without members.
impl fmt::Display for OutcomeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by.is_empty() {
            return f.write_str("nothing");
        }
        for (nth, (outcome, n)) in self.by.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(f, "{comma}{n} {}", outcome.as_str().replace('_', " "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lead_back_and_each_outcome_has_one_sort() {
        for outcome in ItemOutcome::ALL {
            assert_eq!(ItemOutcome::parse(outcome.as_str()), Some(*outcome));
            assert!(!(outcome.is_skipped() && outcome.is_waiting()));
            assert!(!outcome.is_failure() || outcome.is_result());
        }
        assert_eq!(ItemOutcome::parse("Pending"), None);
    }

    // B29
    #[test]
    fn counts_add_up_and_print() {
        let mut counts = OutcomeCounts::default();
        assert_eq!(counts.to_string(), "nothing");
        counts.add(ItemOutcome::Pending, 3);
        counts.step(ItemOutcome::Pending, ItemOutcome::Running);
        counts.step(ItemOutcome::Running, ItemOutcome::StillFailing);
        counts.step(ItemOutcome::Pending, ItemOutcome::Edited);
        counts.step(ItemOutcome::Pending, ItemOutcome::NotDue);
        assert_eq!((counts.total(), counts.pending(), counts.running()), (3, 0, 0));
        assert_eq!((counts.skipped(), counts.waiting(), counts.results(), counts.failures()), (1, 1, 1, 1));
        assert_eq!(counts.to_string(), "1 still failing, 1 edited, 1 not due");
    }
}
