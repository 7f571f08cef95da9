//! A sink of a blocking closure.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::shared::{Next, Shared};
use super::{Closed, is_home, panicked, store_error};
use crate::dead_letter::spill::Waiting;
use crate::dead_letter::{DeadLetter, DeadLetterSink, Import, Spill, Ticket, give_back_losses};
use crate::error::StoreError;
use crate::panics::caught;

/// How long dropping the last handle waits for what is still to be parked.
const DROP_WITHIN: Duration = Duration::from_secs(5);

/// A sink of a blocking closure, which runs on a thread of its own.
///
/// The closure parks one letter and returns its id. It must be durable then, and a letter whose `park_id` is known must
/// change nothing: after a failure a letter may be sent again. An error, or a panic, sends the letter to the spill file.
///
/// Handles are cheap to clone. Dropping the last one closes the sink as [`close`](Self::close) within 5 s.
///
/// ```
/// use std::convert::Infallible;
/// use retry_runtime::dead_letter::BlockingSink;
///
/// # let directory = std::env::temp_dir();
/// let sink = BlockingSink::new(directory.join("queue"), |letter| {
///     // send the letter to where yours go
///     Ok::<_, Infallible>(letter.park_id.to_string())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct BlockingSink {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl BlockingSink {
    /// A sink whose spill files are called `<spill_base>.spill.*` (see [`Spill::beside`]).
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn new<F, I, E>(spill_base: impl AsRef<Path>, park: F) -> io::Result<Self>
    where
        F: FnMut(&DeadLetter) -> Result<I, E> + Send + 'static,
        I: Into<String>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self::with_spill(Spill::beside(spill_base), park)
    }

    /// A sink with a spill of your own choice.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn with_spill<F, I, E>(spill: Spill, mut park: F) -> io::Result<Self>
    where
        F: FnMut(&DeadLetter) -> Result<I, E> + Send + 'static,
        I: Into<String>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let shared = Shared::new(spill);
        let of_thread = Arc::clone(&shared);
        let mut park = move |letter: &DeadLetter| {
            // What a panic leaves behind in the closure is the closure's own affair: it is only ever called again.
            match caught(|| park(letter)) {
                Ok(parked) => parked.map(Into::into).map_err(|error| store_error(error.into())),
                Err(_) => Err(panicked()),
            }
        };
        let thread =
            thread::Builder::new().name("retry-dead-letter".to_owned()).spawn(move || work(&of_thread, &mut park))?;
        Ok(Self { handle: Arc::new(Handle { shared, thread: Mutex::new(Some(thread)) }) })
    }

    /// Takes no more letters, waits at most `within` until those taken are parked, spills the rest and ends the thread.
    /// Letters submitted later go to the spill on the caller's thread.
    pub fn close(&self, within: Duration) -> Closed {
        self.handle.close(within)
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

impl DeadLetterSink for BlockingSink {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        self.handle.shared.submit(letter)
    }
}

impl Handle {
    fn close(&self, within: Duration) -> Closed {
        self.shared.close();
        let mut spilled = 0;
        let is_stuck = !self.shared.wait_idle(within);
        if is_stuck {
            spilled = self.shared.spill_rest();
        }
        let mut slot = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = slot.take() else { return Closed { spilled, ended: !is_stuck } };
        // The closure may own the last handle: a thread cannot wait for itself. A stuck one is not waited for.
        let is_own = thread.thread().id() == thread::current().id();
        if is_own || (is_stuck && !thread.is_finished()) {
            return Closed { spilled, ended: false };
        }
        Closed { spilled, ended: thread.join().is_ok() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close(DROP_WITHIN);
    }
}

type Park<'a> = dyn FnMut(&DeadLetter) -> Result<String, StoreError> + 'a;

fn work(shared: &Shared, park: &mut Park<'_>) {
    loop {
        match shared.next() {
            Next::Letter(letter) => match shared.is_down() {
                Some(because) => shared.settle(Err(because), false),
                None => shared.settle(park(&letter), true),
            },
            Next::Import => shared.imported(import(shared, park)),
            Next::End => return,
        }
    }
}

fn import(shared: &Shared, park: &mut Park<'_>) -> Result<bool, StoreError> {
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
                is_file_home &= is_home(&letter, park(&letter))?;
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

impl fmt::Debug for BlockingSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingSink").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
