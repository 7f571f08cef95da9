//! The store as users hold it.

mod admin;
mod books;
mod groups;
mod journal;
mod kept;
mod late;
mod operations;
mod oversight;
mod overview;
mod unheard;
mod verbs;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use retry_runtime::dead_letter::{Reserve, Retention, Spill, StoreClock};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::id::Id;
use retry_runtime::observe::Notice;
use retry_runtime::reply::{Answer, Reply};

use crate::config::{Access, Settings, SqliteOptions};
use crate::doctor::Examinations;
use crate::due::Places;
use crate::error::OpenError;
use crate::open::files::{Absent, OpenerLock};
use crate::payload::Payloads;
use crate::payload::blobs::Blobs;
use crate::reader::Reader;
use crate::rows::Tx;
use crate::worker::leases::Leases;
use crate::worker::queue::{Chore, Command, Queue, Verb};
use crate::worker::{self, Shared, Worker};
use crate::{claim, open};
use late::Late;

/// How long the last handle waits for what is still to be written.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// How long letters that came after the end are waited for at least: they only go to the spill.
const LATE_WITHIN: Duration = Duration::from_secs(2);

/// Dead letters, attempt ledger and daily counters in one SQLite file.
///
/// Cheap to clone; all clones are one store, with one thread that writes and one that reads. The last one dropped waits
/// until everything handed over is written, like [`close`](Self::close).
#[derive(Clone)]
pub struct SqliteStore {
    handle: Arc<Handle>,
}

pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    reader: Reader,
    pub(crate) clock: StoreClock,
    pub(crate) scope: Arc<str>,
    pub(crate) path: PathBuf,
    places: Arc<Places>,
    pub(crate) settings: Settings,
    pub(crate) retention: Option<Retention>,
    /// The kinds that were claimed from this store.
    claimed_kinds: Mutex<BTreeSet<String>>,
    pub(crate) examinations: Arc<Examinations>,
    thread: Mutex<Option<JoinHandle<Option<open::Writer>>>>,
    late: Arc<Late>,
}

