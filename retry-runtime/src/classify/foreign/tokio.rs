use std::error::Error;

use ::tokio::time::error::Elapsed;

use crate::classify::Classify;
use crate::classify::boxed::held;
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<Elapsed>(link).map(Classify::classify)
}

/// Retryable, class `timeout`; what was under way may have been done all the same.
#[diagnostic::do_not_recommend]
impl Classify for Elapsed {
    fn classify(&self) -> Verdict {
        Verdict::retryable("timeout").outcome_unknown()
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}
