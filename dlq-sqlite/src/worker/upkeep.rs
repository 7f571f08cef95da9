//! What the writer's thread does on its own account, between batches.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use retry_runtime::counters::Day;
use retry_runtime::dead_letter::{Actor, Batch, Release, give_back_losses, take_losses};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::observe::Notice;

use super::{Worker, batch, until};
use crate::config::Access;
use crate::error::from_sqlite;
use crate::failpoints;
use crate::park::{Origin, park};
use crate::rows::Tx;
use crate::{claim, counters, journal};

/// Half of the usual lease.
const REAP_EVERY: Duration = Duration::from_secs(30);

/// So long without work, and the log is emptied.
const IDLE: Duration = Duration::from_secs(5);

/// So many pages the log has in it before they are moved into the file.
pub(crate) const LOG: u32 = 4_000;

/// The same on a full disk: the room that the reserve gave must not all go to the log.
pub(super) const SHORT_LOG: u32 = 200;

pub(super) fn me() -> Actor {
    Actor::new("store", "upkeep")
}

impl Worker {
    /// How long there is nothing to do.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        if self.settings.access == Access::Read {
            return None;
        }
        let now = self.clock.now();
        // Leases cannot be extended while the store is down: the next probe comes first.
        let leases = if self.outage.because().is_some() { None } else { self.leases.next() };
        let timer = leases.into_iter().chain(self.outage.next()).min().map(|at| until(at, now));
        let reap = self.reap_at.saturating_duration_since(Instant::now());
        let empty_log = self.log_in_use.then_some(IDLE);
        let collect = self.collect_at.saturating_duration_since(Instant::now());
        [timer, Some(reap), Some(collect), empty_log].into_iter().flatten().min()
    }

    /// What is due before the next batch: it must not be refused by an outage that is over, nor take back leases that this
    /// process keeps alive.
    pub(super) fn upkeep_before(&mut self) {
        let now = self.now;
        if self.outage.probe_is_due(now) {
            self.probe(now);
        }
        if self.outage.because().is_some() {
            return;
        }
        self.extend_leases(now);
        self.say_alive(now);
    }

    /// What is due after a batch.
    pub(super) fn upkeep_after(&mut self, idle: bool) {
        let now = self.now;
        if self.outage.because().is_some() {
            return;
        }
        if self.reap_at <= Instant::now() {
            self.reap_at = Instant::now() + REAP_EVERY;
            self.reap(now);
        }
        self.write_losses();
        self.strike_again();
        if self.outage.take_import(now) {
            self.import();
            self.make_reserve();
        }
        if self.retention_is_due() {
            self.retain();
        }
        if idle && self.collect_at <= Instant::now() {
            self.collect();
        }
        if idle || !self.settling.is_empty() {
            self.give_room_back();
        }
        if idle && self.log_in_use {
            self.empty_log();
        }
    }

    /// Asks whether the store works again, with one small write.
    fn probe(&mut self, now: SystemTime) {
        // What is only busy or full is still the right file on the right connection.
        let kind = self.outage.because().map(StoreError::kind);
        if !matches!(kind, Some(StoreErrorKind::Busy | StoreErrorKind::Full)) {
            self.abandon_link();
        }
        let result = match &self.link {
            Some(_) => Ok(()),
            None => self.reopen(),
        };
        let result = result.and_then(|()| self.write_probe(now));
        match result {
            Ok(()) => self.note(None),
            Err(error) => self.note(Some(&error)),
        }
    }

    fn write_probe(&self, now: SystemTime) -> Result<(), StoreError> {
        let mut outcome = self.small_batch(now, 1, |_, tx| {
            tx.connection
                .prepare_cached(
                    "INSERT INTO meta(key, value) VALUES('probed_at', ?1)
                     ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                )?
                .execute([tx.millis()])
                .map(drop)
        });
        outcome.broken.take().map_or_else(|| outcome.each.pop().unwrap_or(Ok(())), Err)
    }

    fn extend_leases(&mut self, now: SystemTime) {
        let due = self.leases.take_due(now);
        if due.is_empty() || self.link.is_none() {
            return;
        }
        let mut gone = Vec::new();
        let outcome = self.small_batch(now, due.len(), |index, tx| {
            let Some((letter_id, lease)) = due.get(index) else { return Ok(()) };
            if claim::extend(tx, letter_id, lease.fence, lease.length)?.is_err() {
                gone.push(index);
            }
            Ok(())
        });
        for (letter_id, lease) in gone.into_iter().filter_map(|index| due.get(index)) {
            self.leases.drop_held(letter_id, lease.fence);
        }
        if outcome.broken.is_some() {
            self.note(outcome.broken.as_ref());
        }
    }

    /// Says that this process lives, while it has jobs in the journal.
    fn say_alive(&mut self, now: SystemTime) {
        if self.link.is_none() || !self.leases.own_is_due(now) {
            return;
        }
        let (owner, lease) = (Arc::clone(&self.shared.owner), self.settings.owner_lease);
        let mut is_owner = true;
        let outcome = self.small_batch(now, 1, |_, tx| {
            is_owner = journal::renew(tx, &owner, lease)?;
            Ok(())
        });
        if is_owner {
            // Where it failed it is tried again as soon.
            self.leases.own(now, lease);
        } else if outcome.broken.is_none() {
            self.leases.own_nothing();
        }
        if outcome.broken.is_some() {
            self.note(outcome.broken.as_ref());
        }
    }

    /// Strikes out what could not be struck out when it ended.
    fn strike_again(&mut self) {
        if self.leases.unstruck.is_empty() || self.link.is_none() {
            return;
        }
        let jobs = std::mem::take(&mut self.leases.unstruck);
        let outcome = self.small_batch(self.now, jobs.len(), |index, tx| match jobs.get(index) {
            Some((park_id, end)) => journal::strike(tx, *park_id, *end).map(drop),
            None => Ok(()),
        });
        let failed = jobs.into_iter().zip(outcome.each).filter(|(_, each)| each.is_err());
        self.leases.unstruck.extend(failed.map(|(job, _)| job));
        if outcome.broken.is_some() {
            self.note(outcome.broken.as_ref());
        }
    }

    fn reap(&mut self, now: SystemTime) {
        let Some(link) = &self.link else { return };
        // Asked first: nothing is written, and nobody's lock is waited for, when there is nothing to take back.
        let any = |sql: &str| {
            let mut statement = link.connection.prepare_cached(sql)?;
            statement.query_row([crate::rows::millis(now)], |row| row.get::<_, bool>(0))
        };
        let expired = any("SELECT EXISTS(SELECT 1 FROM letter WHERE state = 'replaying' AND lease_until < ?1)");
        let dead = any(journal::ANY_DEAD);
        if expired.is_ok_and(|expired| expired) || dead.is_ok_and(|dead| dead) {
            let outcome = self.small_batch(now, 1, |_, tx| claim::reap(tx, &me()).map(drop));
            if outcome.broken.is_some() {
                self.note(outcome.broken.as_ref());
            }
        }
    }

    /// An orderly end gives its letters back: no replay, no crash.
    pub(super) fn release_leases(&mut self) {
        let held = self.leases.take_all();
        if (held.is_empty() && !self.leases.is_owner()) || self.link.is_none() || self.outage.because().is_some() {
            return;
        }
        // What cannot be released runs out.
        let _outcome = self.small_batch(self.clock.now(), held.len() + 1, |index, tx| match held.get(index) {
            Some((letter_id, lease)) => {
                claim::release(tx, letter_id, Release::Held { fence: lease.fence }, &me()).map(drop)
            }
            None => journal::end(tx, &self.shared.owner),
        });
    }

    /// A batch of the store's own, which does not wait long for others.
    pub(super) fn small_batch(
        &self,
        now: SystemTime,
        count: usize,
        mut run: impl FnMut(usize, Tx<'_>) -> rusqlite::Result<()>,
    ) -> batch::Outcome {
        let Some(link) = &self.link else {
            return batch::Outcome { each: Vec::new(), broken: None };
        };
        let tx = self.tx(link, now);
        let busy_until = Instant::now() + self.settings.busy_timeout;
        let outcome = batch::together(tx.connection, busy_until, count, |index| run(index, tx));
        self.say_crashed(outcome.broken.is_none());
        outcome
    }

    /// Tells of the jobs whose processes died, once their letters are durable.
    pub(super) fn say_crashed(&self, committed: bool) {
        let jobs = self.crashed.take();
        if committed && jobs > 0 {
            let message = format!("{jobs} jobs whose process ended while it ran them are parked, as `crashed`");
            Notice::warning("jobs_crashed", "", message).say();
        }
    }

    /// How long the log may get, in pages.
    pub(super) fn keep_log_within(&self, pages: u32) {
        if let Some(link) = &self.link {
            // A log that stays as long as it was costs room and nothing else.
            let _set = link.connection.pragma_update(None, "wal_autocheckpoint", pages);
        }
    }

    /// Empties the log into the file, if nobody reads.
    fn empty_log(&mut self) {
        self.log_in_use = false;
        // Readers are not waited for: the next idle moment comes.
        if self.link.is_some() && self.empty_log_within(Duration::ZERO).is_none_or(|done| !done.emptied) {
            self.log_in_use = true;
        }
    }

    /// Brings spilled letters home. Between two batches of them, live ones have their turn.
    fn import(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut broken = None;
        let mut closing = false;
        let result = shared.spill.import(|mut batch| {
            batch.letters =
                std::mem::take(&mut batch.letters).into_iter().map(|letter| shared.intake.letter(letter)).collect();
            if closing {
                return Err(StoreError::new(StoreErrorKind::Closed, "the store is being closed"));
            }
            let taken = self.take_in(&batch, &mut broken).and_then(|()| {
                // Durable, and its file still waits.
                failpoints::hit("import.before_done").map_err(|error| from_sqlite("the import was cut short", error))
            });
            let waiting = self.shared.queue.take(super::BATCH, Some(Duration::ZERO));
            self.now = self.clock.now();
            self.extend_leases(self.now);
            self.process(waiting.commands, waiting.closing);
            closing = waiting.closing.is_some();
            match self.outage.because() {
                // What was taken in is in, whatever came after it.
                Some(because) if !closing => Err(batch::again(because)),
                _ => taken,
            }
        });
        if broken.is_some() {
            self.note(broken.as_ref());
        }
        // Files of processes that live: those that are just ending leave theirs behind.
        if result.as_ref().is_ok_and(|done| done.busy > 0) {
            self.outage.import_again(self.now);
        }
        // What waits when a store is closed waits for the next one, as was said when it was spilled.
        if let Err(error) = result
            && error.kind() != StoreErrorKind::Closed
        {
            let message = format!("spilled letters stay where they are for now: {error}");
            Notice::warning("spill_import_failed", "", message).say();
        }
    }

    /// Takes spilled letters in. Those that were taken in before change nothing.
    fn take_in(&self, spilled: &Batch, broken: &mut Option<StoreError>) -> Result<(), StoreError> {
        let count = spilled.letters.len() + usize::from(spilled.lost > 0);
        let payloads = &self.shared.payloads;
        let prepared: Vec<_> = spilled.letters.iter().map(|letter| payloads.prepare(&letter.payload)).collect();
        let outcome = self.small_batch(self.now, count, |index, tx| match spilled.letters.get(index) {
            Some(letter) => {
                let scope = spilled.scope.as_deref().unwrap_or(tx.scope);
                park(Tx { scope, ..tx }, letter, prepared.get(index).and_then(Option::as_ref), Origin::Spill).map(drop)
            }
            None => add_losses(tx, spilled.lost),
        });
        *broken = outcome.broken;
        outcome.each.into_iter().collect()
    }

    fn make_reserve(&self) {
        if self.settings.reserve {
            // A disk too full for it gets none.
            if self.shared.reserve.fill().is_ok() {
                self.keep_log_within(LOG);
            }
        }
    }

    /// Letters that were lost before are counted where they can be seen.
    fn write_losses(&mut self) {
        let lost = take_losses();
        if lost == 0 || self.link.is_none() {
            return give_back_losses(lost);
        }
        let outcome = self.small_batch(self.now, 1, |_, tx| add_losses(tx, lost));
        if outcome.each.iter().any(Result::is_err) {
            give_back_losses(lost);
        }
        if outcome.broken.is_some() {
            self.note(outcome.broken.as_ref());
        }
    }
}

/// The counter of lost letters: operation `dead_letter`, counter `lost`.
fn add_losses(tx: Tx<'_>, lost: u64) -> rusqlite::Result<()> {
    counters::add(tx, Day::of(tx.now), "dead_letter", "lost", lost)
}
