//! The thread that owns the one connection that writes.

pub(crate) mod batch;
pub(crate) mod counts;
mod erase;
pub(crate) mod leases;
pub(crate) mod outage;
pub(crate) mod queue;
mod retain;
mod upkeep;
mod watch;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use retry_runtime::dead_letter::{DeadLetter, Intake, Parking, Reserve, Retention, Spill, StoreClock, lose};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::observe::Notice;
use retry_runtime::reply::Answer;

use crate::config::{Access, Settings};
use crate::field::health::Told;
use crate::open;
use crate::open::files::{FileIdentity, OpenerLock};
use crate::park::{Origin, park};
use crate::payload::Payloads;
use crate::rows::Tx;
use batch::{Outcome, again};
use leases::Leases;
use outage::Outage;
use queue::{Command, Pending, Queue};
use watch::Watch;

/// At most so many operations in one transaction: a bound on what one failure undoes and on how long the first one waits.
const BATCH: usize = 512;

/// What the thread shares with the handles.
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    pub(crate) intake: Intake,
    pub(crate) down: AtomicBool,
    pub(crate) spill: Spill,
    pub(crate) reserve: Reserve,
    pub(crate) lock: OpenerLock,
    pub(crate) payloads: Payloads,
    /// Held while counts move from memory into the file, and while somebody adds the two up.
    pub(crate) counting: Mutex<()>,
    /// What the writer tells of itself.
    pub(crate) told: Mutex<Told>,
    /// In whose name jobs are written into the journal: this opening of the store.
    pub(crate) owner: Arc<str>,
}

