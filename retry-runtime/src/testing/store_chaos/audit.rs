//! The events of one letter before the judge.

use crate::dead_letter::{EventRecord, LetterDetail};

/// S1: every change wrote one event, and they are one chain from the first parking to the present state. A store that keeps
/// no events is not asked.
pub(super) fn of_letter(detail: &LetterDetail, events: &[EventRecord]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut state = None;
    for event in events {
        if event.before != state {
            let show = |state: Option<_>| state.map_or_else(|| "nothing".to_owned(), |state| format!("{state}"));
            broken.push(format!("S1: event `{}` found {}, not {}", event.what, show(event.before), show(state)));
        }
        state = event.after;
    }
    let row = &detail.row;
    if !events.is_empty() && state != Some(row.state) {
        broken.push(format!("S1: the last event does not say {}", row.state));
    }
    let late = detail.history.iter().filter(|entry| entry.late).count() as u64;
    let counts = [("replayed", u64::from(row.replays)), ("lease_expired", row.crashes.into()), ("late_result", late)];
    for (what, wanted) in counts.into_iter().filter(|_| !events.is_empty()) {
        let found = events.iter().filter(|event| event.what == what).count() as u64;
        if found != wanted {
            broken.push(format!("S1: {found} events `{what}`, {wanted} are counted"));
        }
    }
    let id = &row.letter_id;
    broken.into_iter().map(|what| format!("{what} (letter {id}, {})", row.state)).collect()
}
