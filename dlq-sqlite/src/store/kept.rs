//! States of budgets and breakers, in the table of odds and ends.

use std::sync::Arc;

use retry_runtime::error::StoreError;
use retry_runtime::kept::{StateStore, check_name};
use retry_runtime::reply::Reply;
use rusqlite::OptionalExtension;

use super::SqliteStore;

impl StateStore for SqliteStore {
    fn keep_state(&self, name: String, state: String) -> Reply<Result<(), StoreError>> {
        if let Err(refused) = check_name(&name) {
            return Reply::ready(Err(refused));
        }
        let key = key(&self.handle.scope, &name);
        let run = move |tx: crate::rows::Tx<'_>| {
            tx.connection
                .prepare_cached(
                    "INSERT INTO meta(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                )?
                .execute([&key, &state])?;
            Ok(Ok(()))
        };
        self.handle.change("keep a state", run, |_, _| ())
    }

    fn kept_state(&self, name: String) -> Reply<Result<Option<String>, StoreError>> {
        if let Err(refused) = check_name(&name) {
            return Reply::ready(Err(refused));
        }
        let scope = Arc::clone(&self.handle.scope);
        self.handle.reader.ask("read a kept state", move |connection| {
            connection
                .prepare_cached("SELECT CAST(value AS TEXT) FROM meta WHERE key = ?1")?
                .query_row([key(&scope, &name)], |row| row.get(0))
                .optional()
        })
    }
}

/// The length tells where the scope ends, whatever characters it has.
fn key(scope: &str, name: &str) -> String {
    format!("state:{}:{scope}:{name}", scope.len())
}
