//! The operator's way back for a closed letter.

use crate::dead_letter::{LetterRow, MAX_CRASHES};
use crate::error::{StoreError, StoreErrorKind};

impl LetterRow {
    /// Parks a closed letter again, with `more_replays` failed replays more until it is abandoned.
    ///
    /// `max_replays` is raised and never reset, and so is what stands for crashes where it is used up: by [`MAX_CRASHES`].
    /// The fence is raised, so that no result of an earlier replay is taken. Counts, history and payload stay.
    ///
    /// # Errors
    /// `Conflict` for a letter that is not closed; `Invalid` when it would come back without a replay left. Nothing is
    /// changed then.
    pub fn restore(&mut self, more_replays: u32) -> Result<(), StoreError> {
        if !self.state.is_closed() {
            let message = format!(
                "letter {} is {}: only a recovered, discarded or abandoned letter can be restored",
                self.letter_id, self.state
            );
            return Err(StoreError::new(StoreErrorKind::Conflict, message));
        }
        let max_replays = self.max_replays.max(self.replays).saturating_add(more_replays);
        if max_replays <= self.replays {
            let message = format!(
                "letter {} has used its {} replays: grant at least 1 more, not {more_replays}",
                self.letter_id, self.max_replays
            );
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
        self.max_replays = max_replays;
        if self.crashes >= self.max_crashes {
            self.max_crashes = self.crashes.saturating_add(MAX_CRASHES);
        }
        self.open();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::LetterState;
    use std::time::UNIX_EPOCH;

    fn closed(state: LetterState, replays: u32, crashes: u32) -> LetterRow {
        let mut row = LetterRow::new("id", "fetch", "job");
        (row.state, row.closed_at) = (state, Some(UNIX_EPOCH));
        (row.replays, row.crashes) = (replays, crashes);
        row
    }

    // S1
    #[test]
    fn allowances_are_raised_and_never_reset() {
        let mut worn_out = closed(LetterState::Abandoned, 5, 0);
        assert!(worn_out.restore(2).is_ok());
        assert_eq!((worn_out.replays, worn_out.max_replays, worn_out.max_crashes), (5, 7, 3));
        // It went past its limit while it was not abandoned: the grant is a grant all the same.
        let mut past = closed(LetterState::Recovered, 8, 0);
        assert!(past.restore(1).is_ok());
        assert_eq!(past.max_replays, 9);
        let mut crashed = closed(LetterState::Abandoned, 1, 3);
        assert!(crashed.restore(0).is_ok());
        assert_eq!((crashed.max_replays, crashed.crashes, crashed.max_crashes), (5, 3, 6));
        let mut highest = closed(LetterState::Abandoned, 5, u32::MAX);
        assert!(highest.restore(u32::MAX).is_ok());
        assert_eq!((highest.max_replays, highest.max_crashes), (u32::MAX, u32::MAX));
    }

    // S1
    #[test]
    fn a_refusal_changes_nothing() {
        let refused = [
            (closed(LetterState::Abandoned, 5, 0), StoreErrorKind::Invalid),
            (LetterRow::new("id", "fetch", "job"), StoreErrorKind::Conflict),
        ];
        for (mut row, kind) in refused {
            let before = row.clone();
            assert_eq!(row.restore(0).map_err(|error| error.kind()), Err(kind));
            assert_eq!(row, before);
        }
    }
}
