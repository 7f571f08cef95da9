//! One filter for lists, counts, dry runs and actions.

use std::time::SystemTime;

use crate::dead_letter::{LetterRow, LetterState};
use crate::verdict::Disposition;

/// Which letters are meant. Plain data: a store translates it to its own language, and [`matches`](Filter::matches) is
/// the meaning it must have.
///
/// An empty list does not restrict. Lists are "one of", and all that is set must hold.
///
/// ```
/// use retry_runtime::dead_letter::{Filter, LetterRow};
///
/// let mut filter = Filter::parked();
/// filter.kinds.push("fetch".into());
/// assert!(filter.matches(&LetterRow::new("1", "fetch", "job")));
/// assert!(!filter.matches(&LetterRow::new("2", "store", "job")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Operations.
    pub kinds: Vec<String>,
    /// Failure classes (`timeout`). A letter without a class matches none.
    pub classes: Vec<String>,
    /// Error classes (`permanent:403`).
    pub error_classes: Vec<String>,
    /// Failure groups.
    pub fingerprints: Vec<String>,
    /// Labels. A letter without one matches none.
    pub models: Vec<String>,
    /// States.
    pub states: Vec<LetterState>,
    /// Last seen at this time or later.
    pub since: Option<SystemTime>,
    /// Last seen before this time.
    pub until: Option<SystemTime>,
    /// Letter ids.
    pub ids: Vec<String>,
    /// Job ids.
    pub job_ids: Vec<String>,
    /// What the classifier said of the newest failure. All but `permanent` is what a standing worker takes.
    pub dispositions: Vec<Disposition>,
}

impl Filter {
    /// How many walks through an index one list may merge.
    pub const WALKS: usize = 32;

    /// Every letter.
    pub fn all() -> Self {
        Self::default()
    }

    /// Every parked letter.
    pub fn parked() -> Self {
        Self { states: vec![LetterState::Parked], ..Self::default() }
    }

    /// Every owed letter.
    pub fn owed() -> Self {
        Self { states: LetterState::ALL.iter().copied().filter(|state| state.is_owed()).collect(), ..Self::default() }
    }

    /// One letter.
    pub fn id(letter_id: impl Into<String>) -> Self {
        Self { ids: vec![letter_id.into()], ..Self::default() }
    }

    /// The filter in two parts, both of which a letter must match: what an index serves in the order of lists, and what has to
    /// be looked at letter by letter.
    ///
    /// The first part has the states, the times, and one of the lists: the first of ids, job ids, fingerprints, error classes,
    /// classes, models and kinds that is set, where its values times the states are at most [`Filter::WALKS`]. (Letters that
    /// are named by id or job are few: there may be any number of these.) A list by the first part alone is as fast at any
    /// depth; with anything in the second part, a page is bounded by
    /// [`PageRequest::look_at`](crate::dead_letter::PageRequest::look_at).
    pub fn split(&self) -> (Self, Self) {
        let mut rest = self.clone();
        let mut walked = Self { since: rest.since.take(), until: rest.until.take(), ..Self::default() };
        walked.states = distinct(std::mem::take(&mut rest.states));
        let states = if walked.states.is_empty() { LetterState::ALL.len() } else { walked.states.len() };
        let most = Self::WALKS / states.max(1);
        for (from, to, most) in [
            (&mut rest.ids, &mut walked.ids, usize::MAX),
            (&mut rest.job_ids, &mut walked.job_ids, usize::MAX),
            (&mut rest.fingerprints, &mut walked.fingerprints, most),
            (&mut rest.error_classes, &mut walked.error_classes, most),
            (&mut rest.classes, &mut walked.classes, most),
            (&mut rest.models, &mut walked.models, most),
            (&mut rest.kinds, &mut walked.kinds, most),
        ] {
            let values = distinct(std::mem::take(from));
            if !values.is_empty() && values.len() <= most {
                *to = values;
                break;
            }
            *from = values;
        }
        (walked, rest)
    }

    /// Whether the letter is meant. What a filter means, in one place: stores are tested against it.
    pub fn matches(&self, row: &LetterRow) -> bool {
        one_of(&self.kinds, &row.kind)
            && one_of_some(&self.classes, row.class.as_ref())
            && one_of(&self.error_classes, &row.error_class)
            && one_of(&self.fingerprints, &row.fingerprint)
            && one_of_some(&self.models, row.model.as_ref())
            && one_of(&self.states, &row.state)
            && self.since.is_none_or(|since| row.last_seen >= since)
            && self.until.is_none_or(|until| row.last_seen < until)
            && one_of(&self.ids, &row.letter_id)
            && one_of(&self.job_ids, &row.job_id)
            && one_of(&self.dispositions, &row.disposition)
    }
}

fn distinct<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values.dedup();
    values
}

fn one_of<T: PartialEq>(accepted: &[T], value: &T) -> bool {
    accepted.is_empty() || accepted.contains(value)
}

fn one_of_some<T: PartialEq>(accepted: &[T], value: Option<&T>) -> bool {
    accepted.is_empty() || value.is_some_and(|value| accepted.contains(value))
}
