use std::error::Error;

use ::serde_json::error::Category;

use crate::classify::Classify;
use crate::classify::boxed::held;
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<::serde_json::Error>(link).map(Classify::classify)
}

/// Text that ends too early is retryable, class `truncated`: as a rule an answer was cut off. Other faults of syntax and
/// data are permanent, class `invalid_json`; a fault of the reader or writer is classified by its kind.
#[diagnostic::do_not_recommend]
impl Classify for ::serde_json::Error {
    fn classify(&self) -> Verdict {
        match self.classify() {
            Category::Eof => Verdict::retryable("truncated"),
            Category::Syntax | Category::Data => Verdict::permanent("invalid_json"),
            Category::Io => self.io_error_kind().map_or(Verdict::unknown("io"), |kind| kind.classify()),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}
