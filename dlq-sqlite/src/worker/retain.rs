//! Retention by itself, and giving back what deleted letters took.

use std::time::{Duration, Instant, SystemTime};

use retry_runtime::counters::Day;
use retry_runtime::dead_letter::{Actor, PruneRequest, Retention, from_millis, to_millis};
use retry_runtime::error::StoreError;
use retry_runtime::observe::Notice;
use rusqlite::{Connection, OptionalExtension};

use super::Worker;
use super::outage::is_due;
use super::watch::give_back;
use crate::admin::prune::{self, STEP};
use crate::error::from_sqlite;
use crate::groups;
use crate::payload::collect;

/// Retention works so often, and announces so far ahead.
const EVERY: Duration = Duration::from_secs(86_400);

/// Files without a row are left by crashes, and by letters that are deleted: there is no hurry.
const COLLECT_EVERY: Duration = Duration::from_secs(86_400);

/// So many steps in one turn; others have theirs in between.
const STEPS: u32 = 20;

/// So many pages are given back at once.
const PAGES: u64 = 500;

impl Worker {
    pub(super) fn retention_is_due(&self) -> bool {
        self.retention.is_some()
            && self.link.is_some()
            && self.horizon.is_none_or(|horizon| is_due(horizon, EVERY, self.now))
    }

    /// Deletes what was announced a day ago, and announces what is deleted a day from now.
    pub(super) fn retain(&mut self) {
        if let Err(error) = self.try_to_retain() {
            // Tomorrow is another day.
            self.horizon = self.now.checked_add(EVERY);
            Notice::warning("retention_failed", "", error.to_string()).say();
        }
    }

    fn try_to_retain(&mut self) -> Result<(), StoreError> {
        let (Some(retention), Some(link)) = (self.retention.clone(), &self.link) else { return Ok(()) };
        let failed = |error| from_sqlite("cannot keep to the retention", error);
        let key = format!("retention:{}", self.scope);
        let announced = announced(&link.connection, &key, &retention).map_err(failed)?;
        if let Some(horizon) = announced {
            if !is_due(horizon, EVERY, self.now) {
                self.horizon = Some(horizon);
                return Ok(());
            }
            // Judged by the horizon: what has come of age since then was not announced.
            if !self.delete(&retention, horizon.min(self.now))? {
                // The next turn goes on.
                return Ok(());
            }
            self.tidy()?;
        }
        let Some(link) = &self.link else { return Ok(()) };
        let until = self.now + EVERY;
        let due = prune::due_by(&link.connection, &self.scope, &retention, until).map_err(failed)?;
        let value = format!("{} {retention:?}", to_millis(until));
        let mut outcome = self.small_batch(self.now, 1, |_, tx| {
            tx.connection
                .prepare_cached(
                    "INSERT INTO meta(key, value) VALUES(?1, ?2)
                     ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                )?
                .execute([&key, &value])
                .map(drop)
        });
        outcome.each.pop().unwrap_or(Ok(()))?;
        self.horizon = Some(until);
        if let Some(first) = due.first_at {
            let message = format!(
                "retention will delete {} closed letters, the first a day from now at the earliest (its time ends on {}, UTC); \
                 export or restore what is still needed",
                due.total(),
                Day::of(first.max(self.now))
            );
            Notice::warning("retention_ahead", "", message).say();
        }
        Ok(())
    }

    /// Whether everything is deleted.
    fn delete(&self, retention: &Retention, now: SystemTime) -> Result<bool, StoreError> {
        let request = PruneRequest::new(retention.clone());
        let actor = Actor::new("store", "retention");
        let mut behind = (i64::MIN, 0);
        for _ in 0..STEPS {
            let mut due = Vec::new();
            let mut outcome = self.small_batch(self.now, 1, |_, tx| {
                due = prune::step(tx, &request, now, behind, STEP, &actor)?;
                Ok(())
            });
            outcome.each.pop().unwrap_or(Ok(()))?;
            let Some(last) = due.last() else { return Ok(true) };
            behind = last.place();
        }
        Ok(false)
    }

    /// Gives back what deleted letters took: files that no row names, and some free pages. Returns how many files.
    pub(crate) fn tidy(&mut self) -> Result<u64, StoreError> {
        self.collect_at = Instant::now() + COLLECT_EVERY;
        self.forget_old_arrivals();
        let Some(link) = &self.link else { return Ok(0) };
        let blobs = &self.shared.payloads.blobs;
        let collected = collect::collect(&link.connection, blobs, &self.settings.path, self.settings.busy_timeout)?;
        let mut steps = 0..STEPS;
        give_back(&link.connection, 0, PAGES, || steps.next().is_some());
        Ok(collected.files)
    }

    /// Parkings per hour are kept for a while only.
    fn forget_old_arrivals(&self) {
        for _ in 0..STEPS {
            let mut more = false;
            let outcome = self.small_batch(self.now, 1, |_, tx| {
                more = groups::forget_old(tx)?;
                Ok(())
            });
            if outcome.broken.is_some() || !more {
                break;
            }
        }
    }

    /// Removes payload files that no row names.
    pub(super) fn collect(&mut self) {
        if let Err(error) = self.tidy() {
            Notice::warning("payload_files_not_collected", "", error.to_string()).say();
        }
    }
}

/// Up to when deletions were announced, by this retention.
fn announced(connection: &Connection, key: &str, retention: &Retention) -> rusqlite::Result<Option<SystemTime>> {
    let value: Option<String> = connection
        .prepare_cached("SELECT CAST(value AS TEXT) FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    let told = value.as_deref().and_then(|value| value.split_once(' '));
    Ok(told
        .filter(|(_, by)| *by == format!("{retention:?}"))
        .and_then(|(until, _)| until.parse().ok())
        .map(from_millis))
}
