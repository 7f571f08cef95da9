//! What people did, out of the audit.

use std::time::SystemTime;

use retry_runtime::dead_letter::{BulkOperations, DeadLetterStore, EventQuery, EventRecord, Operation};
use retry_runtime::error::StoreError;

use crate::text;

/// How many events are looked at: a busy store writes many that no person made.
const LOOK_AT: usize = 5_000;
const PAGE: u32 = 500;

/// So many bulk operations are told as they stand.
const OPERATIONS: usize = 20;

/// What people did since a moment, the newest first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Acts {
    /// The acts. Those on single letters that belong to one bulk operation are left out: the operation is there.
    pub events: Vec<EventRecord>,
    /// The bulk operations among them as they stand, those of the newest acts.
    pub operations: Vec<Operation>,
    /// Back to here everything was looked at; later than the moment asked for where the store wrote too many events.
    pub back_to: SystemTime,
}

impl Acts {
    /// Looks through the audit, the newest first, back to a moment and no further than 5,000 events.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be read.
    pub async fn since<S: BulkOperations + DeadLetterStore + ?Sized>(
        store: &S,
        since: SystemTime,
    ) -> Result<Self, StoreError> {
        let mut acts = Self { events: Vec::new(), operations: Vec::new(), back_to: since };
        acts.look(store, since).await?;
        let mut known: Vec<&str> = Vec::new();
        for id in acts.events.iter().filter_map(|event| event.operation.as_deref()) {
            if known.len() < OPERATIONS && !known.contains(&id) {
                known.push(id);
                acts.operations.extend(store.operation(id.to_owned()).await?);
            }
        }
        Ok(acts)
    }

    async fn look<S: DeadLetterStore + ?Sized>(&mut self, store: &S, since: SystemTime) -> Result<(), StoreError> {
        let acts = self;
        let (mut after, mut looked_at) = (None, 0);
        loop {
            let page = store.events(EventQuery::all().limit(PAGE).after(after)).await?;
            for event in page.events {
                if event.at < since {
                    return Ok(());
                }
                looked_at += 1;
                if looked_at >= LOOK_AT {
                    acts.back_to = event.at;
                    return Ok(());
                }
                if is_by_hand(&event) {
                    acts.events.push(event);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// One line for each thing that was done, the newest first: an operation once, by whom, and how it went.
    pub fn lines(&self) -> Vec<(SystemTime, String)> {
        let mut told: Vec<&str> = Vec::new();
        let mut lines = Vec::new();
        for event in &self.events {
            let of_operation = event.operation.as_deref().filter(|_| event.letter_id.is_none());
            let operation = of_operation.and_then(|id| self.operations.iter().find(|operation| operation.id == id));
            let Some(operation) = operation else {
                lines.push((event.at, said(event)));
                continue;
            };
            if told.contains(&operation.id.as_str()) {
                continue;
            }
            told.push(&operation.id);
            let line = format!("{} {} by {}", operation.verb, operation.id, text::line(&operation.actor.name));
            let why = match operation.actor.reason.as_str() {
                "" => String::new(),
                reason => format!(" ({})", text::line(reason)),
            };
            lines.push((event.at, format!("{line}{why}: {}, {}", operation.status, operation.counts)));
        }
        lines
    }
}

/// Whether a person did it, or started it: not what programs do by themselves, nor a bulk operation's work on each letter.
pub fn is_by_hand(event: &EventRecord) -> bool {
    match event.what.as_str() {
        "released" => event.detail.starts_with("forced"),
        "erased"
        | "pruned"
        | "ledger_reset"
        | "threshold_set"
        | "threshold_removed"
        | "operation_started"
        | "operation_paused"
        | "operation_pending"
        | "operation_cancelled" => true,
        "restored" | "discarded" | "resolved" | "edited" | "imported" => event.operation.is_none(),
        _ => false,
    }
}

pub(super) fn said(event: &EventRecord) -> String {
    let mut said = vec![text::line(event.actor.as_deref().unwrap_or("somebody")), event.what.replace('_', " ")];
    if let Some(letter) = &event.letter_id {
        said.push(format!("letter {}", text::line(letter)));
    } else if let Some(operation) = &event.operation {
        said.push(text::line(operation));
    }
    if !event.detail.is_empty() {
        said.push(format!("({})", text::line(&event.detail)));
    }
    let said = said.join(" ");
    match event.reason.as_deref() {
        Some(reason) if !reason.is_empty() => format!("{said}: {}", text::line(reason)),
        _ => said,
    }
}
