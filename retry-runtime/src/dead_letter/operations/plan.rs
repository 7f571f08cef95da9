//! What an operation would do, before it does it.

use std::time::SystemTime;

use super::{OperationOptions, Verb};
use crate::dead_letter::{LetterRow, LetterState};
use crate::verdict::Disposition;

/// What will probably become of a group of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Prospect {
    /// Their newest failure may pass, and nobody asked to wait.
    Likely,
    /// A server asked to leave them alone until later.
    NotDue,
    /// Nobody knows.
    Unknown,
    /// Their newest failure will come again, unless they are edited.
    Permanent,
    /// Their newest answer was that there is nothing any more.
    Gone,
    /// Their stored payload was altered.
    Altered,
    /// Their payload could not be serialised.
    WithoutPayload,
    /// The caller has no handler for their kind.
    Blocked,
}

/// Letters that are alike to a planner: what a store counts by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanRow {
    /// Their state.
    pub state: LetterState,
    /// Their kind.
    pub kind: String,
    /// The newest failure's class.
    pub class: Option<String>,
    /// What the classifier said of it.
    pub disposition: Disposition,
    /// Their stored payload was altered.
    pub altered: bool,
    /// Their payload could not be serialised.
    pub without_payload: bool,
    /// Not before this time, which is still to come: the earliest among them.
    pub not_before: Option<SystemTime>,
    /// How many there are.
    pub n: u64,
}

impl PlanRow {
    /// `n` letters of one kind and state of which nothing else is known; for stores, which fill in the rest.
    pub fn new(state: LetterState, kind: impl Into<String>, disposition: Disposition, n: u64) -> Self {
        Self {
            state,
            kind: kind.into(),
            class: None,
            disposition,
            altered: false,
            without_payload: false,
            not_before: None,
            n,
        }
    }

    /// One letter, at a moment.
    pub fn of(row: &LetterRow, now: SystemTime) -> Self {
        Self {
            class: row.class.clone(),
            altered: row.payload_altered,
            without_payload: row.payload_revision == 0 && row.payload_error.is_some(),
            not_before: row.not_before.filter(|at| *at > now),
            ..Self::new(row.state, row.kind.clone(), row.disposition, 1)
        }
    }

    fn prospect(&self, force: bool, kinds: &[String]) -> Prospect {
        if !kinds.is_empty() && !kinds.contains(&self.kind) {
            Prospect::Blocked
        } else if self.without_payload {
            Prospect::WithoutPayload
        } else if self.altered && !force {
            Prospect::Altered
        } else if self.not_before.is_some() && !force {
            Prospect::NotDue
        } else {
            match self.disposition {
                Disposition::Retryable => Prospect::Likely,
                Disposition::Permanent => Prospect::Permanent,
                Disposition::Gone => Prospect::Gone,
                Disposition::Unknown => Prospect::Unknown,
            }
        }
    }
}

/// Letters with one prospect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanGroup {
    /// What will probably become of them.
    pub prospect: Prospect,
    /// Their class where that is told apart ([`Likely`](Prospect::Likely), [`NotDue`](Prospect::NotDue)), their kind where
    /// they are [`Blocked`](Prospect::Blocked).
    pub of: Option<String>,
    /// How many.
    pub n: u64,
    /// The earliest time a server asked for.
    pub earliest: Option<SystemTime>,
}