impl Shared {
    pub(crate) fn counts_are_moving(&self) -> MutexGuard<'_, ()> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Settings,
    pub(crate) clock: StoreClock,
    pub(crate) scope: String,
    pub(crate) name: String,
    link: Option<open::Writer>,
    /// The file of the last connection.
    ours: Option<FileIdentity>,
    outage: Outage,
    leases: Leases,
    /// The time of this turn.
    now: SystemTime,
    /// In real time: it is only a fallback, since every claim takes expired leases back too.
    reap_at: Instant,
    retention: Option<Retention>,
    /// Up to when what retention deletes was announced; `None`: not known yet.
    horizon: Option<SystemTime>,
    /// When files that no row names are next collected, in real time.
    collect_at: Instant,
    /// Something was written since the log was last emptied.
    log_in_use: bool,
    watch: Watch,
    /// Jobs of dead processes that the transaction under way has parked.
    crashed: Cell<u64>,
    /// Who waits for the end of this turn.
    settling: Vec<Answer<()>>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        settings: Settings,
        clock: StoreClock,
        scope: String,
        retention: Option<Retention>,
        opened: Result<open::Writer, StoreError>,
    ) -> Self {
        let now = clock.now();
        let reap_at = Instant::now() + settings.reap_after;
        let mut outage = Outage::none(now);
        let link = opened
            .inspect_err(|error| {
                outage.failed(error, now);
            })
            .ok();
        shared.down.store(link.is_none(), Ordering::Relaxed);
        shared.tell(|told| told.down = outage.down());
        Self {
            shared,
            settings,
            clock,
            scope,
            name: writer_name(),
            ours: link.as_ref().map(|link| link.identity),
            link,
            outage,
            leases: Leases::default(),
            now,
            reap_at,
            retention,
            horizon: None,
            collect_at: reap_at,
            log_in_use: true,
            watch: Watch::new(),
            crashed: Cell::new(0),
            settling: Vec::new(),
        }
    }

    /// Until the store is closed and nothing waits. Gives the connection back: whoever has closed all others closes it.
    pub(crate) fn run(mut self) -> Option<open::Writer> {
        loop {
            let taken = self.shared.queue.take(BATCH, self.idle_for());
            // One time for the whole turn: leases extended by it cannot have run out when the batch is judged.
            self.now = self.clock.now();
            let idle = taken.commands.is_empty();
            if taken.closing.is_some() && idle {
                break;
            }
            // A store that is being closed has no time for anything but what waits.
            let upkeep = taken.closing.is_none() && self.settings.access != Access::Read;
            if upkeep {
                self.upkeep_before();
            }
            self.process(taken.commands, taken.closing);
            if taken.counts_are_due || !self.settling.is_empty() {
                self.write_counts();
            }
            if upkeep {
                let at_once = !self.settling.is_empty();
                self.upkeep_after(idle && !taken.counts_are_due);
                self.watch(at_once);
            }
            for answer in self.settling.drain(..) {
                answer.send(());
            }
        }
        self.write_last_counts();
        self.release_leases();
        if self.outage.because().is_some_and(|because| because.kind() == StoreErrorKind::Corrupt) {
            // Committed letters may be in the log alone.
            self.abandon_link();
        }
        self.link
    }

    fn process(&mut self, mut commands: Vec<Command>, closing: Option<Instant>) {
        if commands.is_empty() {
            return;
        }
        if closing.is_some_and(|end| Instant::now() >= end) {
            let because = StoreError::new(StoreErrorKind::Closed, "the store was closed before this could be written");
            return self.refuse(commands, &because);
        }
        if self.settings.access == Access::Read {
            let message = format!("`{}` was opened for reading", self.settings.path.display());
            return self.refuse(commands, &StoreError::new(StoreErrorKind::ReadOnly, message));
        }
        if let Err(because) = self.check_link() {
            return self.refuse(commands, &because);
        }
        for command in &mut commands {
            if let Command::Park(pending) = command {
                pending.prepared = self.shared.payloads.prepare(&pending.letter.payload);
            }
        }
        let Some(link) = &self.link else { return };
        let limit = Instant::now() + self.settings.busy_limit;
        let busy_until = closing.map_or(limit, |end| end.min(limit));
        let tx = self.tx(link, self.now);
        let count = commands.len();
        let mut outcome = batch::together(tx.connection, busy_until, count, |index| run(&mut commands, index, tx));
        self.log_in_use = true;
        if is_full(&outcome) && self.shared.reserve.free() {
            self.keep_log_within(upkeep::SHORT_LOG);
            self.once_more(&mut commands, &mut outcome, busy_until);
        }
        self.note(outcome.broken.as_ref());
        self.say_crashed(outcome.broken.is_none());
        self.answer_all(commands.into_iter().zip(outcome.each).collect());
    }

    /// What every change of this turn is made with.
    fn tx<'a>(&'a self, link: &'a open::Writer, now: SystemTime) -> Tx<'a> {
        Tx {
            connection: &link.connection,
            now,
            scope: &self.scope,
            writer: &self.name,
            operation: None,
            payloads: &self.shared.payloads,
            crashed: &self.crashed,
        }
    }

    /// With the reserve freed there is room for the letters of a batch that did not fit. Whether it was written is not
    /// known, and does not matter for letters: a parking that is known changes nothing.
    fn once_more(&mut self, commands: &mut [Command], outcome: &mut Outcome, busy_until: Instant) {
        let Some(link) = &self.link else { return };
        let tx = self.tx(link, self.now);
        let failed: Vec<usize> = outcome
            .each
            .iter()
            .enumerate()
            .filter(|(index, result)| result.is_err() && matches!(commands.get(*index), Some(Command::Park(_))))
            .map(|(index, _)| index)
            .collect();
        let again = batch::alone(tx.connection, busy_until, failed.len(), |nth| {
            failed.get(nth).map_or(Ok(()), |index| run(commands, *index, tx))
        });
        outcome.broken = again.broken;
        for (index, result) in failed.into_iter().zip(again.each) {
            if let Some(place) = outcome.each.get_mut(index) {
                *place = result;
            }
        }
    }

    /// The connection is there, writes to the file the path means, and is not known to fail.
    fn check_link(&mut self) -> Result<(), StoreError> {
        if let Some(because) = self.outage.because() {
            return Err(again(because));
        }
        let moved = self.link.as_ref().is_some_and(|link| FileIdentity::of(&self.settings.path) != Some(link.identity));
        if moved {
            let path = self.settings.path.display();
            Notice::warning("store_moved", "", format!("`{path}` was replaced or removed; it is opened again")).say();
            self.abandon_link();
        }
        if self.link.is_none() {
            self.reopen().inspect_err(|error| self.note(Some(error)))?;
        }
        Ok(())
    }

    /// Closes the connection as it is: the file is not its own any more, or not to be trusted with what the log holds.
    fn abandon_link(&mut self) {
        if let Some(link) = self.link.take() {
            link.abandon();
        }
    }

    /// Opens the file again. A directory that is gone is not made again: its file system may only be away.
    fn reopen(&mut self) -> Result<(), StoreError> {
        let directory = open::files::directory_of(&self.settings.path);
        if !directory.is_dir() {
            let message = format!("the directory `{}` is gone", directory.display());
            return Err(StoreError::new(StoreErrorKind::Unavailable, message));
        }
        let link = open::writer_again(&self.settings, &self.shared.lock, &stamp(self.now), self.ours)?;
        say_set_aside(&link);
        self.ours = Some(link.identity);
        self.link = Some(link);
        Ok(())
    }

    /// The connection that writes, for a chore.
    pub(crate) fn connection(&self) -> Result<&rusqlite::Connection, StoreError> {
        let missing = || StoreError::new(StoreErrorKind::Unavailable, "the file is not open");
        self.link.as_ref().map(|link| &link.connection).ok_or_else(missing)
    }

    /// Keeps the outage up to date with how the last transaction went.
    fn note(&mut self, broken: Option<&StoreError>) {
        let now = self.now;
        match broken {
            Some(because) => {
                if self.outage.failed(because, now) {
                    let message = format!("{because}; letters go to the spill file, the store is tried every 5 s");
                    Notice::error("store_down", "", message).say();
                }
            }
            None => {
                if self.outage.worked(now) {
                    Notice::warning("store_up", "", "the store works again").say();
                }
            }
        }
        self.shared.down.store(self.outage.because().is_some(), Ordering::Relaxed);
        self.shared.tell(|told| told.down = self.outage.down());
    }

    fn refuse(&mut self, commands: Vec<Command>, because: &StoreError) {
        self.answer_all(commands.into_iter().map(|command| (command, Err(again(because)))).collect());
    }

    /// Letters that could not be written go to the spill file together, with one sync for all of them.
    fn answer_all(&mut self, commands: Vec<(Command, Result<(), StoreError>)>) {
        let failed: Vec<_> = commands
            .iter()
            .filter_map(|(command, result)| match command {
                Command::Park(pending) if result.is_err() => Some(&pending.letter),
                _ => None,
            })
            .collect();
        // Where they do not fit together, each is tried by itself.
        let together = if failed.len() > 1 { self.shared.spill.append_all(&failed).ok() } else { None };
        for (command, result) in commands {
            match (command, result, &together) {
                (Command::Park(pending), Err(because), Some(path)) => {
                    pending.answer.send(Parking::Spilled { path: path.clone(), because });
                    self.outage.import_again(self.now);
                }
                (command, result, _) => self.answer(command, result),
            }
        }
    }

    fn answer(&mut self, command: Command, result: Result<(), StoreError>) {
        match command {
            Command::Settle(answer) => self.settling.push(answer),
            Command::Verb(verb) => verb.answer(result, &mut self.leases),
            Command::Chore(chore) => chore(result.map(|()| self)),
            Command::Park(pending) => {
                let Pending { letter, answer, letter_id, .. } = *pending;
                let because = match (result, letter_id) {
                    (Ok(()), Some(letter_id)) => return answer.send(Parking::Parked { letter_id }),
                    (Ok(()), None) => StoreError::new(StoreErrorKind::Unknown, "the letter was not written"),
                    (Err(because), _) => because,
                };
                answer.send(keep(&self.shared, &letter, because));
                self.outage.import_again(self.now);
            }
        }
    }
}

