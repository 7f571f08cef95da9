//! Errors of this crate.

use std::error::Error;

use crate::classify::Classify;
use crate::classify::boxed::held;
use crate::error::{StoreError, StoreErrorKind};
use crate::policy::PolicyError;
use crate::refused::{Elapsed, Refused};
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    if let Some(error) = held::<StoreError>(link) {
        return Some(error.classify());
    }
    if let Some(error) = held::<Elapsed>(link) {
        return Some(error.classify());
    }
    if let Some(error) = held::<Refused>(link) {
        return Some(error.classify());
    }
    held::<PolicyError>(link).map(Classify::classify)
}

/// A time limit passed: another try may be faster, and the work may have been done.
#[diagnostic::do_not_recommend]
impl Classify for Elapsed {
    fn classify(&self) -> Verdict {
        Verdict::retryable("timeout").outcome_unknown()
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// A refused call is not tried again by whoever called it: what refused it would refuse again.
#[diagnostic::do_not_recommend]
impl Classify for Refused {
    fn classify(&self) -> Verdict {
        Verdict::permanent("refused")
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// By its [kind](StoreError::kind): a busy or unavailable store is worth another try, as is one whose answer was lost.
#[diagnostic::do_not_recommend]
impl Classify for StoreError {
    fn classify(&self) -> Verdict {
        match self.kind() {
            StoreErrorKind::Busy => Verdict::retryable("busy"),
            StoreErrorKind::Unavailable => Verdict::retryable("unavailable"),
            StoreErrorKind::Unknown => Verdict::retryable("unknown").outcome_unknown(),
            StoreErrorKind::Full => Verdict::permanent("storage_full"),
            StoreErrorKind::ReadOnly => Verdict::permanent("read_only"),
            StoreErrorKind::Corrupt => Verdict::permanent("corrupt"),
            StoreErrorKind::Invalid => Verdict::permanent("invalid_request"),
            StoreErrorKind::StaleLease => Verdict::permanent("stale_lease"),
            StoreErrorKind::Conflict => Verdict::permanent("conflict"),
            StoreErrorKind::Closed => Verdict::permanent("closed"),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// The settings stay what they are.
#[diagnostic::do_not_recommend]
impl Classify for PolicyError {
    fn classify(&self) -> Verdict {
        Verdict::permanent("configuration")
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}
