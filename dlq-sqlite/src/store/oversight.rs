//! What those who look after the store looked at, over its two threads.

use retry_runtime::attempt::cut_middle;
use retry_runtime::dead_letter::{Actor, BoxFuture, Incident, MAX_ACTOR_REASON, Oversight};
use retry_runtime::error::StoreError;
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use super::verbs::later;
use crate::rows::{self, number};

impl Oversight for SqliteStore {
    fn record(
        &self,
        incident: Incident,
        letter_id: Option<String>,
        detail: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        later(move || {
            self.handle.change(
                "write the audit",
                move |tx| {
                    let mut find =
                        tx.connection.prepare_cached("SELECT seq FROM letter WHERE id = ?1 AND +scope = ?2")?;
                    let seq = match &letter_id {
                        Some(id) => find.query_row(params![id, tx.scope], |row| row.get(0)).optional()?,
                        None => None,
                    };
                    let detail = cut_middle(&detail, MAX_ACTOR_REASON);
                    rows::event(tx, seq.map(number), incident.as_str(), Some(&actor), (None, None), &detail)?;
                    Ok(Ok(()))
                },
                |_, _| (),
            )
        })
    }
}
