//! What an operation is to do, to which letters, and how carefully.

use std::fmt;

use crate::dead_letter::{Filter, LetterState};
use crate::error::{StoreError, StoreErrorKind};
use crate::verdict::Disposition;

/// What an operation does with each of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Does the jobs again. For parked letters.
    Replay,
    /// Gives them up on purpose. For parked and abandoned letters.
    Discard,
    /// Parks them again, each with so many more replays. For discarded and abandoned letters, and for recovered ones where
    /// the filter names that state.
    Restore {
        /// How many failed replays more until it is abandoned.
        more_replays: u32,
    },
}

impl Verb {
    /// The stable text form: `replay`, `discard` or `restore`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
            Self::Restore { .. } => "restore",
        }
    }

    /// The verb of a stable text form; `None` for any other text. `more_replays` is for `restore` alone.
    pub fn parse(text: &str, more_replays: u32) -> Option<Self> {
        [Self::Replay, Self::Discard, Self::Restore { more_replays }].into_iter().find(|verb| verb.as_str() == text)
    }

    /// The grant of a restore; 0 for the others.
    pub const fn more_replays(self) -> u32 {
        match self {
            Self::Restore { more_replays } => more_replays,
            Self::Replay | Self::Discard => 0,
        }
    }

    /// What the events of its letters say besides.
    pub fn detail(self) -> String {
        match self {
            Self::Restore { more_replays } => format!("{more_replays} more replays"),
            Self::Replay | Self::Discard => String::new(),
        }
    }

    /// The states it is for.
    pub const fn states(self) -> &'static [LetterState] {
        match self {
            Self::Replay => &[LetterState::Parked],
            Self::Discard => &[LetterState::Parked, LetterState::Abandoned],
            Self::Restore { .. } => &[LetterState::Recovered, LetterState::Discarded, LetterState::Abandoned],
        }
    }

    /// The states it is for where the filter names none: nobody means what was recovered.
    const fn usual_states(self) -> &'static [LetterState] {
        match self {
            Self::Restore { .. } => &[LetterState::Discarded, LetterState::Abandoned],
            Self::Replay | Self::Discard => self.states(),
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How carefully an operation goes on. All but `force` and `exclude_permanent` are for replays alone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OperationOptions {
    /// Also what a server asked to leave alone for longer, and letters whose stored payload was altered. Off by default.
    pub force: bool,
    /// Leaves letters out whose newest failure was permanent. Off by default: a replay that somebody asks for excludes no
    /// class.
    pub exclude_permanent: bool,
    /// At most so many letters begun per second, 0.0001 to 1,000,000; `None`, the default, does not limit.
    pub rate: Option<f64>,
    /// At most so many handlers at once, 1 to 1,024; 1 by default.
    pub concurrency: u32,
    /// Begins with 1 letter, then 10, 100, ...: each stage when all results of the one before are in, and the share of
    /// failures is below `stop_ratio`. Off by default.
    pub canary: bool,
    /// Pauses when this share of the ended replays failed, above 0 and up to 1; 0.5 by default, `None` never.
    pub stop_ratio: Option<f64>,
    /// So many replays must have ended before `stop_ratio` counts; 20 by default. (The stages of a ramp count at once.)
    pub stop_after: u64,
}

impl Default for OperationOptions {
    fn default() -> Self {
        Self {
            force: false,
            exclude_permanent: false,
            rate: None,
            concurrency: 1,
            canary: false,
            stop_ratio: Some(0.5),
            stop_after: 20,
        }
    }
}

/// An operation that is wanted.
///
/// ```
/// use retry_runtime::dead_letter::{Filter, LetterState, OperationRequest, Verb};
///
/// let mut filter = Filter::all();
/// filter.classes.push("timeout".into());
/// let mut request = OperationRequest::new(Verb::Replay, filter);
/// request.options.canary = true;
/// request.options.rate = Some(2.5);
/// assert_eq!(request.members().unwrap().states, [LetterState::Parked]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OperationRequest {
    /// What is done.
    pub verb: Verb,
    /// With which letters. Its states are those the verb is [for](Verb::states), or some of them.
    pub filter: Filter,
    /// How.
    pub options: OperationOptions,
    /// The kinds there are handlers for, as far as the caller knows. Only a [plan](crate::dead_letter::BulkOperations::plan)
    /// looks at it: letters of other kinds will be blocked. Empty: nobody knows.
    pub kinds: Vec<String>,
}

impl OperationRequest {
    /// An operation with the usual options.
    pub fn new(verb: Verb, filter: Filter) -> Self {
        Self { verb, filter, options: OperationOptions::default(), kinds: Vec::new() }
    }

    /// The same with other options.
    #[must_use]
    pub fn with(mut self, options: OperationOptions) -> Self {
        self.options = options;
        self
    }

