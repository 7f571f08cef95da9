//! What operators do to one letter by hand: discard, resolve, edit.

use super::support::{
    Bench, Check, LEASE, actor, attempt, checks, demand, done, failure, letter, refused, same, seconds, start,
    usual_claim,
};
use crate::dead_letter::{
    Actor, CLOSED_ABANDONED, CLOSED_BY_HAND, CLOSED_DISCARDED, CLOSED_GONE, CLOSED_RECOVERED, DeadLetterStore, Edit,
    Edited, EventQuery, Filter, LetterState, MAX_CRASHES, Payload, PayloadDiff, ReplayOutcome, Revision,
    RevisionSource,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::verdict::Disposition;

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "S1" a_discarded_letter_is_owed_no_more,
        "S1" resolving_by_hand_is_no_replay,
        "S1" a_closed_letter_says_by_whom_and_how,
        "E92" an_edit_is_a_revision_of_its_own,
        "E92" an_edit_says_who_and_why,
        "D11" the_idempotency_key_follows_the_edit,
        "D12" an_edited_letter_is_permanent_no_more,
        "E92" an_edit_of_something_else_is_refused,
        "E92" the_same_payload_is_no_edit,
        "E92" a_letter_without_payload_gets_one,
        "E91" a_new_failure_supersedes_an_edit_and_keeps_it,
    ]
}

impl<S: DeadLetterStore> Bench<S> {
    fn edit(&self, id: &str, base: u32, payload: &str) -> Result<Result<Edited, StoreError>, String> {
        attempt(self.store.edit(Edit::new(id, base, payload), Actor::new("ann", "a typo")))
    }

    fn edited(&self, id: &str, base: u32, payload: &str) -> Result<Edited, String> {
        self.edit(id, base, payload)?.map_err(|error| error.to_string())
    }

    fn revisions(&self, id: &str) -> Result<Vec<Revision>, String> {
        done(self.store.revisions(id.to_owned()))
    }
}

fn json(text: &str) -> Payload {
    Payload::Json(text.to_owned())
}

fn a_discarded_letter_is_owed_no_more<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let parked = bench.park_job("a")?;
    let abandoned = bench.park_job("b")?;
    bench.wear_out(&abandoned)?;
    for id in [parked, abandoned] {
        let before = bench.detail(&id)?;
        bench.time.advance(seconds(1));
        let row = done(bench.store.discard(id.clone(), actor()))?;
        let after = bench.detail(&id)?;
        same("the letter as returned", &row, &after.row)?;
        same("state", row.state, LetterState::Discarded)?;
        same("closed_at", row.closed_at, Some(bench.time.now()))?;
        same("counts", (row.attempts, row.replays, row.crashes), (before.row.attempts, before.row.replays, 0))?;
        same("the payload", after.payload, before.payload)?;
        same("the history", after.history, before.history)?;
    }
    same("owed", done(bench.store.count(Filter::owed()))?, 0)?;
    same("handed out", bench.claim(usual_claim())?.len(), 0)
}

fn resolving_by_hand_is_no_replay<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let before = bench.row(&id)?;
    for reason in ["", " "] {
        let unsaid = attempt(bench.store.resolve(id.clone(), Actor::new("ann", reason)))?;
        refused("without a reason", unsaid, StoreErrorKind::Invalid)?;
    }
    same("the letter", bench.row(&id)?, before.clone())?;
    let row = done(bench.store.resolve(id.clone(), Actor::new("ann", "paid by phone")))?;
    same("the letter as returned", &row, &bench.row(&id)?)?;
    same("state", row.state, LetterState::Recovered)?;
    same("closed_by", row.closed_by.as_deref(), Some("ann"))?;
    same("closed_reason", row.closed_reason.as_deref(), Some(CLOSED_BY_HAND))?;
    same("replays", (row.replays, row.attempts), (before.replays, before.attempts))?;
    same("the history", bench.detail(&id)?.history.len(), 2)?;
    // A new failure of the job opens it again.
    bench.time.advance(seconds(1));
    bench.park_job("a")?;
    let row = bench.row(&id)?;
    same("state", row.state, LetterState::Parked)?;
    same("closed_by and how", (row.closed_by, row.closed_reason), (None, None))
}

