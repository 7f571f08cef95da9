use std::error::Error;

use ::hyper::Error as HyperError;

use crate::classify::Classify;
use crate::classify::boxed::{held, of_chain};
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<HyperError>(link).map(shallow)
}

/// The first line that fits:
///
/// | failure | verdict |
/// |---|---|
/// | the request was never sent: the connection was closed, or not ready | retryable `connection` |
/// | the caller's own body or service failed | what its chain says, else unknown `body`; the work may have been done |
/// | a time-out | retryable `timeout`, the work may have been done |
/// | the connection failed, or the answer is torn or no HTTP | retryable `connection`, the work may have been done |
#[diagnostic::do_not_recommend]
impl Classify for HyperError {
    fn classify(&self) -> Verdict {
        of_chain(self)
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

fn shallow(error: &HyperError) -> Verdict {
    if error.is_canceled() {
        Verdict::retryable("connection")
    } else if error.is_user() || error.is_body_write_aborted() {
        Verdict::unknown("body").outcome_unknown()
    } else if error.is_timeout() {
        Verdict::retryable("timeout").outcome_unknown()
    } else {
        Verdict::retryable("connection").outcome_unknown()
    }
}
