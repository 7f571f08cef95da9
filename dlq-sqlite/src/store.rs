//! The store as users hold it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use retry_runtime::counters::{DailyCounters, Day};
use retry_runtime::dead_letter::{
    Actor, Aggregate, BoxFuture, Capabilities, ClaimRequest, Claimed, DeadLetter, DeadLetterSink, DeadLetterStore,
    Filter, Finish, Group, LetterDetail, LetterRow, Page, PageRequest, Parking, Release, Reserve, Spill, StoreClock,
    Summary, Ticket,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerToken};
use retry_runtime::reply::{Answer, Reply};

use crate::config::SqliteOptions;
use crate::error::OpenError;
use crate::reader::Reader;
use crate::rows::{self, Tx};
use crate::worker::leases::Leases;
use crate::worker::queue::{Command, Pending, Queue, Verb};
use crate::worker::{self, Shared, Worker};
use crate::{claim, counters, ledger, letters, open};

/// How long the last handle waits for what is still to be written.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Dead letters, attempt ledger and daily counters in one SQLite file.
///
/// Cheap to clone; all clones are one store, with one thread that writes and one that reads. The last one dropped waits
/// until everything handed over is written, like [`close`](Self::close).
#[derive(Clone)]
pub struct SqliteStore {
    handle: Arc<Handle>,
}

pub(crate) struct Handle {
    shared: Arc<Shared>,
    reader: Reader,
    clock: StoreClock,
    scope: Arc<str>,
    path: PathBuf,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Opens the store at `path` for reading and writing; makes it, and its directory, where there is none. Everything
    /// else as [`SqliteOptions`] has it by default.
    ///
    /// # Errors
    /// [`OpenError`]. A store that is there but cannot be written at the moment opens all the same: its letters go to the
    /// spill file, and it is tried again.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::options(path).open()
    }

    /// What can be set before a store is opened.
    pub fn options(path: impl AsRef<Path>) -> SqliteOptions {
        SqliteOptions::new(path.as_ref())
    }

    pub(crate) fn start(options: SqliteOptions) -> Result<Self, OpenError> {
        let SqliteOptions { settings, clock, scope, read_only, spill_dirs } = options;
        let opened = if read_only {
            // The check that there is something to read; the connection goes to the thread that reads.
            Err(StoreError::new(
                StoreErrorKind::ReadOnly,
                format!("`{}` was opened for reading", settings.path.display()),
            ))
        } else {
            degrade(&settings, open::writer(&settings, &worker::stamp(clock.now())))?
        };
        let first = if read_only { Some(open::reader(&settings)?) } else { None };
        if let Ok(link) = &opened {
            worker::say_set_aside(link);
        }
        let path = settings.path.clone();
        let reader = Reader::start(settings.clone(), first)?;
        let spill = match spill_dirs {
            Some(directories) => Spill::in_dirs(path.file_name().unwrap_or("store".as_ref()), directories),
            None => Spill::beside(&path),
        };
        let reserve = Reserve::beside(&path);
        let shared = Arc::new(Shared { queue: Queue::default(), down: AtomicBool::new(false), spill, reserve });
        let worker = Worker::new(Arc::clone(&shared), settings, clock.clone(), scope.clone(), opened);
        let thread = std::thread::Builder::new()
            .name("dlq-sqlite-write".to_owned())
            .spawn(move || worker.run())
            .map_err(OpenError::io("start a thread for", &path))?;
        let handle = Handle { shared, reader, clock, scope: scope.into(), path, thread: Mutex::new(Some(thread)) };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.handle.path
    }

    /// Writes what was handed over, spills what cannot be written within the time, and ends the threads. Letters that come
    /// later go to the spill file; everything else is refused as `Closed`. Blocks.
    pub fn close(&self, within: Duration) {
        self.handle.close(within);
    }

    /// Whether letters go to the spill file at the moment because the store failed.
    pub fn is_down(&self) -> bool {
        self.handle.shared.down.load(Ordering::Relaxed)
    }

    /// How many changes wait to be written, and how many ever came while more than 10,000 waited.
    pub fn backlog(&self) -> (usize, u64) {
        self.handle.shared.queue.lengths()
    }

    /// Corrupt files that were set aside, oldest first. What they hold is not lost: it waits to be salvaged.
    pub fn set_aside_files(&self) -> Vec<PathBuf> {
        open::files::set_aside_files(&self.handle.path)
    }

    /// Spill files that wait to be taken in, those of other processes included.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn spill_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        self.handle.shared.spill.files()
    }

    /// Looks at everything that is due (leases, probes, imports) now rather than at its time: for tests that move the
    /// store's clock. Returns when it is done.
    #[doc(hidden)]
    pub fn upkeep(&self) -> Reply<Result<(), StoreError>> {
        self.handle.change("look after itself", |_| Ok(Ok(())), |_, _| ())
    }
}

