//! Exclusive file locks without a crate for them.
//!
//! The standard library has `File::try_lock` since Rust 1.89. This crate also builds with older compilers, and there the
//! trait below stands in: an inherent method comes before a trait's, so the same call means the library's lock where
//! there is one, and "unsupported" where there is none. A spill file without a lock is written and counted, but not
//! imported.

use std::fs::File;
use std::io::{self, ErrorKind};

#[allow(dead_code, reason = "used by compilers before 1.89 only")]
trait Fallback {
    fn try_lock(&self) -> io::Result<()>;
}

impl Fallback for File {
    fn try_lock(&self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// What came of asking for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    /// It is ours until the file is closed.
    Yes,
    /// Somebody else has it.
    Busy,
    /// There are no locks here: an old compiler, or a file system without them.
    Unsupported,
}

/// Asks for an exclusive lock, without waiting.
#[allow(clippy::incompatible_msrv, clippy::useless_conversion, reason = "older compilers take the fallback above")]
#[allow(unstable_name_collisions, reason = "some of them know the name as unstable")]
pub(super) fn exclusive(file: &File) -> Locked {
    match file.try_lock().map_err(io::Error::from) {
        Ok(()) => Locked::Yes,
        Err(error) if error.kind() == ErrorKind::WouldBlock => Locked::Busy,
        Err(_) => Locked::Unsupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_handle_finds_it_busy_until_the_first_is_closed() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("retry-lock-{}", std::process::id()));
        let first = File::create(&path)?;
        if exclusive(&first) == Locked::Unsupported {
            return Ok(());
        }
        let second = File::open(&path)?;
        assert_eq!(exclusive(&second), Locked::Busy);
        drop(first);
        assert_eq!(exclusive(&second), Locked::Yes);
        std::fs::remove_file(path)
    }
}
