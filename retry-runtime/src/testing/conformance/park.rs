//! Parking: identity, merge, counts.

use super::support::{Bench, Check, checks, demand, done, failure, letter, same, seconds, start};
use crate::attempt::AttemptRecord;
use crate::dead_letter::{DeadLetter, DeadLetterStore, Failure, Filter, LetterState, Payload, ReplayOutcome};
use crate::id::Id;
use crate::stop::StopReason;

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "B1.6" a_parked_letter_keeps_everything,
        "B1.7" a_job_parked_again_is_one_letter,
        "D1" a_known_park_id_changes_no_count,
        "D1" a_known_park_id_reopens_nothing,
        "D2" another_kind_is_another_letter,
        "D2" a_recovered_letter_opens_again,
        "D2" a_discarded_letter_opens_again,
        "D2" an_abandoned_letter_stays_and_counts_on,
        "D2" without_a_job_id_the_letter_id_is_the_job_id,
        "D3" the_newest_failure_shows,
        "D3" an_older_parking_only_counts,
        "D3" an_older_parking_reopens_nothing,
        "D3" a_clock_set_back_hides_no_failure,
        "D3" another_payload_is_another_revision,
        "D3" the_same_payload_is_the_same_revision,
        "D3" an_older_payload_does_not_take_over,
        "D3" a_payload_is_not_lost_to_one_that_cannot_be_serialised,
        "D3" the_later_not_before_stays,
        "D20" attempts_add_up,
        "11.5" a_letter_says_why_it_has_no_payload,
        "11.5" a_letter_says_whether_its_newest_payload_could_be_serialised,
        "11.6" histories_of_all_parkings_join,
    ]
}

fn a_parked_letter_keeps_everything<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let mut sent = letter("a", start());
    sent.first_failed_at = start() - seconds(10);
    sent.not_before = Some(start() + seconds(90));
    let detail = bench.detail(&bench.park(sent.clone())?)?;
    let row = &detail.row;
    same("kind", row.kind.as_str(), "fetch")?;
    same("job_id", row.job_id.as_str(), "a")?;
    same("payload", &detail.payload, &sent.payload)?;
    same("payload_size", row.payload_size, Some(10))?;
    same("model", row.model.as_deref(), Some("m1"))?;
    same("reason", row.reason, sent.reason)?;
    same("disposition", row.disposition, sent.disposition)?;
    same("class", &row.class, &sent.class)?;
    same("code", row.code, sent.code)?;
    same("error_class", row.error_class.as_str(), "exhausted:429")?;
    same("error_type", &row.error_type, &sent.error_type)?;
    same("error_message", &row.error_message, &sent.error_message)?;
    same("attempts", row.attempts, 2)?;
    same("state", row.state, LetterState::Parked)?;
    same("first_seen", row.first_seen, start() - seconds(10))?;
    same("last_seen", row.last_seen, start())?;
    same("not_before", row.not_before, sent.not_before)?;
    same("history", detail.history.len(), 2)?;
    let found = detail.history.iter().map(|e| (e.attempt, e.class.clone(), e.code, e.message.clone(), e.took, e.at));
    let sent_records =
        |r: &AttemptRecord| (r.attempt, Some(r.class.to_string()), r.code, r.message.clone(), r.took, r.at);
    same("history", found.collect::<Vec<_>>(), sent.history.iter().map(sent_records).collect())?;
    same("history's parking", detail.history.iter().all(|e| e.park_id == Some(sent.park_id) && !e.late), true)
}

fn a_job_parked_again_is_one_letter<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let first = bench.park_job("a")?;
    bench.time.advance(seconds(1));
    let second = bench.park_job("a")?;
    same("the letter", &second, &first)?;
    same("letters", done(bench.store.count(Filter::all()))?, 1)?;
    same("parkings", bench.row(&first)?.parkings, 2)
}

fn a_known_park_id_changes_no_count<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let sent = letter("a", start());
    let id = bench.park(sent.clone())?;
    let before = bench.detail(&id)?;
    bench.time.advance(seconds(5));
    same("the answer", bench.park(sent)?, id.clone())?;
    same("the letter", bench.detail(&id)?, before)
}

fn a_known_park_id_reopens_nothing<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let sent = letter("a", start());
    let id = bench.park(sent.clone())?;
    bench.replay(&id, ReplayOutcome::Recovered)?;
    same("the answer", bench.park(sent)?, id.clone())?;
    same("state", bench.row(&id)?.state, LetterState::Recovered)
}

fn another_kind_is_another_letter<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let first = bench.park_job("a")?;
    let mut other = letter("a", start());
    "store".clone_into(&mut other.kind);
    let second = bench.park(other)?;
    demand!(first != second, "two kinds with one job id became one letter");
    same("letters", done(bench.store.count(Filter::all()))?, 2)
}

