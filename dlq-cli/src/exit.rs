//! How a command ends.

use std::fmt;
use std::io::{self, Write as _};

use retry_runtime::error::{StoreError, StoreErrorKind};

use crate::text;

/// An exit status of `dlq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// Everything that was asked for is done.
    pub const DONE: Self = Self(0);
    /// It failed, or not all is done.
    pub const FAILED: Self = Self(1);
    /// Wrong usage.
    pub const USAGE: Self = Self(2);
    /// A threshold was passed, or the doctor found something.
    pub const FOUND: Self = Self(3);
    /// Ctrl-C; what was under way is paused.
    pub const INTERRUPTED: Self = Self(130);

    /// The status as the system has it.
    pub const fn code(self) -> u8 {
        self.0
    }
}

/// Why a command could not do what it was asked for.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// It failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::FAILED, message: message.into() }
    }

    /// It was asked for in a way that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::USAGE, message: message.into() }
    }

    /// A store failed in some way; where its file is damaged, with where to go from there.
    pub(crate) fn of_store(kind: StoreErrorKind, mut message: String) -> Self {
        if kind == StoreErrorKind::Corrupt {
            message.push_str(DAMAGED);
        }
        Self::failed(message)
    }

    /// The status it ends with.
    pub const fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of_store(error.kind(), error.to_string())
    }
}

/// Where to go from a damaged file.
const DAMAGED: &str = "\n  -> dlq doctor --full says what is damaged, where it can be opened at all; else move the file away with \
                       its -wal and -shm, let a program make a new store, and dlq salvage FILE brings home what can be read";

/// Whoever reads has read enough: no failure of the command.
const CLOSED_PIPE: &str = "closed pipe";

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::DONE, message: CLOSED_PIPE.to_owned() };
        }
        Self::failed(error.to_string())
    }
}

/// Says why, where it failed; the status to end with.
pub(crate) fn say(ended: Result<Exit, Failure>) -> Exit {
    match ended {
        Ok(exit) => exit,
        Err(failure) if failure.exit == Exit::DONE => Exit::DONE,
        Err(failure) => {
            // Nobody is left to tell where stderr is closed.
            let _said = writeln!(anstream::stderr(), "dlq: {}", text::lines(&failure.message));
            failure.exit
        }
    }
}
