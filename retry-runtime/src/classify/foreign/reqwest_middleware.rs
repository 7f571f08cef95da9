use std::error::Error;

use ::reqwest_middleware::Error as MiddlewareError;

use crate::classify::Classify;
use crate::classify::boxed::{held, of_chain};
use crate::refused::Refused;
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<MiddlewareError>(link).map(Classify::classify)
}

/// Asks reqwest's error, or the chain of what a middleware failed with.
#[diagnostic::do_not_recommend]
impl Classify for MiddlewareError {
    fn classify(&self) -> Verdict {
        match self {
            Self::Reqwest(error) => error.classify(),
            Self::Middleware(error) => of_chain(error.as_ref()),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// For calls that a breaker refuses.
impl From<Refused> for MiddlewareError {
    fn from(refused: Refused) -> Self {
        Self::middleware(refused)
    }
}