fn reopens<S: DeadLetterStore>(bench: &Bench<S>, outcome: ReplayOutcome, closed: LetterState) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let before = bench.replay(&id, outcome)?;
    same("state", before.state, closed)?;
    demand!(before.closed_at.is_some(), "a closed letter has no closed_at");
    let entries = bench.detail(&id)?.history.len();
    bench.time.advance(seconds(60));
    same("the letter", bench.park_job("a")?, id.clone())?;
    let after = bench.detail(&id)?;
    same("state", after.row.state, LetterState::Parked)?;
    same("closed_at", after.row.closed_at, None)?;
    same("fence", after.row.fence, before.fence + 1)?;
    same("replays", after.row.replays, before.replays)?;
    same("max_replays", after.row.max_replays, before.replays + crate::dead_letter::MAX_REPLAYS)?;
    same("history", after.history.len(), entries + 2)
}

fn a_recovered_letter_opens_again<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    reopens(bench, ReplayOutcome::Recovered, LetterState::Recovered)
}

fn a_discarded_letter_opens_again<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    reopens(bench, ReplayOutcome::Gone(failure()), LetterState::Discarded)
}

fn an_abandoned_letter_stays_and_counts_on<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let before = bench.wear_out(&id)?;
    same("state", before.state, LetterState::Abandoned)?;
    bench.time.advance(seconds(60));
    bench.park_job("a")?;
    let after = bench.row(&id)?;
    same("state", after.state, LetterState::Abandoned)?;
    same("closed_at", after.closed_at, before.closed_at)?;
    same("parkings", after.parkings, before.parkings + 1)?;
    same("attempts", after.attempts, before.attempts + 2)
}

fn without_a_job_id_the_letter_id_is_the_job_id<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park(DeadLetter { job_id: None, ..letter("", start()) })?;
    same("job_id", bench.row(&id)?.job_id, id)
}

/// A second failure of job `a`, unlike the first.
fn unlike(at: std::time::SystemTime) -> DeadLetter {
    let mut other = letter("a", at);
    other.park_id = Id::new(at);
    other.reason = StopReason::Permanent;
    other.class = Some("forbidden".to_owned());
    other.code = Some(403);
    other.error_type = "app::Other".into();
    other.error_message = "forbidden".into();
    other.model = Some("m2".to_owned());
    other
}

fn the_newest_failure_shows<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let before = bench.row(&id)?;
    bench.park(unlike(start() + seconds(60)))?;
    let row = bench.row(&id)?;
    same("error_class", row.error_class.as_str(), "permanent:403")?;
    same("reason", row.reason, StopReason::Permanent)?;
    same("class", row.class.as_deref(), Some("forbidden"))?;
    same("code", row.code, Some(403))?;
    same("error_type", row.error_type.as_str(), "app::Other")?;
    same("error_message", row.error_message.as_str(), "forbidden")?;
    same("model", row.model.as_deref(), Some("m2"))?;
    same("first_seen", row.first_seen, start())?;
    same("last_seen", row.last_seen, start() + seconds(60))?;
    demand!(row.fingerprint != before.fingerprint, "the fingerprint is that of the earlier failure");
    Ok(())
}

fn an_older_parking_only_counts<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.park(unlike(start() - seconds(60)))?;
    let row = bench.row(&id)?;
    same("error_class", row.error_class.as_str(), "exhausted:429")?;
    same("error_message", row.error_message.as_str(), "too many requests")?;
    same("model", row.model.as_deref(), Some("m1"))?;
    same("last_seen", row.last_seen, start())?;
    same("first_seen", row.first_seen, start() - seconds(60))?;
    same("parkings", row.parkings, 2)?;
    same("attempts", row.attempts, 4)
}

fn an_older_parking_reopens_nothing<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.replay(&id, ReplayOutcome::Recovered)?;
    bench.park(unlike(start() - seconds(60)))?;
    let row = bench.row(&id)?;
    same("state", row.state, LetterState::Recovered)?;
    same("parkings", row.parkings, 2)
}

fn a_clock_set_back_hides_no_failure<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.replay(&id, ReplayOutcome::Recovered)?;
    bench.time.set(start() - seconds(60));
    bench.park(unlike(start() - seconds(60)))?;
    let row = bench.row(&id)?;
    same("state", row.state, LetterState::Parked)?;
    same("error_message", row.error_message.as_str(), "forbidden")?;
    bench.time.set(start() - seconds(120));
    let again = Failure { error_message: "again".to_owned(), ..failure() };
    let row = bench.replay(&id, ReplayOutcome::Failed(again))?;
    same("last_seen after a replay", row.last_seen, start() - seconds(120))?;
    same("error_message after a replay", row.error_message.as_str(), "again")
}

fn with_payload(at: std::time::SystemTime, payload: Payload) -> DeadLetter {
    DeadLetter { payload, ..letter("a", at) }
}

fn json(text: &str) -> Payload {
    Payload::Json(text.to_owned())
}

