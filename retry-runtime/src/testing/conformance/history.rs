//! A letter's history: everything, within bounds, never reset.

use std::time::Duration;

use super::support::{Bench, Check, actor, checks, demand, done, failure, letter, parked, same, seconds};
use crate::attempt::{AttemptRecord, MAX_MESSAGE};
use crate::dead_letter::{
    AttemptOutcome, DeadLetterSink, DeadLetterStore, Finish, HistoryEntry, LetterDetail, MAX_HISTORY_BYTES,
    MAX_HISTORY_ENTRIES, MAX_LABEL, MAX_NAME, MemoryStore, Payload, ReplayOutcome, message_size, name_within,
};

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "S1" replays_and_edits_leave_the_history_as_it_was,
        "D78" a_long_history_is_cut_in_its_middle,
        "D78" what_is_cut_is_the_same_everywhere,
        "D78" texts_are_bounded,
        "D78" a_job_id_too_long_stays_its_own,
    ]
}

fn records<S>(bench: &Bench<S>, sizes: impl IntoIterator<Item = usize>) -> Vec<AttemptRecord> {
    let record = |(n, size)| {
        let number = u32::try_from(n).unwrap_or(u32::MAX);
        AttemptRecord::new(number, bench.time.now(), Duration::ZERO, "timeout", None, &"x".repeat(size))
    };
    sizes.into_iter().enumerate().map(record).collect()
}

fn replays_and_edits_leave_the_history_as_it_was<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let mut known = bench.detail(&id)?.history;
    same("attempts of the call", known.len(), 2)?;
    let mut grows = |what: &str, by: usize| {
        let now = bench.detail(&id)?.history;
        demand!(now.starts_with(&known), "{what} changed what was recorded before");
        same(&format!("{what} recorded"), now.len() - known.len(), by)?;
        known = now;
        Ok::<_, String>(())
    };
    bench.time.advance(seconds(1));
    bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    grows("a failed replay", 1)?;
    done(bench.store.edit(crate::dead_letter::Edit::new(&id, 1, "1"), actor()))?;
    grows("an edit", 0)?;
    bench.replay(&id, ReplayOutcome::Recovered)?;
    grows("a recovery", 1)?;
    bench.time.advance(seconds(1));
    bench.park_job("a")?;
    grows("a parking", 2)?;
    done(bench.store.discard(id.clone(), actor()))?;
    done(bench.store.restore(id.clone(), 1, actor()))?;
    grows("discarding and restoring", 0)?;
    bench.replay(&id, ReplayOutcome::Gone(failure()))?;
    grows("a final answer", 1)
}

fn a_long_history_is_cut_in_its_middle<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let first = bench.detail(&id)?.history;
    let mut recorded = first.len() as u64;
    for n in 0..6_u32 {
        bench.time.advance(seconds(1));
        let mut sent = letter("a", bench.time.now());
        sent.history = records(bench, (0..200).map(|_| 1));
        recorded += 200;
        bench.park(sent)?;
        if n == 5 {
            let mut result = Finish::new(&id, bench.claim_id(&id)?.row.fence, ReplayOutcome::Recovered);
            result.history = records(bench, [3, 3]);
            done(bench.store.finish(result, actor()))?;
            recorded += 3;
        }
    }
    let LetterDetail { history, history_cut, history_cut_at, .. } = bench.detail(&id)?;
    same("attempts kept", history.len() as u64, MAX_HISTORY_ENTRIES)?;
    same("kept and cut", history.len() as u64 + history_cut, recorded)?;
    same("where", history_cut_at, MAX_HISTORY_ENTRIES / 2)?;
    demand!(history.starts_with(&first), "the oldest attempts are gone");
    same("the newest attempt", history.last().map(|entry| entry.outcome), Some(AttemptOutcome::Succeeded))
}

/// Messages of all sizes, beside the store in memory.
fn what_is_cut_is_the_same_everywhere<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let model = MemoryStore::with_clock(bench.time.clock());
    let mut ids = None;
    for n in 0..40_usize {
        bench.time.advance(seconds(1));
        let mut sent = letter("a", bench.time.now());
        let count = [1, 0, 16, 3, 70].get(n % 5).copied().unwrap_or(0);
        sent.history = records(bench, (0..count).map(|at| (n * 97 + at * 389) % (MAX_MESSAGE + 1)));
        let there = parked(bench.store.submit(sent.clone()))?;
        let here = parked(model.submit(sent))?;
        ids = Some((there, here));
    }
    let Some((there, here)) = ids else { return Ok(()) };
    let theirs = bench.detail(&there)?;
    let ours = done(model.get(here))?.ok_or("the model lost a letter")?;
    demand!(ours.history_cut > 0, "nothing was cut");
    same("what was cut", (theirs.history_cut, theirs.history_cut_at), (ours.history_cut, ours.history_cut_at))?;
    let bytes: u64 = theirs.history.iter().map(message_size).sum();
    demand!(bytes <= MAX_HISTORY_BYTES, "{bytes} bytes of messages");
    let told = |history: &[HistoryEntry]| {
        history.iter().map(|entry| (entry.at, entry.attempt, entry.message.len())).collect::<Vec<_>>()
    };
    same("the history", told(&theirs.history), told(&ours.history))
}

fn texts_are_bounded<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let long = || "x".repeat(100_000);
    let mut sent = letter("a", bench.time.now());
    (sent.error_message, sent.error_type) = (long(), long());
    (sent.class, sent.model, sent.code) = (Some(long()), Some(long()), None);
    sent.payload = Payload::Unserializable(long());
    if let Some(record) = sent.history.first_mut() {
        record.message = long();
        record.class = long().into();
    }
    let id = bench.park(sent)?;
    let mut failure = failure();
    (failure.error_message, failure.error_type, failure.code) = (long(), long(), None);
    let replayed = bench.replay(&id, ReplayOutcome::Failed(failure))?;
    let detail = bench.detail(&id)?;
    same("the letter as returned", &replayed, &detail.row)?;
    let row = &detail.row;
    let short = [
        (row.error_message.len(), MAX_MESSAGE),
        (row.error_type.len(), MAX_LABEL),
        (row.error_class.len(), MAX_LABEL + 32),
        (row.model.as_ref().map_or(0, String::len), MAX_LABEL),
        (row.payload_error.as_ref().map_or(0, String::len), MAX_MESSAGE),
    ];
    demand!(short.iter().all(|(found, most)| found <= most), "texts of sizes {short:?}");
    for entry in &detail.history {
        demand!(entry.message.len() <= MAX_MESSAGE, "a message of {} bytes", entry.message.len());
        demand!(entry.class.as_ref().is_none_or(|class| class.len() <= MAX_LABEL), "a class without bound");
    }
    demand!(row.error_message.contains("bytes cut"), "not marked as cut: {}", row.error_message);
    Ok(())
}

fn a_job_id_too_long_stays_its_own<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let long = "j".repeat(MAX_NAME);
    let (one, other) = (format!("{long}1"), format!("{long}2"));
    let id = bench.park_job(&one)?;
    same("the same job again", bench.park_job(&one)?, id.clone())?;
    demand!(bench.park_job(&other)? != id, "two jobs became one letter");
    same("its job id", bench.row(&id)?.job_id.as_str(), &*name_within(&one))?;
    let just = bench.park_job(&long)?;
    same("the longest job id", bench.row(&just)?.job_id, long)
}
