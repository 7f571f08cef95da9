//! A sink of an asynchronous closure.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use super::shared::{Next, Shared};
use super::{Closed, is_home, panicked, store_error};
use crate::dead_letter::spill::Waiting;
use crate::dead_letter::{BoxFuture, DeadLetter, DeadLetterSink, Import, Spill, Ticket, give_back_losses};
use crate::error::StoreError;
use crate::panics::caught;
use crate::reply::Reply;

/// A sink of an asynchronous closure, which runs in one task on a runtime of your choice.
///
/// The closure parks one letter and returns its id. It must be durable then, and a letter whose `park_id` is known must
/// change nothing: after a failure a letter may be sent again. An error, or a panic, sends the letter to the spill file;
/// so does the end of the runtime, for every letter that still waits.
///
/// Handles are cheap to clone. After the last one is dropped the task parks what waits, and ends.
///
/// ```
/// use std::convert::Infallible;
/// use retry_runtime::dead_letter::AsyncSink;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let directory = std::env::temp_dir();
/// let spawn = |task| drop(tokio::spawn(task));
/// let sink = AsyncSink::new(directory.join("queue"), spawn, |letter| async move {
///     // send the letter to where yours go
///     Ok::<_, Infallible>(letter.park_id.to_string())
/// });
/// # drop(sink);
/// # }
/// ```
#[derive(Clone)]
pub struct AsyncSink {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
}

impl AsyncSink {
    /// A sink whose task is started by `spawn`, and whose spill files are called `<spill_base>.spill.*` (see
    /// [`Spill::beside`]).
    pub fn new<F, Fut, I, E>(spill_base: impl AsRef<Path>, spawn: impl FnOnce(BoxFuture<'static, ()>), park: F) -> Self
    where
        F: FnMut(Arc<DeadLetter>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<I, E>> + Send + 'static,
        I: Into<String> + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        Self::with_spill(Spill::beside(spill_base), spawn, park)
    }

    /// A sink with a spill of your own choice.
    pub fn with_spill<F, Fut, I, E>(spill: Spill, spawn: impl FnOnce(BoxFuture<'static, ()>), mut park: F) -> Self
    where
        F: FnMut(Arc<DeadLetter>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<I, E>> + Send + 'static,
        I: Into<String> + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        let shared = Shared::new(spill);
        let task = work(Task { shared: Arc::clone(&shared) }, move |letter| {
            // What a panic leaves behind in the closure is the closure's own affair: it is only ever called again.
            let parked = caught(|| park(letter));
            ended(parked)
        });
        spawn(Box::pin(task));
        Self { handle: Arc::new(Handle { shared }) }
    }

    /// Takes no more letters, waits at most `within` until those taken are parked, and spills the rest. Letters submitted
    /// later go to the spill on the caller's thread.
    ///
    /// Await the reply in asynchronous code; waiting for it blocks the thread, which must not be the one that runs the
    /// task.
    pub fn close(&self, within: Duration) -> Reply<Closed> {
        let shared = Arc::clone(&self.handle.shared);
        shared.close();
        let (answer, reply) = Reply::pair(Closed::default);
        // Without a runtime's timer, a thread keeps the time.
        let close = move || {
            let ended = shared.wait_idle(within);
            let spilled = if ended { 0 } else { shared.spill_rest() };
            answer.send(Closed { spilled, ended });
        };
        match thread::Builder::new().name("retry-close".to_owned()).spawn(close) {
            Ok(_) => reply,
            Err(_) => Reply::ready(Closed { spilled: self.handle.shared.spill_rest(), ended: false }),
        }
    }

    /// How many letters wait.
    pub fn waiting(&self) -> usize {
        self.handle.shared.lengths().0
    }

    /// How many letters ever came while more than 1,000 were waiting. They were taken all the same.
    pub fn overflowed(&self) -> u64 {
        self.handle.shared.lengths().1
    }
}

impl DeadLetterSink for AsyncSink {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        self.handle.shared.submit(letter)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// The task's end of the sink. Dropped with the task, also by a runtime that stops: then what waits goes to the spill.
struct Task {
    shared: Arc<Shared>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.shared.end();
    }
}

async fn ended<Fut, I, E>(parked: Result<Fut, String>) -> Result<String, StoreError>
where
    Fut: Future<Output = Result<I, E>>,
    I: Into<String>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let Ok(future) = parked else { return Err(panicked()) };
    let mut future = pin!(future);
    let parked = poll_fn(|cx| match caught(|| future.as_mut().poll(cx)) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    });
    match parked.await {
        Some(parked) => parked.map(Into::into).map_err(|error| store_error(error.into())),
        None => Err(panicked()),
    }
}

async fn work<F, Fut>(task: Task, mut park: F)
where
    F: FnMut(Arc<DeadLetter>) -> Fut,
    Fut: Future<Output = Result<String, StoreError>>,
{
    let shared = &task.shared;
    loop {
        match poll_fn(|cx| shared.poll_next(cx)).await {
            Next::Letter(letter) => match shared.is_down() {
                Some(because) => shared.settle(Err(because), false),
                None => shared.settle(park(letter).await, true),
            },
            Next::Import => shared.imported(import(shared, &mut park).await),
            Next::End => return,
        }
    }
}

async fn import<F, Fut>(shared: &Shared, park: &mut F) -> Result<bool, StoreError>
where
    F: FnMut(Arc<DeadLetter>) -> Fut,
    Fut: Future<Output = Result<String, StoreError>>,
{
    let mut is_whole = true;
    let mut done = Import::default();
    for path in shared.files_to_import() {
        let Some(mut waiting) = Waiting::open(&path, &mut done) else { continue };
        let mut is_file_home = true;
        while let Some(batch) = waiting.next(&mut done) {
            for letter in batch.letters {
                if shared.is_closed() {
                    return Ok(false);
                }
                let letter = Arc::new(letter);
                let parked = park(Arc::clone(&letter)).await;
                is_file_home &= is_home(&letter, parked)?;
            }
        }
        if is_file_home {
            give_back_losses(waiting.lost());
            waiting.finish(&mut done);
        }
        is_whole &= is_file_home;
    }
    Ok(is_whole)
}

impl fmt::Debug for AsyncSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncSink").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