/// A store that is there, and fails in a way that may pass, opens all the same: a program must not be kept from starting,
/// and its letters have the spill file.
fn degrade(
    settings: &crate::config::Settings,
    opened: Result<open::Writer, OpenError>,
) -> Result<Result<open::Writer, StoreError>, OpenError> {
    match opened {
        Ok(link) => Ok(Ok(link)),
        Err(error) => {
            let passing = match &error {
                OpenError::TooNew { .. } => true,
                OpenError::Store(error) => worker::batch::is_of_the_store(error.kind()),
                OpenError::Io { .. } => matches!(error.kind(), StoreErrorKind::Full | StoreErrorKind::ReadOnly),
                _ => false,
            };
            if !passing || !settings.path.is_file() {
                return Err(error);
            }
            let error = StoreError::from(error);
            let message = format!("{error}; letters go to the spill file until the store can be written");
            retry_runtime::observe::Notice::error("store_down", "", message).say();
            Ok(Err(error))
        }
    }
}

impl Handle {
    fn close(&self, within: Duration) {
        let now = Instant::now();
        self.shared.queue.close(now.checked_add(within).unwrap_or(now + CLOSE_WITHIN));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            retry_runtime::observe::Notice::error("store_thread_panicked", "", "the store's thread panicked").say();
        }
        self.reader.close();
    }

    /// Hands a change to the writer. `run` may be called again after a transaction was undone; `after` sees the outcome,
    /// once it is durable, with the leases the store keeps alive.
    fn change<T: Send + 'static>(
        &self,
        name: &'static str,
        run: impl FnMut(Tx<'_>) -> claim::Verdict<T> + Send + 'static,
        after: impl FnOnce(&Result<T, StoreError>, &mut Leases) + Send + 'static,
    ) -> Reply<Result<T, StoreError>> {
        let (answer, reply) = Reply::pair(|| Err(closed()));
        let work = Work { name, run, after, value: None, answer };
        // A closed store drops the work, whose answer says so.
        let _refused = self.shared.queue.push(Command::Verb(Box::new(work)));
        reply
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close(CLOSE_WITHIN);
    }
}

fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Closed, "the store is closed")
}

/// A change as a closure.
struct Work<T, R, A> {
    name: &'static str,
    run: R,
    after: A,
    value: Option<Result<T, StoreError>>,
    answer: Answer<Result<T, StoreError>>,
}

impl<T, R, A> Verb for Work<T, R, A>
where
    T: Send,
    R: FnMut(Tx<'_>) -> claim::Verdict<T> + Send,
    A: FnOnce(&Result<T, StoreError>, &mut Leases) + Send,
{
    fn run(&mut self, tx: Tx<'_>) -> rusqlite::Result<()> {
        self.value = Some((self.run)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>, leases: &mut Leases) {
        let Self { name, after, value, answer, .. } = *self;
        let result = match (outcome, value) {
            (Ok(()), Some(value)) => value,
            (Ok(()), None) => Err(StoreError::new(StoreErrorKind::Unknown, format!("the store did not {name}"))),
            (Err(error), _) => Err(StoreError::new(error.kind(), format!("cannot {name}: {error}"))),
        };
        after(&result, leases);
        answer.send(result);
    }
}

impl DeadLetterSink for SqliteStore {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let (answer, ticket) = Reply::pair(|| Parking::Lost { because: closed() });
        let pending = Box::new(Pending { letter, answer, letter_id: None });
        if let Err(Command::Park(pending)) = self.handle.shared.queue.push(Command::Park(pending)) {
            // The writer is gone. Its work is short, and nobody must be blocked by it.
            let shared = Arc::clone(&self.handle.shared);
            let work = move || {
                let Pending { letter, answer, .. } = *pending;
                answer.send(worker::keep(&shared, &letter, closed()));
            };
            let _detached = std::thread::Builder::new().name("dlq-sqlite-spill".to_owned()).spawn(work);
        }
        ticket
    }
}

/// A verb of the traits: nothing happens before it is awaited.
fn later<'a, T: Send + 'a>(
    start: impl FnOnce() -> Reply<Result<T, StoreError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move { start().await })
}

