//! Errors of the standard library.

use std::convert::Infallible;
use std::error::Error;
use std::sync::{PoisonError, TryLockError, mpsc};
use std::{array, char, collections, env, ffi, fmt, io, net, num, path, str, string, thread, time};

use crate::classify::Classify;
use crate::classify::boxed::{held, of_chain};
use crate::verdict::Verdict;

/// The type is known to chains, and says the same of each of its errors.
macro_rules! always {
    ($($verdict:ident($class:literal): $($type:ty),+;)*) => {
        $($(
            #[diagnostic::do_not_recommend]
            impl Classify for $type {
                fn classify(&self) -> Verdict {
                    Verdict::$verdict($class)
                }

                fn describe(&self) -> Option<String> {
                    Some(self.to_string())
                }
            }
        )+)*

        fn always(link: &(dyn Error + 'static)) -> Option<Verdict> {
            $($(
                if held::<$type>(link).is_some() {
                    return Some(Verdict::$verdict($class));
                }
            )+)*
            None
        }
    };
}

// The same input fails again in the same way.
always! {
    permanent("format"): fmt::Error;
    permanent("invalid_number"): num::ParseIntError, num::ParseFloatError, num::TryFromIntError;
    permanent("invalid_text"): str::Utf8Error, str::ParseBoolError, string::FromUtf8Error, string::FromUtf16Error,
        char::ParseCharError, char::CharTryFromError, char::TryFromCharError, char::DecodeUtf16Error,
        ffi::NulError, ffi::FromBytesWithNulError, ffi::FromBytesUntilNulError, ffi::IntoStringError;
    permanent("invalid_length"): array::TryFromSliceError;
    permanent("invalid_address"): net::AddrParseError;
    permanent("invalid_path"): path::StripPrefixError, env::JoinPathsError;
    permanent("configuration"): env::VarError;
    // A time before the one it is measured from, or a number of seconds that no duration has.
    permanent("clock"): time::SystemTimeError, time::TryFromFloatSecsError;
    permanent("closed"): mpsc::RecvError, thread::AccessError;
    retryable("out_of_memory"): collections::TryReserveError;
}

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    if let Some(error) = held::<io::Error>(link) {
        return Some(by_kind(error));
    }
    if let Some(error) = held::<mpsc::RecvTimeoutError>(link) {
        return Some(error.classify());
    }
    if let Some(error) = held::<mpsc::TryRecvError>(link) {
        return Some(error.classify());
    }
    always(link)
}