/// What an operation would do. Prints as one line:
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use retry_runtime::Disposition;
/// use retry_runtime::dead_letter::{LetterState, OperationRequest, Filter, Plan, PlanRow, Verb};
///
/// let mut timeouts = PlanRow::new(LetterState::Parked, "fetch", Disposition::Retryable, 612);
/// timeouts.class = Some("timeout".into());
/// let permanent = PlanRow::new(LetterState::Parked, "fetch", Disposition::Permanent, 1);
/// let mut plan = Plan::new(&OperationRequest::new(Verb::Replay, Filter::all()), UNIX_EPOCH);
/// plan.add(&timeouts);
/// plan.add(&permanent);
/// assert_eq!(
///     plan.to_string(),
///     "612 timeouts: likely to pass; 1 permanent: will fail again unless edited or forced"
/// );
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// What would be done.
    pub verb: Verb,
    /// How.
    pub options: OperationOptions,
    /// The moment this is about.
    pub at: SystemTime,
    /// How many members there would be: the sum of all groups.
    pub matched: u64,
    /// What would probably become of them, the best prospect first, then the largest group. Discards and restores have no
    /// prospects: one group.
    pub groups: Vec<PlanGroup>,
    /// Permanent failures that match and are [excluded](OperationOptions::exclude_permanent). Not in `matched`.
    pub excluded: u64,
    /// Abandoned letters that match and are not replayed: they have to be restored first. Not in `matched`.
    pub abandoned: u64,
    /// Letters that match and are being replayed at the moment. Not in `matched`.
    pub under_way: u64,
    /// Some of the members, by id: the first ones to be taken.
    pub sample: Vec<String>,
    kinds: Vec<String>,
}

impl Plan {
    /// How many ids a store gives as a sample.
    pub const SAMPLE: u32 = 5;

    /// The plan of a request that matches nothing; for stores, which add to it.
    pub fn new(request: &super::OperationRequest, at: SystemTime) -> Self {
        Self {
            verb: request.verb,
            options: request.options.clone(),
            at,
            matched: 0,
            groups: Vec::new(),
            excluded: 0,
            abandoned: 0,
            under_way: 0,
            sample: Vec::new(),
            kinds: request.kinds.clone(),
        }
    }

    /// The filter of what a plan counts: the members of the request, and beside them what it leaves out, each told from the
    /// others by [`add`](Self::add).
    ///
    /// # Errors
    /// As [`OperationRequest::members`](super::OperationRequest::members).
    pub fn counted(request: &super::OperationRequest) -> Result<crate::dead_letter::Filter, crate::error::StoreError> {
        let mut filter = request.members()?;
        if request.verb == Verb::Replay {
            filter.states = vec![LetterState::Parked, LetterState::Replaying, LetterState::Abandoned];
            filter.dispositions.clone_from(&request.filter.dispositions);
        }
        Ok(filter)
    }

    /// Adds letters that match [`counted`](Self::counted).
    pub fn add(&mut self, row: &PlanRow) {
        if self.verb == Verb::Replay {
            match row.state {
                LetterState::Abandoned => self.abandoned += row.n,
                LetterState::Replaying => self.under_way += row.n,
                _ if self.options.exclude_permanent && row.disposition == Disposition::Permanent => {
                    self.excluded += row.n;
                }
                _ => {
                    let prospect = row.prospect(self.options.force, &self.kinds);
                    let of = match prospect {
                        Prospect::Likely | Prospect::NotDue => row.class.clone(),
                        Prospect::Blocked => Some(row.kind.clone()),
                        _ => None,
                    };
                    let earliest = row.not_before.filter(|_| prospect == Prospect::NotDue);
                    self.put(PlanGroup { prospect, of, n: row.n, earliest });
                }
            }
        } else {
            self.put(PlanGroup { prospect: Prospect::Likely, of: None, n: row.n, earliest: None });
        }
    }

    fn put(&mut self, group: PlanGroup) {
        self.matched += group.n;
        let same = |known: &&mut PlanGroup| known.prospect == group.prospect && known.of == group.of;
        match self.groups.iter_mut().find(same) {
            Some(known) => {
                known.n += group.n;
                known.earliest = known.earliest.into_iter().chain(group.earliest).min();
            }
            None => self.groups.push(group),
        }
        self.groups.sort_by(|a, b| {
            let size = b.n.cmp(&a.n);
            a.prospect.cmp(&b.prospect).then(size).then_with(|| a.of.cmp(&b.of))
        });
    }

    /// Whether there is any permanent failure among the members: a planner then suggests to
    /// [exclude](OperationOptions::exclude_permanent) those.
    pub fn suggests_exclusion(&self) -> bool {
        self.groups.iter().any(|group| group.prospect == Prospect::Permanent)
    }
}