impl SqliteStore {
    /// Opens the store at `path` for reading and writing; makes it, and its directory, where there is none. Everything
    /// else as [`SqliteOptions`] has it by default.
    ///
    /// # Errors
    /// [`OpenError`]. A store that is there but cannot be written at the moment opens all the same: its letters go to the
    /// spill file, and it is tried again. So does one that a later version wrote and this one cannot read
    /// ([`TooNew`](OpenError::TooNew)): the notice `store_down` says so, and the later version takes the letters in.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::options(path).open()
    }

    /// What can be set before a store is opened.
    pub fn options(path: impl AsRef<Path>) -> SqliteOptions {
        SqliteOptions::new(path.as_ref())
    }

    pub(crate) fn start(options: SqliteOptions) -> Result<Self, OpenError> {
        let SqliteOptions { mut settings, clock, scope, spill_dirs, intake, retention } = options;
        // To SQLite these are databases in memory: letters would be lost with the process.
        if settings.path.as_os_str().is_empty() || settings.path.as_os_str() == ":memory:" {
            return Err(OpenError::NoFile(settings.path));
        }
        settings.path = open::files::resolve(&settings.path);
        let path = settings.path.clone();
        let absent = Absent::around(&path);
        let spill = match spill_dirs {
            Some(directories) => Spill::in_dirs(path.file_name().unwrap_or("store".as_ref()), directories),
            None => Spill::beside(&path),
        };
        let spill = spill.in_scope(scope.clone());
        let shared = Arc::new(Shared {
            intake,
            queue: Queue::default(),
            down: AtomicBool::new(false),
            spill,
            reserve: Reserve::beside(&path),
            lock: OpenerLock::default(),
            payloads: Payloads { blobs: Blobs::beside(&path), file_above: settings.payload_file_above },
            counting: Mutex::default(),
            told: Mutex::default(),
            owner: Id::new(clock.now()).to_string().into(),
        });
        // The check that there is something to read; the connection goes to the thread that reads.
        let first = if settings.access == Access::Read { Some(open::reader(&settings, &shared.lock)?) } else { None };
        let opened = if settings.access == Access::Read {
            Err(StoreError::new(StoreErrorKind::ReadOnly, format!("`{}` was opened for reading", path.display())))
        } else {
            degrade(&settings, open::writer(&settings, &shared.lock, &worker::stamp(clock.now())))
                .inspect_err(|_| absent.restore(&path, &shared.lock))?
        };
        if let Ok(link) = &opened {
            worker::say_set_aside(link);
        }
        let reader = Reader::start(settings.clone(), Arc::clone(&shared), first)?;
        let worker =
            Worker::new(Arc::clone(&shared), settings.clone(), clock.clone(), scope.clone(), retention.clone(), opened);
        let thread = std::thread::Builder::new()
            .name("dlq-sqlite-write".to_owned())
            .spawn(move || worker.run())
            .map_err(OpenError::io("start a thread for", &path))?;
        let places = Arc::default();
        let thread = Mutex::new(Some(thread));
        let handle = Handle {
            shared,
            reader,
            clock,
            scope: scope.into(),
            path,
            places,
            settings,
            retention,
            thread,
            claimed_kinds: Mutex::default(),
            examinations: Arc::default(),
            late: Arc::default(),
        };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// The file: its absolute path, symbolic links to it resolved.
    pub fn path(&self) -> &Path {
        &self.handle.path
    }

    /// Writes what was handed over, spills what cannot be written within the time, and ends the threads. Letters that come
    /// later go to the spill file; everything else is refused as `Closed`. Blocks.
    ///
    /// A store in a `static` is never dropped: close it before `main` returns, or what nobody waited for ends with the process.
    pub fn close(&self, within: Duration) {
        self.handle.close(within);
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
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
    pub fn settle(&self) -> Reply<()> {
        let (answer, reply) = Reply::pair(|| ());
        // A closed store drops the command, which answers it: nothing is due any more.
        let _refused = self.handle.shared.queue.push(Command::Settle(answer));
        reply
    }
}

/// A store that is there, and fails in a way that may pass, opens all the same: a program must not be kept from starting,
/// and its letters have the spill file.
fn degrade(
    settings: &Settings,
    opened: Result<open::Writer, OpenError>,
) -> Result<Result<open::Writer, StoreError>, OpenError> {
    match opened {
        Ok(link) => Ok(Ok(link)),
        Err(error) => {
            let passing = match &error {
                OpenError::TooNew { .. } => true,
                // It waits to be set aside, by whoever may make a store.
                OpenError::NotADatabase(_) => settings.access == Access::Create,
                OpenError::Store(error) => worker::batch::is_of_the_store(error.kind()),
                OpenError::Io { .. } => matches!(error.kind(), StoreErrorKind::Full | StoreErrorKind::ReadOnly),
                _ => false,
            };
            if !passing || !(settings.path.is_file() || open::files::has_orphan_log(&settings.path)) {
                return Err(error);
            }
            let error = StoreError::from(error);
            let message = format!("{error}; letters go to the spill file until the store can be written");
            Notice::error("store_down", "", message).say();
            Ok(Err(error))
        }
    }
}

impl Handle {
    fn close(&self, within: Duration) {
        let now = Instant::now();
        self.shared.queue.close(now.checked_add(within).unwrap_or(now + CLOSE_WITHIN));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = thread.filter(|thread| thread.thread().id() != std::thread::current().id()).map(JoinHandle::join);
        self.reader.close();
        self.examinations.end();
        // The last connection empties the log and removes it, and one that only reads could not.
        match writer {
            Some(Ok(Some(link))) => link.close(&self.path),
            Some(Ok(None)) | None => {}
            Some(Err(_)) => {
                Notice::error("store_thread_panicked", "", "the store's thread panicked").say();
            }
        }
        self.late.wait(within.saturating_sub(now.elapsed()).max(LATE_WITHIN));
    }

    /// Somebody has handlers for these.
    fn note_claimed(&self, kinds: &[String]) {
        let mut known = self.claimed_kinds.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(kinds.iter().cloned());
    }

    pub(crate) fn claimed_kinds(&self) -> Vec<String> {
        self.claimed_kinds.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Hands a change to the writer. `run` may be called again after a transaction was undone; `after` sees the outcome,
    /// once it is durable, with the leases the store keeps alive.
    pub(crate) fn change<T: Send + 'static>(
        &self,
        name: &'static str,
        run: impl FnMut(Tx<'_>) -> claim::Verdict<T> + Send + 'static,
        after: impl FnOnce(&mut Result<T, StoreError>, &mut Leases) + Send + 'static,
    ) -> Reply<Result<T, StoreError>> {
        change(&self.shared, name, run, after)
    }
}

/// [`Handle::change`], also without a handle.
fn change<T: Send + 'static>(
    shared: &Shared,
    name: &'static str,
    run: impl FnMut(Tx<'_>) -> claim::Verdict<T> + Send + 'static,
    after: impl FnOnce(&mut Result<T, StoreError>, &mut Leases) + Send + 'static,
) -> Reply<Result<T, StoreError>> {
    let (answer, reply) = Reply::pair(|| Err(closed()));
    let work = Work { name, run, after, value: None, answer };
    // A closed store drops the work, whose answer says so.
    let _refused = shared.queue.push(Command::Verb(Box::new(work)));
    reply
}

impl Handle {
    /// Hands over what makes transactions of its own on the writer's connection, or none.
    fn chore<T: Send + 'static>(
        &self,
        name: &'static str,
        run: impl FnOnce(&mut Worker) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<Result<T, StoreError>> {
        let (answer, reply) = Reply::pair(|| Err(closed()));
        let chore: Chore = Box::new(move |worker| {
            let result = worker.and_then(run);
            answer.send(result.map_err(|error| StoreError::new(error.kind(), format!("cannot {name}: {error}"))));
        });
        // A closed store drops the work, whose answer says so.
        let _refused = self.shared.queue.push(Command::Chore(chore));
        reply
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close(CLOSE_WITHIN);
    }
}

pub(crate) fn closed() -> StoreError {
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
    A: FnOnce(&mut Result<T, StoreError>, &mut Leases) + Send,
{
    fn run(&mut self, tx: Tx<'_>) -> rusqlite::Result<()> {
        self.value = Some((self.run)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>, leases: &mut Leases) {
        let Self { name, after, value, answer, .. } = *self;
        let mut result = match (outcome, value) {
            (Ok(()), Some(value)) => value,
            (Ok(()), None) => Err(StoreError::new(StoreErrorKind::Unknown, format!("the store did not {name}"))),
            (Err(error), _) => Err(StoreError::new(error.kind(), format!("cannot {name}: {error}"))),
        };
        after(&mut result, leases);
        answer.send(result);
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.handle.path).finish_non_exhaustive()
    }
}