fn run(commands: &mut [Command], index: usize, tx: Tx<'_>) -> rusqlite::Result<()> {
    match commands.get_mut(index) {
        Some(Command::Park(pending)) => {
            pending.letter_id = Some(park(tx, &pending.letter, pending.prepared.as_ref(), Origin::Live)?);
            Ok(())
        }
        Some(Command::Verb(verb)) => verb.run(tx),
        Some(Command::Settle(_) | Command::Chore(_)) | None => Ok(()),
    }
}

/// The rest of the chain: the spill file, then stderr.
pub(crate) fn keep(shared: &Shared, letter: &DeadLetter, because: StoreError) -> Parking {
    let spilled = match shared.spill.append(letter) {
        Err(error) if error.kind() == StoreErrorKind::Full && shared.reserve.free() => shared.spill.append(letter),
        other => other,
    };
    match spilled {
        Ok(path) => Parking::Spilled { path, because },
        Err(also) => lose(letter, StoreError::new(also.kind(), format!("{because}; and {also}"))),
    }
}

fn is_full(outcome: &Outcome) -> bool {
    outcome.broken.as_ref().is_some_and(|error| error.kind() == StoreErrorKind::Full)
        || outcome.each.iter().any(|each| each.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Full))
}

pub(crate) fn say_set_aside(link: &open::Writer) {
    if let Some(aside) = &link.set_aside {
        let message = format!(
            "the file was corrupt: it was set aside as `{}`, and a fresh one takes its place; what it holds is not lost, \
             it waits to be salvaged",
            aside.display()
        );
        Notice::error("store_set_aside", "", message).say();
    }
}

/// A time for file names.
pub(crate) fn stamp(now: SystemTime) -> String {
    retry_runtime::dead_letter::to_millis(now).to_string()
}

/// This process and the version of this library, for people to read, and for the doctor.
fn writer_name() -> String {
    let program = std::env::current_exe()
        .ok()
        .and_then(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .unwrap_or_default();
    format!("{program}:{}@{}", std::process::id(), env!("CARGO_PKG_VERSION"))
}

/// How long until `at`, in real time.
pub(crate) fn until(at: SystemTime, now: SystemTime) -> Duration {
    at.duration_since(now).unwrap_or_default().max(Duration::from_millis(1))
}
