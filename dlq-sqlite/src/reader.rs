//! The thread that reads: on a connection of its own that cannot write, so that a long question holds nobody up but other
//! questions.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::reply::Reply;
use rusqlite::Connection;

use crate::config::{Access, Settings};
use crate::error::{OpenError, from_sqlite, kind_of};
use crate::open;
use crate::open::files::FileIdentity;
use crate::worker::queue::{Chore, Command};
use crate::worker::{Shared, Worker};

type Job = Box<dyn FnOnce(&mut Source) + Send>;

/// Takes questions.
pub(crate) struct Reader {
    jobs: Mutex<Option<Sender<Job>>>,
    /// Where the writer holds the file exclusively, it alone can read it: the slow mode for network file systems.
    through_writer: Option<(Arc<Shared>, PathBuf)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Reader {
    /// Starts the thread. `first` is a connection that was opened already.
    pub(crate) fn start(
        settings: Settings,
        shared: Arc<Shared>,
        first: Option<open::Reader>,
    ) -> Result<Self, OpenError> {
        let path = settings.path.clone();
        let through_writer = (settings.network_file_system && settings.access != Access::Read)
            .then(|| (Arc::clone(&shared), path.clone()));
        let (jobs, work) = channel::<Job>();
        let mut source = Source { settings, shared, open: first };
        let thread = std::thread::Builder::new()
            .name("dlq-sqlite-read".to_owned())
            .spawn(move || {
                for job in work {
                    job(&mut source);
                }
            })
            .map_err(OpenError::io("start a thread for", &path))?;
        Ok(Self { jobs: Mutex::new(Some(jobs)), through_writer, thread: Mutex::new(Some(thread)) })
    }

    /// Asks. The answer comes whether or not anybody waits for it.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Reply<Result<T, StoreError>> {
        let (answer, reply) = Reply::pair(|| Err(closed()));
        if let Some((shared, path)) = &self.through_writer {
            let path = path.clone();
            let chore: Chore = Box::new(move |worker| {
                let ask = |worker: &mut Worker| {
                    in_snapshot(worker.connection()?, question).map_err(|error| failed(what, &path, error))
                };
                answer.send(worker.and_then(ask));
            });
            // A closed store drops the question, whose answer says so.
            let _asked = shared.queue.push(Command::Chore(chore));
            return reply;
        }
        let job: Job = Box::new(move |source| answer.send(source.ask(what, question)));
        self.send(job);
        reply
    }

    /// Does work that takes time and needs no connection. Where the thread is gone, the caller does it.
    pub(crate) async fn run<A: Send + 'static, T: Send + 'static>(
        &self,
        argument: A,
        work: impl Fn(A) -> T + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        // In a place of its own: what the thread does not take comes back.
        let todo = Arc::new((Mutex::new(Some(argument)), work));
        let run = |todo: &(Mutex<Option<A>>, _)| {
            let argument = todo.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            argument.map(&todo.1)
        };
        let (answer, reply) = Reply::pair(|| None);
        let of_thread = Arc::clone(&todo);
        self.send(Box::new(move |_| answer.send(run(&of_thread))));
        match reply.await {
            Some(value) => Ok(value),
            None => {
                run(&todo).ok_or_else(|| StoreError::new(StoreErrorKind::Unknown, "the thread that reads panicked"))
            }
        }
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &*self.jobs.lock().unwrap_or_else(PoisonError::into_inner) {
            // A thread that is gone drops the job, and the job's answer says so.
            let _sent = jobs.send(job);
        }
    }

    /// Answers what was asked, then ends.
    pub(crate) fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the thread was answered to whoever asked.
            let _ended = thread.join();
        }
    }
}

fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Closed, "the store is closed")
}

struct Source {
    settings: Settings,
    shared: Arc<Shared>,
    open: Option<open::Reader>,
}

impl Source {
    fn ask<T>(
        &mut self,
        what: &str,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        // A file that was set aside or replaced must not be read on.
        if self.open.as_ref().is_some_and(|open| FileIdentity::of(&self.settings.path) != Some(open.identity)) {
            self.open = None;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(open::reader(&self.settings, &self.shared.lock).map_err(OpenError::of_question)?),
        };
        let result = in_snapshot(&open.connection, question);
        if result.as_ref().is_err_and(|error| !matches!(kind_of(error), StoreErrorKind::Busy)) {
            self.open = None;
        }
        result.map_err(|error| failed(what, &self.settings.path, error))
    }
}

/// One snapshot for all statements of a question; short, so that the log can be emptied.
pub(crate) fn in_snapshot<T>(
    connection: &Connection,
    question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let result = connection.execute_batch("BEGIN").and_then(|()| question(connection));
    if !connection.is_autocommit() {
        // Nothing was written: there is nothing to lose in a failing end.
        let _ended = connection.execute_batch("COMMIT");
    }
    result
}

fn failed(what: &str, path: &Path, error: rusqlite::Error) -> StoreError {
    from_sqlite(format!("cannot {what} in `{}`", path.display()), error)
}
