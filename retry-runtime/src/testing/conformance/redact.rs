//! Secrets in error texts are not stored; payloads are stored as they are.

use std::time::Duration;

use super::support::{Bench, Check, checks, demand, failure, letter, same};
use crate::attempt::AttemptRecord;
use crate::dead_letter::{DeadLetterStore, Finish, Payload, ReplayOutcome};

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "D9" no_secret_of_an_error_is_stored,
        "D9" no_secret_of_a_replay_s_error_is_stored,
        "D9" payloads_are_stored_as_they_are,
        "D9" the_same_failure_with_another_secret_is_one_group,
    ]
}

const SECRET: &str = "hunter2x9";

fn record<S>(bench: &Bench<S>) -> AttemptRecord {
    let message = format!("refused: Authorization: Bearer {SECRET}, status 401");
    AttemptRecord::new(1, bench.time.now(), Duration::ZERO, "auth", Some(401), &message)
}

fn leaks<S: DeadLetterStore>(bench: &Bench<S>, id: &str) -> Result<(), String> {
    let detail = bench.detail(id)?;
    let shown = format!("{:?} {:?}", detail.row, detail.history);
    demand!(!shown.contains(SECRET), "the secret is stored: {shown}");
    demand!(detail.row.error_message.contains("status 401"), "more than the secret is gone: {shown}");
    Ok(())
}

fn no_secret_of_an_error_is_stored<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let mut sent = letter("a", bench.time.now());
    sent.error_message = format!("GET https://bob:{SECRET}@host/a?token={SECRET}: status 401");
    sent.history = vec![record(bench)];
    let id = bench.park(sent)?;
    leaks(bench, &id)
}

fn no_secret_of_a_replay_s_error_is_stored<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let mut failure = failure();
    failure.error_message = format!("{{\"password\":\"{SECRET}\"}}: status 401");
    let mut result = Finish::new(&id, bench.claim_id(&id)?.row.fence, ReplayOutcome::Failed(failure));
    result.history = vec![record(bench)];
    super::support::done(bench.store.finish(result, super::support::actor()))?;
    leaks(bench, &id)
}

fn payloads_are_stored_as_they_are<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let mut sent = letter("a", bench.time.now());
    sent.payload = Payload::Json(format!("{{ \"password\" : \"{SECRET}\" }}"));
    let id = bench.park(sent.clone())?;
    let claimed = bench.claim_id(&id)?;
    same("the payload", claimed.payload, sent.payload)?;
    same("whether it was altered", claimed.row.payload_altered, false)
}

fn the_same_failure_with_another_secret_is_one_group<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let mut rows = Vec::new();
    for (job, secret) in [("a", "abcdefgh"), ("b", "stuvwxyz")] {
        let mut sent = letter(job, bench.time.now());
        sent.error_message = format!("refused: password={secret}");
        rows.push(bench.row(&bench.park(sent)?)?.fingerprint);
    }
    same("the groups", rows.first(), rows.last())
}
