//! Panics of other people's code that end here.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What code of the user's gives; of a panic in it the message.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(end_of_panic)
}

/// The message of a caught panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// The message of a caught panic that ends here. What it carries may panic once more when it is dropped.
pub(crate) fn end_of_panic(panic: Box<dyn Any + Send>) -> String {
    let text = panic_text(&*panic).to_owned();
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
    text
}
