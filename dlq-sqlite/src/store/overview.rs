//! The file as a whole, over the store's reading thread.

use std::sync::Arc;

use retry_runtime::dead_letter::{BoxFuture, LetterRow, Overview, StoreFacts};
use retry_runtime::error::StoreError;
use rusqlite::Connection;

use super::SqliteStore;
use super::verbs::later;
use crate::overview;

impl Overview for SqliteStore {
    fn facts(&self) -> BoxFuture<'_, Result<StoreFacts, StoreError>> {
        let (scope, shared) = (Arc::clone(&self.handle.scope), Arc::clone(&self.handle.shared));
        let (path, mut facts) = (self.handle.path.clone(), StoreFacts::new(self.handle.clock.now()));
        later(move || {
            self.handle.reader.ask("look at the store", move |c: &Connection| {
                overview::facts(c, &scope, &mut facts)?;
                overview::files(&path, &shared.spill, &mut facts);
                Ok(facts)
            })
        })
    }

    fn find(&self, text: String, limit: u32) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("find a letter", move |c| overview::find(c, &scope, &text, limit)))
    }
}
