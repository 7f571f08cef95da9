//! Exports and imports of whatever letters there are.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Edit, Exporter, Failure, Filter, Finish,
    ImportReport, Importer, LetterRow, ManualClock, MemoryStore, Order, PageRequest, Payload, ReplayOutcome,
};
use retry_runtime::{Disposition, StopReason};

/// The value of a future of the store in memory, which is ready when first polled.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut cx) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the store in memory waited"),
    }
}

fn actor() -> Actor {
    Actor::new("ann", "w\"hy\n")
}

/// One step in the life of a store: what, which job, a text.
type Step = (u8, u8, String);

fn live(store: &MemoryStore, time: &ManualClock, steps: &[Step]) {
    for (what, job, text) in steps {
        time.advance(Duration::from_secs(1));
        let mut filter = Filter::all();
        filter.job_ids = vec![format!("job-{job}")];
        let row = now(store.list(filter.clone(), PageRequest::default())).unwrap().rows.pop();
        match (what, row) {
            (0..=3, _) => {
                let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, time.now());
                letter.job_id = Some(format!("job-{job}"));
                letter.attempts = u32::from(*what);
                letter.error_message.clone_from(text);
                letter.model = (what % 2 == 0).then(|| text.clone());
                letter.payload = match what {
                    0 => Payload::None,
                    1 => Payload::Unserializable(text.clone()),
                    _ => Payload::Json(serde_json::Value::from(text.as_str()).to_string()),
                };
                now(store.submit(letter));
            }
            (4..=6, Some(row)) => {
                let mut request = ClaimRequest::new(["fetch"], text.clone());
                request.filter = filter;
                request.ignore_backoff = true;
                for claimed in now(store.claim(request, actor())).unwrap() {
                    let outcome = match what {
                        4 => ReplayOutcome::Recovered,
                        5 => ReplayOutcome::Failed(Failure::new(StopReason::Permanent, Disposition::Permanent, text)),
                        // Left under its lease.
                        _ => continue,
                    };
                    let finish = Finish::new(row.letter_id.clone(), claimed.row.fence, outcome);
                    now(store.finish(finish, actor())).unwrap();
                }
            }
            (7, Some(row)) => {
                let json = serde_json::Value::from(text.as_str()).to_string();
                // Refused while it is being replayed.
                let _edited = now(store.edit(Edit::new(row.letter_id, row.payload_revision, json), actor()));
            }
            (8, Some(row)) => {
                // Refused where it is closed already.
                let _discarded = now(store.discard(row.letter_id, actor()));
            }
            _ => {}
        }
    }
}

fn export(store: &MemoryStore) -> String {
    let mut exporter = Exporter::new(store, Filter::all());
    let mut lines = String::new();
    while let Some(some) = now(exporter.next()).unwrap() {
        lines.push_str(&some);
    }
    lines
}

fn import(store: &MemoryStore, lines: &str) -> ImportReport {
    now(Importer::new(store, actor()).read(lines.as_bytes())).unwrap()
}

fn rows(store: &MemoryStore) -> Vec<LetterRow> {
    now(store.list(Filter::all(), PageRequest::first(Order::LongestUnseenFirst, 1_000))).unwrap().rows
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((0..9_u8, 0..4_u8, any::<String>()), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // G102
    #[test]
    fn what_was_exported_comes_back(steps in steps()) {
        let time = ManualClock::new(UNIX_EPOCH + Duration::from_secs(1_000_000));
        let (first, second) = (MemoryStore::with_clock(time.clock()), MemoryStore::with_clock(time.clock()));
        live(&first, &time, &steps);
        let lines = export(&first);
        let before = rows(&first);
        let report = import(&second, &lines);
        prop_assert!(report.is_whole && report.refused.is_empty(), "{report:?}");
        prop_assert_eq!(export(&second), lines.clone());
        let again = import(&second, &lines);
        prop_assert_eq!((again.new, again.merged, again.known), (0, 0, report.new));
        import(&first, &lines);
        prop_assert_eq!(rows(&first), before);
    }

    // D1, D3: two stores that lived apart; whatever was owed in the one that imports stays owed, and nothing is counted twice
    #[test]
    fn two_lives_join_once(ours in steps(), theirs in steps()) {
        let time = ManualClock::new(UNIX_EPOCH + Duration::from_secs(1_000_000));
        let (first, second) = (MemoryStore::with_clock(time.clock()), MemoryStore::with_clock(time.clock()));
        live(&first, &time, &ours);
        live(&second, &time, &theirs);
        let lines = export(&second);
        let before = rows(&first);
        import(&first, &lines);
        let after = rows(&first);
        for old in &before {
            let new = after.iter().find(|row| row.letter_id == old.letter_id);
            prop_assert!(new.is_some(), "a letter is gone");
            let Some(new) = new else { continue };
            prop_assert!(!old.state.is_owed() || new.state.is_owed(), "{} became {}", old.state, new.state);
            prop_assert!(new.fence >= old.fence && new.replays == old.replays && new.max_replays >= old.max_replays);
            prop_assert!(new.payload_revision > 0 || old.payload_revision == 0);
        }
        let of_theirs: Vec<_> = rows(&second);
        let sum = |rows: &[LetterRow]| rows.iter().map(|row| row.parkings).sum::<u64>();
        prop_assert_eq!(sum(&after), sum(&before) + sum(&of_theirs));
        let attempts = |rows: &[LetterRow]| rows.iter().map(|row| row.attempts).sum::<u64>();
        prop_assert_eq!(attempts(&after), attempts(&before) + attempts(&of_theirs));
        import(&first, &lines);
        prop_assert_eq!(rows(&first), after);
    }

    // E84: whatever is done to a line, it is refused or it says the same
    #[test]
    fn a_damaged_line_is_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let store = MemoryStore::new();
        let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, UNIX_EPOCH);
        letter.payload = Payload::Json("{\"a\":1}".to_owned());
        now(store.submit(letter));
        let lines = export(&store);
        let line = lines.lines().nth(1).unwrap();
        let mut damaged = line.as_bytes().to_vec();
        let at = at.index(damaged.len());
        prop_assume!(damaged.get(at) != Some(&byte) && byte != b'\n');
        if let Some(place) = damaged.get_mut(at) {
            *place = byte;
        }
        let other = MemoryStore::new();
        let mut importer = Importer::new(&other, actor());
        now(importer.line(&damaged)).unwrap();
        let report = now(importer.finish()).unwrap();
        prop_assert_eq!((report.new, report.refused_lines), (0, 1));
    }
}