    /// The filter by which members are counted and frozen: that of the request with the states spelled out, and without
    /// permanent failures where those are excluded. A store that is asked to plan or to start checks by this.
    ///
    /// # Errors
    /// `Invalid` for options without sense, and where the filter names only states the verb is not for.
    pub fn members(&self) -> Result<Filter, StoreError> {
        self.check_options()?;
        let mut filter = self.filter.clone();
        filter.states = if filter.states.is_empty() {
            self.verb.usual_states().to_vec()
        } else {
            self.verb.states().iter().copied().filter(|state| filter.states.contains(state)).collect()
        };
        if filter.states.is_empty() {
            let states: Vec<_> = self.verb.states().iter().map(|state| state.as_str()).collect();
            return Err(invalid(format!("no letter to {}: the filter names none of {}", self.verb, states.join(", "))));
        }
        if self.options.exclude_permanent {
            let named =
                |disposition: &Disposition| filter.dispositions.is_empty() || filter.dispositions.contains(disposition);
            let left: Vec<_> = Disposition::ALL
                .iter()
                .copied()
                .filter(|disposition| *disposition != Disposition::Permanent && named(disposition))
                .collect();
            if left.is_empty() {
                return Err(invalid("the filter names permanent failures alone, and they are excluded".to_owned()));
            }
            filter.dispositions = left;
        }
        Ok(filter)
    }

    fn check_options(&self) -> Result<(), StoreError> {
        let OperationOptions { rate, concurrency, stop_ratio, .. } = self.options;
        if rate.is_some_and(|rate| !(0.0001..=1_000_000.0).contains(&rate)) {
            return Err(invalid(format!("rate {}: accepted are 0.0001 to 1000000 letters per second", shown(rate))));
        }
        if !(1..=1_024).contains(&concurrency) {
            return Err(invalid(format!("concurrency {concurrency}: accepted are 1 to 1024 handlers at once")));
        }
        if stop_ratio.is_some_and(|ratio| !(ratio > 0.0 && ratio <= 1.0)) {
            return Err(invalid(format!("stop ratio {}: accepted are shares above 0 and up to 1", shown(stop_ratio))));
        }
        Ok(())
    }
}

fn shown(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn invalid(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking
    use super::*;

    // S1
    #[test]
    fn each_verb_is_for_its_states() {
        use LetterState::{Abandoned, Discarded, Parked, Recovered, Replaying};
        let states = |verb, states: &[LetterState]| {
            let filter = Filter { states: states.to_vec(), ..Filter::all() };
            OperationRequest::new(verb, filter).members().map(|filter| filter.states).map_err(|error| error.to_string())
        };
        let restore = Verb::Restore { more_replays: 1 };
        assert_eq!(states(Verb::Replay, &[]).unwrap(), [Parked]);
        assert_eq!(states(Verb::Discard, &[]).unwrap(), [Parked, Abandoned]);
        assert_eq!(states(restore, &[]).unwrap(), [Discarded, Abandoned]);
        assert_eq!(states(restore, &[Recovered, Parked]).unwrap(), [Recovered]);
        assert_eq!(states(Verb::Replay, LetterState::ALL).unwrap(), [Parked]);
        let refused = states(Verb::Discard, &[Replaying, Recovered]);
        assert_eq!(refused, Err("no letter to discard: the filter names none of parked, abandoned".to_owned()));
    }

    // D12
    #[test]
    fn a_replay_excludes_no_class_unless_told() {
        let mut request = OperationRequest::new(Verb::Replay, Filter::all());
        assert!(request.members().unwrap().dispositions.is_empty());
        request.options.exclude_permanent = true;
        let wanted = [Disposition::Retryable, Disposition::Gone, Disposition::Unknown];
        assert_eq!(request.members().unwrap().dispositions, wanted);
        request.filter.dispositions = vec![Disposition::Permanent, Disposition::Unknown];
        assert_eq!(request.members().unwrap().dispositions, [Disposition::Unknown]);
        // An empty list would not restrict: it must not be what is left.
        request.filter.dispositions = vec![Disposition::Permanent];
        assert_eq!(request.members().map_err(|error| error.kind()), Err(StoreErrorKind::Invalid));
    }

    #[test]
    fn options_without_sense_are_refused() {
        let with = |change: fn(&mut OperationOptions)| {
            let mut request = OperationRequest::new(Verb::Replay, Filter::all());
            change(&mut request.options);
            request.members().map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|options| options.rate = Some(0.01)), Ok(()));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            let mut request = OperationRequest::new(Verb::Replay, Filter::all());
            request.options.rate = Some(rate);
            assert!(request.members().is_err(), "{rate}");
        }
        let refused = with(|options| options.concurrency = 0);
        assert_eq!(refused, Err("concurrency 0: accepted are 1 to 1024 handlers at once".to_owned()));
        let refused = with(|options| options.stop_ratio = Some(0.0));
        assert_eq!(refused, Err("stop ratio 0: accepted are shares above 0 and up to 1".to_owned()));
        assert!(with(|options| options.stop_ratio = Some(f64::NAN)).is_err());
    }
}
