//! What is said once.

use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use super::Notice;

/// Where a call was set up, beside its operation's name: many that are built at run time have the same one.
pub(crate) type BuiltAt = Option<&'static Location<'static>>;

/// The operations about which a notice was said, at each place.
type Said = HashMap<(&'static str, BuiltAt), HashSet<String>>;

/// Says a warning once for each notice, operation and place. What was said before costs a look, and no memory.
pub(crate) fn warn_once(name: &'static str, operation: &str, built_at: BuiltAt, message: impl FnOnce() -> String) {
    static SAID: Mutex<Option<Said>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let operations = said.get_or_insert_default().entry((name, built_at)).or_default();
    if !operations.contains(operation) {
        operations.insert(operation.to_owned());
        drop(said);
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
