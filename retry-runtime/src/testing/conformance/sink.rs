//! A sink alone.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::support::{Check, SinkBench, attempt, checks, demand, letter, parked, same, start};
use crate::dead_letter::{DeadLetter, DeadLetterSink, Parking, Payload};
use crate::stop::StopReason;

pub(super) fn checks<'a, S: DeadLetterSink>() -> Vec<Check<SinkBench<'a, S>>> {
    checks![
        "11.2" a_letter_is_kept_and_the_ticket_says_where,
        "D1" a_known_park_id_gets_the_first_answer_again,
        "D1" sent_twice_at_once_is_one_letter,
        "D2" jobs_without_an_id_are_letters_of_their_own,
        "D5" a_dropped_ticket_changes_nothing,
        "D5" an_awaited_ticket_and_a_waited_for_ticket_say_the_same,
        "D5" a_crowd_of_threads_is_served,
        "11.5" a_letter_without_payload_is_kept,
        "B1.6" odd_values_are_kept,
    ]
}

impl<S> SinkBench<'_, S> {
    fn holds(&self, wanted: u64) -> Result<(), String> {
        match self.count {
            Some(count) => same("letters held", count(&self.sink), wanted),
            None => Ok(()),
        }
    }
}

/// Without a job id, nothing but the park id tells that a letter was sent before.
fn anonymous() -> DeadLetter {
    DeadLetter { job_id: None, ..letter("", start()) }
}

fn a_letter_is_kept_and_the_ticket_says_where<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    let letter_id = parked(bench.sink.submit(letter("a", start())))?;
    demand!(!letter_id.is_empty(), "the letter id is empty");
    bench.holds(1)
}

fn a_known_park_id_gets_the_first_answer_again<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    let sent = anonymous();
    let first = parked(bench.sink.submit(sent.clone()))?;
    let second = parked(bench.sink.submit(sent))?;
    same("the second answer", second, first)?;
    bench.holds(1)
}

fn sent_twice_at_once_is_one_letter<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    let sent = anonymous();
    let (first, second) = (bench.sink.submit(sent.clone()), bench.sink.submit(sent));
    same("the answers", parked(first)?, parked(second)?)?;
    bench.holds(1)
}

fn jobs_without_an_id_are_letters_of_their_own<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    let first = parked(bench.sink.submit(anonymous()))?;
    let second = parked(bench.sink.submit(anonymous()))?;
    demand!(first != second, "two jobs without an id became one letter");
    bench.holds(2)
}

fn a_dropped_ticket_changes_nothing<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    let dropped = anonymous();
    drop(bench.sink.submit(dropped.clone()));
    parked(bench.sink.submit(letter("after", start())))?;
    // Sent again, it is answered as the one that is there already.
    parked(bench.sink.submit(dropped))?;
    bench.holds(2)
}

fn an_awaited_ticket_and_a_waited_for_ticket_say_the_same<S: DeadLetterSink>(
    bench: &SinkBench<'_, S>,
) -> Result<(), String> {
    let sent = letter("a", start());
    let waited_for = parked(bench.sink.submit(sent.clone()))?;
    match attempt(bench.sink.submit(sent))? {
        Parking::Parked { letter_id } => same("the awaited answer", letter_id, waited_for),
        other => Err(format!("not parked: {other}")),
    }
}

fn a_crowd_of_threads_is_served<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    const THREADS: usize = 8;
    const LETTERS: usize = 25;
    let sink = &bench.sink;
    let one = |thread: usize| {
        let jobs = (0..LETTERS).map(|n| format!("{thread}-{n}"));
        let tickets: Vec<_> = jobs.map(|job| sink.submit(letter(&job, start()))).collect();
        tickets.into_iter().map(parked).collect::<Result<Vec<_>, _>>()
    };
    let ids = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let one = &one;
                scope.spawn(move || one(thread))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?);
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    let ids: HashSet<_> = ids.into_iter().flatten().collect();
    same("distinct letters", ids.len(), THREADS * LETTERS)?;
    bench.holds((THREADS * LETTERS) as u64)
}

fn a_letter_without_payload_is_kept<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    let mut sent = letter("broken", start());
    sent.payload = Payload::Unserializable("key must be a string".to_owned());
    parked(bench.sink.submit(sent))?;
    let mut sent = letter("none", start());
    sent.payload = Payload::None;
    parked(bench.sink.submit(sent))?;
    bench.holds(2)
}

fn odd_values_are_kept<S: DeadLetterSink>(bench: &SinkBench<'_, S>) -> Result<(), String> {
    let mut big = letter("big", start());
    big.payload = Payload::Json(format!("\"{}\"", "x".repeat(1 << 20)));
    let mut odd = letter("a 'b' \"c\" \u{0} \u{1F980}\n%_\\", start());
    odd.error_message = "\u{0}; DROP TABLE letter; --\n\u{FEFF}".into();
    odd.payload = Payload::Json("\"\\u0000 \u{1F980}\"".to_owned());
    let mut edge = DeadLetter::new("", StopReason::Crashed, UNIX_EPOCH - Duration::from_secs(1));
    edge.code = Some(i64::MIN);
    edge.attempts = u32::MAX;
    edge.not_before = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(100 * 365 * 86_400));
    for sent in [big, odd, edge] {
        parked(bench.sink.submit(sent))?;
    }
    bench.holds(3)
}
