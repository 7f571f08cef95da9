//! The store as a whole.

use super::support::{Bench, Check, actor, checks, demand, done, failure, letter, same, seconds};
use crate::dead_letter::{DeadLetterStore, LetterRow, Overview, ReplayOutcome, StoreFacts, whole_millis};

pub(super) fn checks<S: DeadLetterStore + Overview>() -> Vec<Check<Bench<S>>> {
    checks![
        "D22" the_moment_is_the_stores,
        "D12" the_next_hint_is_the_earliest_one_ahead,
        "S1" the_recovered_of_a_day_are_those_closed_in_it,
        "S7" who_wrote_the_newest_letters_is_said,
        "S7" what_arrives_is_what_is_parked,
        "D2" a_text_means_a_letter_then_a_job_then_what_begins_so,
    ]
}

fn facts<S: Overview>(bench: &Bench<S>) -> Result<StoreFacts, String> {
    done(bench.store.facts())
}

fn the_moment_is_the_stores<S: Overview>(bench: &Bench<S>) -> Result<(), String> {
    bench.time.advance(seconds(77));
    same("now", facts(bench)?.now, bench.time.now())
}

fn the_next_hint_is_the_earliest_one_ahead<S: DeadLetterStore + Overview>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("due")?;
    same("without a hint", facts(bench)?.next_due, None)?;
    let now = bench.time.now();
    for (kind, job, wait) in [("fetch", "late", 300), ("store", "first", 100), ("fetch", "second", 200)] {
        let mut letter = letter(job, now);
        kind.clone_into(&mut letter.kind);
        letter.not_before = Some(now + seconds(wait));
        bench.park(letter)?;
    }
    same("three hints", facts(bench)?.next_due, Some(whole_millis(now + seconds(100))))?;
    bench.time.advance(seconds(101));
    same("the first is over", facts(bench)?.next_due, Some(whole_millis(now + seconds(200))))?;
    let second = find_one(bench, "second")?;
    done(bench.store.discard(second.letter_id, actor()))?;
    same("the second is not owed", facts(bench)?.next_due, Some(whole_millis(now + seconds(300))))
}

fn the_recovered_of_a_day_are_those_closed_in_it<S: DeadLetterStore + Overview>(
    bench: &Bench<S>,
) -> Result<(), String> {
    let [early, late, gone] = ["early", "late", "given up"].map(|job| bench.park_job(job));
    bench.replay(&early?, ReplayOutcome::Recovered)?;
    bench.time.advance(seconds(80_000));
    bench.replay(&late?, ReplayOutcome::Recovered)?;
    done(bench.store.discard(gone?, actor()))?;
    same("both of them", facts(bench)?.recovered_in_a_day, 2)?;
    bench.time.advance(seconds(7_000));
    same("the second", facts(bench)?.recovered_in_a_day, 1)
}

fn who_wrote_the_newest_letters_is_said<S: DeadLetterStore + Overview>(bench: &Bench<S>) -> Result<(), String> {
    same("of an empty store", facts(bench)?.writers, Vec::new())?;
    for job in ["a", "b", "c"] {
        bench.park_job(job)?;
    }
    let writers = facts(bench)?.writers;
    same("how many letters", writers.iter().map(|(_, n)| n).sum(), 3)?;
    let versioned = |(name, _): &(String, u64)| name.rsplit_once('@').is_some_and(|(_, version)| !version.is_empty());
    demand!(writers.iter().all(versioned), "no version in {writers:?}");
    Ok(())
}

fn what_arrives_is_what_is_parked<S: DeadLetterStore + Overview>(bench: &Bench<S>) -> Result<(), String> {
    let came = || facts(bench).map(|facts| facts.newest_parkings);
    same("in an empty store", came()?, Vec::new())?;
    let first = bench.time.now();
    let id = bench.park(letter("first", first))?;
    bench.time.advance(seconds(60));
    let second = bench.time.now();
    bench.park(letter("second", second))?;
    bench.time.advance(seconds(60));
    bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    same("after a replay that failed", came()?, vec![whole_millis(second), whole_millis(first)])?;
    let third = bench.time.now();
    bench.park(letter("first", third))?;
    same("a job that failed again", came()?.first().copied(), Some(whole_millis(third)))?;
    for nth in 0..StoreFacts::NEWEST_TIMES {
        bench.park_job(&format!("more-{nth}"))?;
    }
    same("no more than asked for", came()?.len(), StoreFacts::NEWEST_TIMES as usize)
}

fn jobs(found: &[LetterRow]) -> Vec<&str> {
    found.iter().map(|row| row.job_id.as_str()).collect()
}

fn find_one<S: Overview>(bench: &Bench<S>, text: &str) -> Result<LetterRow, String> {
    let mut found = done(bench.store.find(text.to_owned(), 10))?;
    demand!(found.len() == 1, "`{text}` means {:?}", jobs(&found));
    found.pop().ok_or_else(String::new)
}

fn a_text_means_a_letter_then_a_job_then_what_begins_so<S: DeadLetterStore + Overview>(
    bench: &Bench<S>,
) -> Result<(), String> {
    let id = bench.park_job("page-1")?;
    bench.park_job("page-10")?;
    bench.park_job("page-2")?;
    let mut of_other_kind = letter("page-1", bench.time.now());
    "store".clone_into(&mut of_other_kind.kind);
    bench.park(of_other_kind)?;
    let mut odd = letter("100%_", bench.time.now());
    "store".clone_into(&mut odd.kind);
    bench.park(odd)?;
    let found = |text: &str, limit| done(bench.store.find(text.to_owned(), limit));
    same("a letter's id", found(&id, 10)?.into_iter().map(|row| row.letter_id).collect(), vec![id.clone()])?;
    same("a job's id", jobs(&found("page-1", 10)?), vec!["page-1", "page-1"])?;
    same("what begins so", jobs(&found("page-", 10)?), vec!["page-1", "page-10", "page-2", "page-1"])?;
    same("no more than asked for", found("page-", 3)?.len(), 3)?;
    // Letters parked within one moment have ids that begin alike.
    let most: String = id.chars().take(id.len() - 1).collect();
    demand!(found(&most, 10)?.iter().any(|row| row.letter_id == id), "the beginning of an id does not find it");
    same("no wild cards", jobs(&found("%", 10)?), Vec::new())?;
    same("no wild cards", jobs(&found("100%_", 10)?), vec!["100%_"])?;
    same("nothing", jobs(&found("", 10)?), Vec::new())?;
    same("what is not there", jobs(&found("page-3", 10)?), Vec::new())
}