fn a_closed_letter_says_by_whom_and_how<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let recovered = bench.park_job("a")?;
    bench.replay(&recovered, ReplayOutcome::Recovered)?;
    let gone = bench.park_job("b")?;
    bench.replay(&gone, ReplayOutcome::Gone(failure()))?;
    let worn_out = bench.park_job("c")?;
    bench.wear_out(&worn_out)?;
    let discarded = bench.park_job("d")?;
    done(bench.store.discard(discarded.clone(), actor()))?;
    let crashed = bench.park_job("e")?;
    for _ in 0..MAX_CRASHES {
        bench.claim_id(&crashed)?;
        bench.time.advance(LEASE + seconds(1));
        done(bench.store.reap(actor()))?;
    }
    let wanted = [
        (recovered, CLOSED_RECOVERED),
        (gone, CLOSED_GONE),
        (worn_out, CLOSED_ABANDONED),
        (discarded, CLOSED_DISCARDED),
        (crashed, CLOSED_ABANDONED),
    ];
    for (id, how) in wanted {
        let row = bench.row(&id)?;
        same(
            "by whom and how",
            (row.closed_by.as_deref(), row.closed_reason.as_deref()),
            (Some("conformance"), Some(how)),
        )?;
        let row = done(bench.store.restore(id, 1, actor()))?;
        same("once restored", (row.closed_by, row.closed_reason), (None, None))?;
    }
    Ok(())
}

fn an_edit_is_a_revision_of_its_own<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let first = bench.revisions(&id)?;
    bench.time.advance(seconds(1));
    let second = "{ \"id\" : \"b\",\n \"n\":1.50 }";
    let edited = bench.edited(&id, 1, second)?;
    demand!(edited.is_changed, "the edit says that nothing changed");
    same("the letter as returned", &edited.row, &bench.row(&id)?)?;
    same("revision", (edited.row.payload_revision, edited.row.payload_size), (2, Some(second.len() as u64)))?;
    same("state", edited.row.state, LetterState::Parked)?;
    bench.edited(&id, 2, "[]")?;
    let revisions = bench.revisions(&id)?;
    same("revisions", revisions.iter().map(|kept| kept.revision).collect(), vec![1, 2, 3])?;
    // Written once: byte for byte as it was.
    same("the first revision", revisions.first(), first.first())?;
    let texts: Vec<_> = revisions.iter().map(|kept| &kept.payload).collect();
    same("payloads", texts, vec![&json("{\"id\":\"a\"}"), &json(second), &json("[]")])?;
    let detail = bench.detail(&id)?;
    same("the payload shown", (detail.revisions, &detail.payload), (3, &json("[]")))?;
    same("the payload replayed", bench.claim_id(&id)?.payload, json("[]"))?;
    let diff = PayloadDiff::between("{\"id\":\"a\"}", second).to_string();
    same("the difference", diff.as_str(), "~ /id: \"a\" -> \"b\"\n+ /n: 1.5")
}

fn an_edit_says_who_and_why<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.time.advance(seconds(1));
    bench.edited(&id, 1, "1")?;
    let revisions = bench.revisions(&id)?;
    let [first, second] = revisions.as_slice() else { return Err(format!("{} revisions", revisions.len())) };
    same("the first one's source", (first.source, &first.actor, &first.reason), (RevisionSource::Park, &None, &None))?;
    same("its time", first.at, start())?;
    // Of `{"id":"a"}`, by coreutils.
    let sum = first.sha256.iter().take(4).fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    same("its size and checksum", (first.size, sum), (10, 0x8489_a5de))?;
    let who = (second.source, second.actor.as_deref(), second.reason.as_deref());
    same("the second one's source", who, (RevisionSource::Edit, Some("ann"), Some("a typo")))?;
    same("its time", second.at, start() + seconds(1))?;
    same("its size", second.size, 1)?;
    same("of a letter that is not there", bench.revisions("nowhere")?, vec![])
}

