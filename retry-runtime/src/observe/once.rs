//! What is said once.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::Notice;

/// Says a warning once for each pair of notice name and operation.
pub(crate) fn warn_once(name: &'static str, operation: &str, message: &str) {
    static SAID: Mutex<Option<HashSet<(&'static str, String)>>> = Mutex::new(None);
    let first = SAID
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert((name, operation.to_owned()));
    if first {
        Notice::warning(name, operation, message).say();
    }
}