/// Asks the [kind](io::Error::kind), and where that says nothing the payload and its sources.
///
/// | kind | verdict |
/// |---|---|
/// | `ConnectionReset`, `ConnectionAborted`, `BrokenPipe`, `UnexpectedEof` | retryable `connection`, the work may have been done |
/// | `ConnectionRefused`, `NotConnected`, `HostUnreachable`, `NetworkUnreachable`, `NetworkDown`, `AddrNotAvailable` | retryable `connection` |
/// | `TimedOut`, `WouldBlock` (how a blocking socket tells a time-out) | retryable `timeout`, the work may have been done |
/// | `AddrInUse`, `ResourceBusy`, `ExecutableFileBusy`, `Deadlock`; on Unix also too many open files | retryable `busy` |
/// | `Interrupted`; `StaleNetworkFileHandle`; `OutOfMemory` | retryable `interrupted`; `stale_handle`; `out_of_memory` |
/// | `StorageFull`, `QuotaExceeded` | permanent `storage_full`: waiting frees no space, a later replay may find some |
/// | `FileTooLarge` | permanent `too_large` |
/// | `NotFound`; `PermissionDenied`; `AlreadyExists` | permanent `not_found`; `permission_denied`; `already_exists` |
/// | `ReadOnlyFilesystem`; `InvalidData`; `Unsupported` | permanent `read_only`; `invalid_data`; `not_supported` |
/// | `InvalidInput`, `NotADirectory`, `IsADirectory`, `DirectoryNotEmpty`, `NotSeekable`, `CrossesDevices`, `TooManyLinks`, `ArgumentListTooLong` | permanent `invalid_request` |
/// | `WriteZero`, `Other`, and what is not named | unknown `io` |
#[diagnostic::do_not_recommend]
impl Classify for io::Error {
    fn classify(&self) -> Verdict {
        of_chain(self)
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// The same table.
#[diagnostic::do_not_recommend]
impl Classify for io::ErrorKind {
    fn classify(&self) -> Verdict {
        use io::ErrorKind as Kind;
        match self {
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe | Kind::UnexpectedEof => {
                Verdict::retryable("connection").outcome_unknown()
            }
            Kind::ConnectionRefused
            | Kind::NotConnected
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::AddrNotAvailable => Verdict::retryable("connection"),
            Kind::TimedOut | Kind::WouldBlock => Verdict::retryable("timeout").outcome_unknown(),
            Kind::AddrInUse | Kind::ResourceBusy | Kind::ExecutableFileBusy | Kind::Deadlock => {
                Verdict::retryable("busy")
            }
            Kind::Interrupted => Verdict::retryable("interrupted"),
            Kind::StaleNetworkFileHandle => Verdict::retryable("stale_handle"),
            Kind::OutOfMemory => Verdict::retryable("out_of_memory"),
            Kind::StorageFull | Kind::QuotaExceeded => Verdict::permanent("storage_full"),
            Kind::FileTooLarge => Verdict::permanent("too_large"),
            Kind::NotFound => Verdict::permanent("not_found"),
            Kind::PermissionDenied => Verdict::permanent("permission_denied"),
            Kind::AlreadyExists => Verdict::permanent("already_exists"),
            Kind::ReadOnlyFilesystem => Verdict::permanent("read_only"),
            Kind::InvalidData => Verdict::permanent("invalid_data"),
            Kind::Unsupported => Verdict::permanent("not_supported"),
            Kind::InvalidInput
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::DirectoryNotEmpty
            | Kind::NotSeekable
            | Kind::CrossesDevices
            | Kind::TooManyLinks
            | Kind::ArgumentListTooLong => Verdict::permanent("invalid_request"),
            _ => Verdict::unknown("io"),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

fn by_kind(error: &io::Error) -> Verdict {
    // ENFILE and EMFILE have no kind. Their numbers are the same on every Unix.
    if cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24)) {
        return Verdict::retryable("busy");
    }
    error.kind().classify()
}

/// Never asked: there is no such error.
#[diagnostic::do_not_recommend]
impl Classify for Infallible {
    fn classify(&self) -> Verdict {
        match *self {}
    }
}

#[diagnostic::do_not_recommend]
impl Classify for mpsc::RecvTimeoutError {
    fn classify(&self) -> Verdict {
        match self {
            Self::Timeout => Verdict::retryable("timeout"),
            Self::Disconnected => Verdict::permanent("closed"),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

#[diagnostic::do_not_recommend]
impl Classify for mpsc::TryRecvError {
    fn classify(&self) -> Verdict {
        match self {
            Self::Empty => Verdict::retryable("empty"),
            Self::Disconnected => Verdict::permanent("closed"),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

#[diagnostic::do_not_recommend]
impl<T> Classify for mpsc::SendError<T> {
    fn classify(&self) -> Verdict {
        Verdict::permanent("closed")
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

#[diagnostic::do_not_recommend]
impl<T> Classify for mpsc::TrySendError<T> {
    fn classify(&self) -> Verdict {
        match self {
            Self::Full(_) => Verdict::retryable("full"),
            Self::Disconnected(_) => Verdict::permanent("closed"),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

#[diagnostic::do_not_recommend]
impl<T> Classify for PoisonError<T> {
    fn classify(&self) -> Verdict {
        Verdict::permanent("poisoned")
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

#[diagnostic::do_not_recommend]
impl<T> Classify for TryLockError<T> {
    fn classify(&self) -> Verdict {
        match self {
            Self::WouldBlock => Verdict::retryable("busy"),
            Self::Poisoned(_) => Verdict::permanent("poisoned"),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}
