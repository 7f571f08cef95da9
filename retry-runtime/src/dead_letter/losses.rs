//! Letters that neither the store nor the spill could take: counted, and said aloud.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::dead_letter::{DeadLetter, Parking};
use crate::error::StoreError;
use crate::observe::Notice;

static LOST: AtomicU64 = AtomicU64::new(0);
static UNRECORDED: AtomicU64 = AtomicU64::new(0);

/// Counts a letter as lost, writes a line to stderr and says an error notice. The line names the letter, its kind, its job
/// and the error class, never the payload.
pub fn lose(letter: &DeadLetter, because: StoreError) -> Parking {
    LOST.fetch_add(1, Ordering::Relaxed);
    UNRECORDED.fetch_add(1, Ordering::Relaxed);
    let notice = Notice::error("lost", letter.kind.clone(), describe(letter, &because));
    if notice.clone().say() {
        // A listener may do what it likes with it; the line on stderr is for whoever collects that.
        notice.print();
    }
    Parking::Lost { because: because.said() }
}

/// What became of a letter, as a sink said it. A loss of which nobody has heard yet is said here: a sink of the user's own only
/// answers with it.
pub(crate) fn loss_is_said(letter: &DeadLetter, parking: Parking) -> Parking {
    match parking {
        Parking::Lost { because } if !because.is_said() => lose(letter, because),
        other => other,
    }
}

fn describe(letter: &DeadLetter, because: &StoreError) -> String {
    let job = letter.job_id.as_deref().unwrap_or("-");
    format!(
        "LOST letter {} kind {} job {job} error class {}: {because}",
        letter.park_id,
        letter.kind,
        letter.error_class()
    )
}

/// How many letters this process has lost.
pub fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Takes over the losses that no store has written down yet. Whoever takes them writes them, or
/// [gives them back](give_back_losses).
pub fn take_losses() -> u64 {
    UNRECORDED.swap(0, Ordering::Relaxed)
}

/// Gives back losses that could not be written down.
pub fn give_back_losses(n: u64) {
    UNRECORDED.fetch_add(n, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::Payload;
    use crate::error::StoreErrorKind;
    use crate::stop::StopReason;
    use std::time::SystemTime;

    // D18
    #[test]
    fn the_line_names_everything_but_the_payload() {
        let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::UNIX_EPOCH);
        letter.job_id = Some("job 7".into());
        letter.code = Some(429);
        letter.payload = Payload::Json("\"secret\"".into());
        let line = describe(&letter, &StoreError::new(StoreErrorKind::Full, "no space left"));
        for part in [&letter.park_id.to_string(), "fetch", "job 7", "exhausted:429", "no space left"] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        assert!(!line.contains("secret"), "{line}");
    }

    // D18: kept in memory until a store takes them over.
    #[test]
    fn losses_wait_to_be_taken_over() {
        let before = lost();
        let letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::UNIX_EPOCH);
        let parking = lose(&letter, StoreError::new(StoreErrorKind::Full, "no space left"));
        assert!(!parking.is_kept());
        assert!(lost() > before);
        let taken = take_losses();
        assert!(taken >= 1);
        give_back_losses(taken);
        assert!(take_losses() >= taken);
    }
}