impl DeadLetterStore for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.heartbeats = true;
        capabilities.durable = true;
        capabilities.shared = true;
        capabilities
    }

    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("read a letter", move |c| letters::get(c, &scope, &letter_id)))
    }

    fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("list letters", move |c| letters::list(c, &scope, &filter, &page)))
    }

    fn count(&self, filter: Filter) -> BoxFuture<'_, Result<u64, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("count letters", move |c| letters::count(c, &scope, &filter)))
    }

    fn summary(&self) -> BoxFuture<'_, Result<Summary, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        Box::pin(async move {
            let ask = self.handle.reader.ask("sum letters up", move |c| letters::summary(c, &scope));
            let mut summary = ask.await?;
            summary.spilled = self.handle.shared.spill.waiting()?;
            Ok(summary)
        })
    }

    fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("group letters", move |c| letters::aggregate(c, &scope, &question)))
    }

    fn claim(&self, request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        later(move || {
            if let Err(invalid) = request.check() {
                return Reply::ready(Err(invalid));
            }
            let (lease, keep_alive, clock) = (request.lease, request.keep_alive, self.handle.clock.clone());
            self.handle.change(
                "claim letters",
                move |tx| claim::claim(tx, &request, &actor).map(Ok),
                move |claimed, leases| {
                    if let (true, Ok(claimed)) = (keep_alive, claimed) {
                        for Claimed { row, .. } in claimed {
                            leases.hold(row.letter_id.clone(), row.fence, lease, clock.now());
                        }
                    }
                },
            )
        })
    }

    fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        let (letter_id, fence) = (result.letter_id.clone(), result.fence);
        later(move || {
            self.handle.change(
                "write a replay's result",
                move |tx| claim::finish(tx, &result, &actor),
                move |done, leases| {
                    if settled(done) {
                        leases.drop_held(&letter_id, fence);
                    }
                },
            )
        })
    }

    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime, StoreError>> {
        later(move || {
            self.handle.change("extend a lease", move |tx| claim::extend(tx, &letter_id, fence, lease), |_, _| ())
        })
    }

    fn release(
        &self,
        letter_id: String,
        release: Release,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self.handle.release(letter_id, release, actor))
    }

    fn reap(&self, actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>> {
        later(move || self.handle.change("take leases back", move |tx| claim::reap(tx, &actor).map(Ok), |_, _| ()))
    }

    fn give_back(&self, letter_id: &str, fence: u64) {
        let actor = Actor::new("store", "given back");
        // Nobody waits: a lease that cannot be given back runs out.
        let _unheard = self.handle.release(letter_id.to_owned(), Release::Held { fence }, actor);
    }
}

impl Handle {
    fn release(&self, letter_id: String, release: Release, actor: Actor) -> Reply<Result<LetterRow, StoreError>> {
        let held = letter_id.clone();
        self.change(
            "release a letter",
            move |tx| claim::release(tx, &letter_id, release, &actor),
            move |done, leases| {
                if let (Release::Held { fence }, true) = (release, settled(done)) {
                    leases.drop_held(&held, fence);
                }
            },
        )
    }
}

/// Whether the lease this was about is over: it was written, or it had gone already.
fn settled<T>(done: &Result<T, StoreError>) -> bool {
    done.as_ref().map_or_else(|error| error.kind() == StoreErrorKind::StaleLease, |_| true)
}

impl AttemptLedger for SqliteStore {
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>> {
        self.handle.change("count an attempt", move |tx| ledger::begin(tx, &key, max_attempts).map(Ok), |_, _| ())
    }

    fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>> {
        self.handle.change("write how an attempt ended", move |tx| ledger::end(tx, &key, token, end).map(Ok), |_, _| ())
    }

    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        later(move || self.handle.reader.ask("read the ledger", move |c| ledger::find(c, &key)))
    }

    fn entries(
        &self,
        scope: String,
        after: Option<String>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        later(move || {
            self.handle.reader.ask("read the ledger", move |c| ledger::page(c, &scope, after.as_deref(), limit))
        })
    }

    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        later(move || {
            self.handle.change(
                "reset a key",
                move |tx| {
                    let reset = ledger::reset(tx, &key)?;
                    if reset.is_some() {
                        rows::event(tx, None, "ledger_reset", Some(&actor), (None, None), &key.to_string())?;
                    }
                    Ok(Ok(reset))
                },
                |_, _| (),
            )
        })
    }
}

impl DailyCounters for SqliteStore {
    fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<(), StoreError>> {
        let (day, operation, counter) = (self.today(), operation.to_owned(), counter.to_owned());
        self.handle.change("count", move |tx| counters::add(tx, day, &operation, &counter, n).map(Ok), |_, _| ())
    }

    fn today(&self) -> Day {
        Day::of(self.handle.clock.now())
    }

    fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>, StoreError>> {
        later(move || self.handle.reader.ask("read counters", move |c| counters::day(c, &operation, day)))
    }

    fn series(
        &self,
        operation: String,
        counter: String,
        from: Day,
        to: Day,
    ) -> BoxFuture<'_, Result<Vec<(Day, u64)>, StoreError>> {
        later(move || {
            self.handle.reader.ask("read counters", move |c| counters::series(c, &operation, &counter, from, to))
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.handle.path).finish_non_exhaustive()
    }
}
