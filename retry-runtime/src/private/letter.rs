//! From a call that gave up to the letter that is parked.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_core::Serialize;

use crate::__private::site::Site;
use crate::__private::watch::{News, Watch};
use crate::clock;
use crate::context::RetryContext;
use crate::dead_letter::{
    DeadLetter, DeadLetterSink, Parking, Payload, Ticket, hand_over_or_submit, lose, loss_is_said,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Id;
use crate::observe::Notice;
use crate::panics::end_of_panic;
use crate::stop::StopReason;

/// How long a blocking caller waits to hear that its letter is durable. The letter is parked all the same.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a call that ended so leaves a letter.
pub(crate) fn parks(record: &RetryContext) -> bool {
    !matches!(record.stop_reason(), None | Some(StopReason::Succeeded | StopReason::Gone | StopReason::LedgerRefused))
}

/// The letter of a call, without job id, model and payload.
pub(crate) fn letter(park_id: Id, site: &Site, record: &RetryContext, error_type: &str) -> DeadLetter {
    let now = clock::wall();
    let reason = record.stop_reason().unwrap_or(StopReason::Unknown);
    let mut letter = DeadLetter::known_as(park_id, site.name(), reason, now);
    error_type.clone_into(&mut letter.error_type);
    letter.attempts = record.attempts();
    letter.not_before = record.not_before(now);
    letter.history = record.history().to_vec();
    letter.first_failed_at = letter.history.first().map_or(now, |first| first.at);
    letter.error_message = record.stop().map(|stop| stop.to_string()).unwrap_or_default();
    if let Some(last) = record.last() {
        letter.disposition = last.disposition;
        // without a verdict there is no class: the letter's error class is the reason alone
        let judged = !matches!(reason, StopReason::ClassifierFailed | StopReason::Panicked);
        letter.class = judged.then(|| last.record.class.clone().into_owned());
        letter.code = last.record.code;
        letter.error_message.clone_from(&last.record.message);
    }
    letter
}

/// Adds the job's key.
#[must_use]
pub fn job_id(mut letter: DeadLetter, id: &dyn Display) -> DeadLetter {
    letter.job_id = text("job_id", &letter, id);
    letter
}

/// Adds the job's label.
#[must_use]
pub fn model(mut letter: DeadLetter, model: &dyn Display) -> DeadLetter {
    letter.model = text("model", &letter, model);
    letter
}

/// Adds the job's input, serialised now. A failure or panic in it does not keep the letter from being parked.
#[must_use]
pub fn payload<P: Serialize + ?Sized>(mut letter: DeadLetter, payload: &P) -> DeadLetter {
    letter.payload = match catch_unwind(AssertUnwindSafe(|| serde_json::to_string(payload))) {
        Ok(Ok(json)) => Payload::Json(json),
        Ok(Err(error)) => Payload::Unserializable(error.to_string()),
        Err(panic) => Payload::Unserializable(format!("serialising panicked: {}", end_of_panic(panic))),
    };
    if let Payload::Unserializable(why) = &letter.payload {
        let message = format!("the payload of a dead letter could not be serialised: {why}; it is parked without");
        Notice::warning("payload_failed", letter.kind.clone(), message).say();
    }
    letter
}

fn text(what: &str, letter: &DeadLetter, value: &dyn Display) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| value.to_string())) {
        Ok(text) => Some(text),
        Err(panic) => {
            let message =
                format!("the `{what}` of a dead letter panicked: {}; it is parked without", end_of_panic(panic));
            Notice::warning("letter_incomplete", letter.kind.clone(), message).say();
            None
        }
    }
}

/// Does something with a letter where no panic may get out. One that would have is a loss, and said as one.
pub(crate) fn lost_while(what: &str, letter: DeadLetter, work: impl FnOnce(DeadLetter)) -> Option<Parking> {
    let named = named(&letter);
    catch_unwind(AssertUnwindSafe(|| work(letter))).err().map(|panic| {
        let message = format!("a panic while {what}: {}", end_of_panic(panic));
        lose(&named, StoreError::new(StoreErrorKind::Unknown, message))
    })
}

/// What the line about a loss names; the payload is not copied.
fn named(letter: &DeadLetter) -> DeadLetter {
    DeadLetter {
        job_id: letter.job_id.clone(),
        class: letter.class.clone(),
        code: letter.code,
        ..DeadLetter::known_as(letter.park_id, letter.kind.clone(), letter.reason, letter.failed_at)
    }
}

/// Hands the letter over. A sink that panics has lost it, loudly, and the caller gets its own error all the same. So is
/// every other loss said, once, also where the sink only answers with it.
pub fn park<S: DeadLetterSink + ?Sized>(sink: &S, letter: DeadLetter) -> Ticket {
    let named = named(&letter);
    match catch_unwind(AssertUnwindSafe(|| hand_over_or_submit(sink, letter))) {
        Ok(ticket) => said_if_lost(named, ticket),
        Err(panic) => {
            let message = format!("the sink panicked: {}", end_of_panic(panic));
            Ticket::ready(lose(&named, StoreError::new(StoreErrorKind::Unknown, message)))
        }
    }
}

fn said_if_lost(named: DeadLetter, ticket: Ticket) -> Ticket {
    let (answer, told) = Ticket::pair(|| {
        let because = StoreError::new(StoreErrorKind::Unknown, "the sink did not answer");
        Parking::Lost { because: because.said() }
    });
    ticket.then(move |parking| answer.send(loss_is_said(&named, parking)));
    told
}

/// What an awaited ticket said.
pub fn parked<W: Watch>(site: &Site, watch: &W, parking: Parking) -> Option<Parking> {
    say_if_failed(site.name(), &parking);
    if watch.is_watched() {
        watch.note(News::Parked(&parking));
    }
    Some(parking)
}

pub(crate) fn say_if_failed(operation: &str, parking: &Parking) {
    // A loss is said where it is known, with its letter and its job.
    if matches!(parking, Parking::Spilled { .. }) {
        Notice::warning("park_failed", operation, parking.to_string()).say();
    }
}

/// A ticket nobody waits for. What is known at once is told at once; else it is told on the thread that answers, to
/// whoever outlives the call.
pub(crate) fn left<W: Watch>(site: &Site, watch: &W, ticket: Ticket) {
    match ticket.wait(Duration::ZERO) {
        Ok(parking) => {
            let _told = parked(site, watch, parking);
        }
        Err(open) if watch.is_watched() => watch.later(open),
        Err(open) => {
            let operation = site.name().to_owned();
            open.then(move |parking| say_if_failed(&operation, &parking));
        }
    }
}

/// Waits for a ticket in a blocking call.
pub fn wait_for<W: Watch>(site: &Site, watch: &W, ticket: Ticket) -> Option<Parking> {
    match ticket.wait(PATIENCE) {
        Ok(parking) => parked(site, watch, parking),
        Err(still_open) => {
            let message = format!("no word about a dead letter after {PATIENCE:?}; its sink still has it");
            Notice::warning("park_pending", site.name(), message).say();
            left(site, watch, still_open);
            None
        }
    }
}
