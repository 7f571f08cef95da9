//! What is said once.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use super::Notice;

/// Says a warning once for each pair of notice name and operation. What was said before costs a look, and no memory.
pub(crate) fn warn_once(name: &'static str, operation: &str, message: impl FnOnce() -> String) {
    static SAID: Mutex<Option<HashMap<&'static str, HashSet<String>>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let operations = said.get_or_insert_default().entry(name).or_default();
    if !operations.contains(operation) {
        operations.insert(operation.to_owned());
        drop(said);
        Notice::warning(name, operation, message()).say();
    }
}