fn the_idempotency_key_follows_the_edit<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    same("before", bench.row(&id)?.idempotency_key(), format!("{id}.1"))?;
    let edited = bench.edited(&id, 1, "1")?;
    same("after", edited.row.idempotency_key(), format!("{id}.2"))?;
    same("at the replay", bench.claim_id(&id)?.row.idempotency_key(), format!("{id}.2"))
}

fn an_edited_letter_is_permanent_no_more<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let mut forbidden = letter("a", bench.time.now());
    forbidden.disposition = Disposition::Permanent;
    let id = bench.park(forbidden)?;
    let left_in = || {
        let mut filter = Filter::parked();
        filter.dispositions = Disposition::ALL.iter().copied().filter(|said| *said != Disposition::Permanent).collect();
        done(bench.store.count(filter))
    };
    same("left in before the edit", left_in()?, 0)?;
    let edited = bench.edited(&id, 1, "1")?;
    same("disposition", edited.row.disposition, Disposition::Unknown)?;
    same("left in after it", left_in()?, 1)?;
    same("its class stays", edited.row.class.as_deref(), Some("rate_limit"))
}

fn an_edit_of_something_else_is_refused<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.edited(&id, 1, "1")?;
    let before = bench.detail(&id)?;
    for base in [0, 1, 3] {
        refused("from another revision", bench.edit(&id, base, "2")?, StoreErrorKind::Conflict)?;
    }
    let broken = bench.edit(&id, 2, "{\n \"a\": 1,,\n}")?;
    if let Err(error) = &broken {
        let message = error.to_string();
        demand!(message.contains("line 2 column 9"), "no place in `{message}`");
    }
    refused("no JSON", broken, StoreErrorKind::Invalid)?;
    refused("an unknown letter", bench.edit("nowhere", 1, "2")?, StoreErrorKind::Invalid)?;
    same("the letter", bench.detail(&id)?, before)?;
    same("revisions", bench.revisions(&id)?.len(), 2)?;
    bench.claim_id(&id)?;
    refused("while it is being replayed", bench.edit(&id, 2, "2")?, StoreErrorKind::Conflict)
}

fn the_same_payload_is_no_edit<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    let before = bench.detail(&id)?;
    let events = done(bench.store.events(EventQuery::letter(&id)))?.events.len();
    let edited = bench.edited(&id, 1, "{\"id\":\"a\"}")?;
    demand!(!edited.is_changed, "the same payload is said to be an edit");
    same("the letter as returned", &edited.row, &before.row)?;
    same("the letter", bench.detail(&id)?, before)?;
    same("revisions", bench.revisions(&id)?.len(), 1)?;
    same("events", done(bench.store.events(EventQuery::letter(&id)))?.events.len(), events)?;
    // Written in another way it is another payload: nobody but the handler knows what its bytes mean.
    demand!(bench.edited(&id, 1, "{\"id\": \"a\"}")?.is_changed, "another text is said to be no edit");
    Ok(())
}

fn a_letter_without_payload_gets_one<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for (job, payload) in [("a", Payload::None), ("b", Payload::Unserializable("why".to_owned()))] {
        let mut sent = letter(job, start());
        sent.payload = payload;
        let id = bench.park(sent)?;
        let row = bench.edited(&id, 0, "7")?.row;
        same("revision", (row.payload_revision, row.payload_error.as_deref()), (1, None))?;
        same("the payload replayed", bench.claim_id(&id)?.payload, json("7"))?;
    }
    Ok(())
}

fn a_new_failure_supersedes_an_edit_and_keeps_it<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.edited(&id, 1, "1")?;
    bench.time.advance(seconds(1));
    // The job was called again, as before: that is the newest there is (D3).
    bench.park_job("a")?;
    let row = bench.row(&id)?;
    same("revision", row.payload_revision, 3)?;
    let texts: Vec<_> = bench.revisions(&id)?.into_iter().map(|kept| kept.payload).collect();
    same("payloads", texts, vec![json("{\"id\":\"a\"}"), json("1"), json("{\"id\":\"a\"}")])
}