fn another_payload_is_another_revision<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park(with_payload(start(), json("1")))?;
    let key = bench.row(&id)?.idempotency_key();
    bench.park(with_payload(start() + seconds(1), json("22")))?;
    let detail = bench.detail(&id)?;
    same("payload", detail.payload, json("22"))?;
    same("payload_revision", detail.row.payload_revision, 2)?;
    same("payload_size", detail.row.payload_size, Some(2))?;
    same("revisions kept", detail.revisions, 2)?;
    demand!(detail.row.idempotency_key() != key, "another payload has the same idempotency key");
    same("claimed payload", bench.claim_id(&id)?.payload, json("22"))
}

fn the_same_payload_is_the_same_revision<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park(with_payload(start(), json("1")))?;
    bench.park(with_payload(start() + seconds(1), json("1")))?;
    let detail = bench.detail(&id)?;
    same("payload_revision", detail.row.payload_revision, 1)?;
    same("revisions kept", detail.revisions, 1)
}

fn an_older_payload_does_not_take_over<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park(with_payload(start(), json("\"new\"")))?;
    bench.park(with_payload(start() - seconds(1), json("\"old\"")))?;
    let detail = bench.detail(&id)?;
    same("payload", detail.payload, json("\"new\""))?;
    same("payload_revision", detail.row.payload_revision, 1)?;
    same("revisions kept", detail.revisions, 2)
}

fn a_payload_is_not_lost_to_one_that_cannot_be_serialised<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park(with_payload(start(), json("1")))?;
    bench.park(with_payload(start() + seconds(1), Payload::Unserializable("why".to_owned())))?;
    bench.park(with_payload(start() + seconds(2), Payload::None))?;
    same("payload", bench.detail(&id)?.payload, json("1"))
}

fn the_later_not_before_stays<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let until = |n| Some(start() + seconds(n));
    let id = bench.park(DeadLetter { not_before: until(100), ..letter("a", start()) })?;
    bench.park(DeadLetter { not_before: until(50), ..letter("a", start() + seconds(1)) })?;
    same("not_before", bench.row(&id)?.not_before, until(100))?;
    bench.park(DeadLetter { not_before: None, ..letter("a", start() + seconds(2)) })?;
    same("not_before", bench.row(&id)?.not_before, until(100))?;
    bench.park(DeadLetter { not_before: until(200), ..letter("a", start() + seconds(3)) })?;
    same("not_before", bench.row(&id)?.not_before, until(200))
}

fn attempts_add_up<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park(DeadLetter { attempts: 4, ..letter("a", start()) })?;
    bench.park(DeadLetter { attempts: 0, ..letter("a", start() + seconds(1)) })?;
    bench.park(DeadLetter { attempts: 3, ..letter("a", start() + seconds(2)) })?;
    same("attempts after three parkings", bench.row(&id)?.attempts, 7)?;
    let row = bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    same("attempts after a replay", row.attempts, 8)
}

fn a_letter_says_why_it_has_no_payload<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let why = Payload::Unserializable("key must be a string".to_owned());
    let id = bench.park(with_payload(start(), why.clone()))?;
    let detail = bench.detail(&id)?;
    same("payload", detail.payload, why.clone())?;
    same("payload_revision", detail.row.payload_revision, 0)?;
    same("payload_error", bench.row(&id)?.payload_error.as_deref(), Some("key must be a string"))?;
    same("claimed payload", bench.claim_id(&id)?.payload, why)
}

fn a_letter_says_whether_its_newest_payload_could_be_serialised<S: DeadLetterStore>(
    bench: &Bench<S>,
) -> Result<(), String> {
    let failed = |why: &str| Payload::Unserializable(why.to_owned());
    let error = |id: &str| Ok::<_, String>(bench.row(id)?.payload_error);
    // The store's clock is not behind any of them.
    bench.time.advance(seconds(10));
    let id = bench.park(with_payload(start(), json("1")))?;
    same("payload_error", error(&id)?, None)?;
    bench.park(with_payload(start() + seconds(2), failed("newest")))?;
    same("payload_error beside an older payload", error(&id)?.as_deref(), Some("newest"))?;
    bench.park(with_payload(start() + seconds(1), failed("late")))?;
    bench.park(with_payload(start() + seconds(1), json("2")))?;
    bench.park(with_payload(start() + seconds(3), Payload::None))?;
    same("payload_error after late and empty ones", error(&id)?.as_deref(), Some("newest"))?;
    bench.park(with_payload(start() + seconds(4), json("1")))?;
    same("payload_error after a payload", error(&id)?, None)
}

fn histories_of_all_parkings_join<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    bench.time.advance(seconds(1));
    bench.park_job("a")?;
    let history = bench.detail(&id)?.history;
    same("entries", history.len(), 5)?;
    let of_replay = history.iter().filter(|entry| entry.fence.is_some() && entry.park_id.is_none()).count();
    same("entries of the replay", of_replay, 1)
}
