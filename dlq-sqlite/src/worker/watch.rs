//! The writer's eye on the files: what is too large, what cannot be emptied, and what gives room back.

use std::time::{Duration, Instant, SystemTime};

use retry_runtime::observe::Notice;
use rusqlite::Connection;

use super::Worker;
use crate::field::alarm::{Alarm, above, below};
use crate::field::disk::{bytes, free, size};
use crate::field::health::Checkpoint;
use crate::field::readers;
use crate::open::files::{beside, directory_of};
use crate::rows::number;

/// One look in so long, in real time.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long readers are waited for when the log is too long.
const PATIENCE: Duration = Duration::from_millis(50);

/// A page in the log has a header of its own.
const FRAME_HEADER: u64 = 24;

/// Fewer free pages than this are not worth the work.
const FREE_PAGES: u64 = 256;

/// So many are given back in one transaction.
const PAGES_AT_ONCE: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Watch {
    look_at: Instant,
    database: Alarm,
    log: Alarm,
    room: Alarm,
    owed: Alarm,
}

impl Watch {
    pub(super) fn new() -> Self {
        let fresh = Alarm::default;
        Self { look_at: Instant::now(), database: fresh(), log: fresh(), room: fresh(), owed: fresh() }
    }
}

impl Worker {
    /// Looks whether something passed its mark: every ten seconds, or now.
    pub(super) fn watch(&mut self, at_once: bool) {
        if !at_once && Instant::now() < self.watch.look_at {
            return;
        }
        self.watch.look_at = Instant::now() + LOOK_EVERY;
        let (at, now) = (self.settings.alarm_at, self.now);
        let path = self.settings.path.clone();
        let shown = path.display();

        let (database, log) = (size(&path), size(&beside(&path, "-wal")));
        // What is in the log alone is in no file yet, and takes its room all the same.
        let database = database.saturating_add(log);
        if self.watch.database.is_news(above(database, at.database_bytes), now) {
            let message =
                format!("`{shown}` and its log have grown to {}, above {}", bytes(database), bytes(at.database_bytes));
            Notice::warning("database_large", "", message).say();
        }
        let left = free(directory_of(&path));
        if self.watch.room.is_news(left.and_then(|left| below(left, at.free_bytes)), now) {
            let left = bytes(left.unwrap_or(0));
            let message = format!("{left} are free on the disk of `{shown}`, below {}", bytes(at.free_bytes));
            Notice::warning("disk_low", "", message).say();
        }
        if self.outage.because().is_some() {
            return;
        }
        if let Some(owed) = self.owed() {
            self.shared.tell(|told| told.owed = Some(owed));
            if self.watch.owed.is_news(above(owed, at.owed_letters), now) {
                let message = format!("{owed} letters are owed, above {}", at.owed_letters);
                Notice::warning("owed_many", "", message).say();
            }
        }
        let stuck = self.stuck_log(at.log_bytes);
        self.shared.tell(|told| {
            told.log_stuck_since = stuck.map(|_| told.log_stuck_since.unwrap_or(now));
        });
        if self.watch.log.is_news(stuck.and_then(|held| above(held, at.log_bytes)), now) {
            let message = format!(
                "the log of `{shown}` holds {} and cannot be emptied: somebody reads all the time ({})",
                bytes(stuck.unwrap_or(0)),
                readers::said(&readers::of(&path))
            );
            Notice::warning("log_not_emptied", "", message).say();
        }
    }

    /// What the log holds, where that is more than `mark` and it cannot be emptied.
    fn stuck_log(&mut self, mark: u64) -> Option<u64> {
        // The file keeps its size when the log begins anew, so it says only that the log may be long.
        if size(&beside(&self.settings.path, "-wal")) <= mark {
            return None;
        }
        let found = self.empty_log_within(PATIENCE)?;
        let link = self.link.as_ref()?;
        let page = link.connection.query_row("PRAGMA page_size", [], |row| row.get(0).map(number)).unwrap_or(4_096);
        let held = found.log_pages.saturating_mul(page + FRAME_HEADER);
        (!found.emptied && held > mark).then_some(held)
    }

    /// Moves the log into the file and cuts it, unless somebody reads from it for longer than `patience`. `None`: it could
    /// not be tried.
    pub(super) fn empty_log_within(&mut self, patience: Duration) -> Option<Checkpoint> {
        let connection = &self.link.as_ref()?.connection;
        let checkpoint = connection.busy_timeout(patience).ok().and_then(|()| checkpoint(connection, self.now));
        let restored = connection.busy_timeout(self.settings.busy_timeout);
        self.shared.tell(|told| told.checkpoint = checkpoint.or(told.checkpoint));
        restored.ok().and(checkpoint)
    }

    /// `None`: they could not be counted.
    fn owed(&self) -> Option<u64> {
        let link = self.link.as_ref()?;
        let sum = "SELECT coalesce(sum(n), 0) FROM tally
                   WHERE scope = ?1 AND state IN('parked', 'replaying', 'abandoned')";
        let owed =
            link.connection.prepare_cached(sum).and_then(|mut sum| sum.query_row([&self.scope], |row| row.get(0)));
        owed.ok().map(number)
    }

    /// Gives pages that hold nothing any more back to the disk, a few at a time, as long as nobody waits.
    pub(super) fn give_room_back(&mut self) {
        let Some(link) = &self.link else { return };
        let queue = &self.shared.queue;
        self.log_in_use |= give_back(&link.connection, FREE_PAGES, PAGES_AT_ONCE, || queue.lengths().0 == 0);
    }
}

/// Gives free pages back until `kept` are left, `at_once` in one transaction, as long as `goes_on` says so before each. Says
/// whether any were.
pub(super) fn give_back(connection: &Connection, kept: u64, at_once: u64, mut goes_on: impl FnMut() -> bool) -> bool {
    let free = || connection.query_row("PRAGMA freelist_count", [], |row| row.get(0).map(number)).unwrap_or(0);
    let (mut left, mut given) = (free(), false);
    while left > kept && goes_on() {
        if vacuum(connection, at_once).is_err() {
            // Somebody else writes. The pages are used for the next letters, or given back later.
            break;
        }
        given = true;
        let now = free();
        if now >= left {
            break;
        }
        left = now;
    }
    given
}

fn vacuum(connection: &Connection, pages: u64) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    // One page a step.
    while rows.next()?.is_some() {}
    Ok(())
}

fn checkpoint(connection: &Connection, at: SystemTime) -> Option<Checkpoint> {
    let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    let (busy, log, moved) = done.ok()?;
    Some(Checkpoint { at, emptied: busy == 0, log_pages: number(log), moved_pages: number(moved) })
}
