//! What is done once.

use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use super::Notice;

/// Where a call was set up, beside its operation's name: many that are built at run time have the same one.
pub(crate) type BuiltAt = Option<&'static Location<'static>>;

/// What was done about an operation at a place. In order, and no hash map: a list is a tenth of the code.
type Done = Vec<(&'static str, BuiltAt, Box<str>)>;

/// Whether this is asked for the first time about the operation at that place. What was asked before costs a look, and no
/// memory.
pub(crate) fn is_first(what: &'static str, operation: &str, built_at: BuiltAt) -> bool {
    static DONE: Mutex<Done> = Mutex::new(Vec::new());
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = done.binary_search_by(|(which, at, whose)| (*which, *at, &**whose).cmp(&(what, built_at, operation)));
    if let Err(place) = place {
        done.insert(place, (what, built_at, operation.into()));
    }
    place.is_err()
}

/// Says a warning once for each notice, operation and place.
pub(crate) fn warn_once(name: &'static str, operation: &str, built_at: BuiltAt, message: impl FnOnce() -> String) {
    if is_first(name, operation, built_at) {
        Notice::warning(name, operation, with_place(message(), built_at)).say();
    }
}

/// A message about a call, with the place where it was set up, if that is known.
pub(crate) fn with_place(message: String, built_at: BuiltAt) -> String {
    match built_at {
        Some(place) => format!("{message} (set up at {place})"),
        None => message,
    }
}
