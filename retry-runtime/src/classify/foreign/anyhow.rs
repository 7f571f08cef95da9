use crate::classify::{Classify, of_chain};
use crate::verdict::Verdict;

/// Asks the chain of causes: [`of_chain`].
#[diagnostic::do_not_recommend]
impl Classify for ::anyhow::Error {
    fn classify(&self) -> Verdict {
        of_chain(self.as_ref())
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}
