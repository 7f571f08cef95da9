//! Examining a store: what its writer says, what is in the file, and what lies around it.
//!
//! The writer is asked first, in its own turn: it tries a parking and takes it back. The rest is looked at on a thread and a
//! connection of their own, so that a long check holds up neither letters nor other questions.

mod around;
mod database;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{BoxFuture, Checkup, Doctor, Finding, Severity, StoreAdmin};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::reply::Reply;
use rusqlite::InterruptHandle;

use crate::config::{Access, Settings};
use crate::open;
use crate::store::{Handle, SqliteStore, closed};
use crate::worker::Shared;
use crate::worker::queue::{Chore, Command};

/// Examinations under way, which end with the store.
#[derive(Default)]
pub(crate) struct Examinations {
    threads: Mutex<Vec<JoinHandle<()>>>,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    open: Vec<InterruptHandle>,
    closing: bool,
}

impl Examinations {
    /// Breaks off what is under way, and waits until its connections are closed.
    pub(crate) fn end(&self) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.closing = true;
        for connection in connections.open.drain(..) {
            connection.interrupt();
        }
        drop(connections);
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A panic was answered to whoever asked.
            let _ended = thread.join();
        }
    }

    /// `false`: the store is being closed.
    fn register(&self, connection: InterruptHandle) -> bool {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if !connections.closing {
            connections.open.push(connection);
        }
        !connections.closing
    }

    fn keep(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }
}

/// One examination: everything that is known before it.
pub(super) struct Exam {
    checkup: Checkup,
    shared: Arc<Shared>,
    settings: Settings,
    scope: Arc<str>,
    claimed_kinds: Vec<String>,
    now: SystemTime,
}

impl Doctor for SqliteStore {
    fn doctor(&self, checkup: Checkup) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        Box::pin(async move {
            let handle = self.handle();
            let mut found = writer::ask(handle).await?;
            found.extend(handle.examine(checkup).await?);
            found.extend(self.expiring().await);
            Finding::sort(&mut found);
            Ok(found)
        })
    }
}

/// So far ahead closed letters are announced that retention will delete.
const AHEAD: Duration = Duration::from_secs(3 * 86_400);

impl SqliteStore {
    /// What the store's own retention will delete soon.
    async fn expiring(&self) -> Option<Finding> {
        let retention = self.handle().retention.clone()?;
        // A store that cannot say has said so already.
        let due = self.due_within(retention, AHEAD).await.ok().filter(|due| due.total() > 0)?;
        let message = format!("{} closed letters will be deleted by retention within 3 days", due.total());
        Some(Finding::new(Severity::Info, "expiring", message).about(self.path().display().to_string()))
    }
}

impl Handle {
    /// Looks at the file and around it, on a thread of its own.
    fn examine(&self, checkup: Checkup) -> Reply<Result<Vec<Finding>, StoreError>> {
        let exam = Arc::new(Exam {
            checkup,
            shared: Arc::clone(&self.shared),
            settings: self.settings.clone(),
            scope: Arc::clone(&self.scope),
            claimed_kinds: self.claimed_kinds(),
            now: self.clock.now(),
        });
        let (answer, reply) = Reply::pair(|| Err(closed()));
        let examinations = Arc::clone(&self.examinations);
        let work = move || answer.send(exam.run(&examinations));
        match std::thread::Builder::new().name("dlq-sqlite-doctor".to_owned()).spawn(work) {
            Ok(thread) => {
                self.examinations.keep(thread);
                reply
            }
            Err(error) => {
                let error = StoreError::new(StoreErrorKind::Unavailable, "cannot start a thread").with_source(error);
                Reply::ready(Err(error))
            }
        }
    }
}

impl Exam {
    /// What is in the file: read by a connection of its own, and by the writer's where that alone can read.
    fn of_database(self: &Arc<Self>, examinations: &Examinations) -> Result<Vec<Finding>, StoreError> {
        if self.settings.network_file_system && self.may_write() {
            let (answer, reply) = Reply::pair(|| Err(closed()));
            let exam = Arc::clone(self);
            let chore: Chore = Box::new(move |worker| {
                answer.send(worker.and_then(|worker| Ok(exam.database(worker.connection()?))));
            });
            let _asked = self.shared.queue.push(Command::Chore(chore));
            let silent = || StoreError::new(StoreErrorKind::Busy, "the writer did not answer within an hour");
            return reply.wait(Duration::from_secs(3_600)).unwrap_or_else(|_| Err(silent()));
        }
        let reader = open::reader(&self.settings, &self.shared.lock)?;
        if !examinations.register(reader.connection.get_interrupt_handle()) {
            return Err(closed());
        }
        Ok(self.database(&reader.connection))
    }

    fn run(self: &Arc<Self>, examinations: &Examinations) -> Result<Vec<Finding>, StoreError> {
        let mut found = self.around();
        match self.of_database(examinations) {
            Ok(of_database) => found.extend(of_database),
            Err(error) if error.kind() == StoreErrorKind::Closed => return Err(error),
            Err(error) => {
                let message = format!("the file cannot be read: {error}");
                found.push(self.error("unreadable", message).advise(
                    "letters go to the spill file meanwhile; if the file is damaged, it is set aside when it is next opened",
                ));
            }
        }
        if examinations.connections.lock().unwrap_or_else(PoisonError::into_inner).closing {
            // What was broken off found nothing, and that says nothing.
            return Err(closed());
        }
        Ok(found)
    }

    fn is_full(&self) -> bool {
        self.checkup.depth == retry_runtime::dead_letter::Depth::Full
    }

    fn may_write(&self) -> bool {
        self.settings.access != Access::Read
    }

    /// Something about the file itself.
    fn error(&self, code: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Error, code, message).about(self.settings.path.display().to_string())
    }

    fn warning(&self, code: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, code, message).about(self.settings.path.display().to_string())
    }

    fn info(&self, code: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(Severity::Info, code, message).about(self.settings.path.display().to_string())
    }
}
