//! `RETRY_DISABLED`: one attempt for every loop of the process.

use std::ffi::OsStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::observe::Notice;

/// The environment variable.
pub(crate) const VARIABLE: &str = "RETRY_DISABLED";

/// Whether the process makes no retries. Asked after a failure only; the environment is read at the first one.
#[inline]
pub(crate) fn retries_are_disabled() -> bool {
    match KNOWN.load(Ordering::Relaxed) {
        NOT_READ => read_once(),
        known => known == DISABLED,
    }
}

/// Whether it is known that it makes them.
#[inline]
pub(crate) fn retries_are_enabled() -> bool {
    KNOWN.load(Ordering::Relaxed) == ENABLED
}

/// What was read, for all that comes after.
static KNOWN: AtomicU8 = AtomicU8::new(NOT_READ);
const NOT_READ: u8 = 0;
const ENABLED: u8 = 1;
const DISABLED: u8 = 2;

/// Reads the environment, and says what it says there: both once.
#[cold]
#[inline(never)]
fn read_once() -> bool {
    static READ: OnceLock<bool> = OnceLock::new();
    let disabled = *READ.get_or_init(|| {
        let value = std::env::var_os(VARIABLE);
        let disabled = value.as_deref().map_or(Some(false), read);
        let shown = || value.as_deref().unwrap_or_default().to_string_lossy().into_owned();
        match disabled {
            Some(false) => {}
            Some(true) => {
                let message = format!("{VARIABLE}={}: every loop of this process makes one attempt", shown());
                Notice::warning("retries_disabled", "", message).say();
            }
            None => {
                let message = format!(
                    "{VARIABLE}={} means nothing, and retries are made: to turn them off it is 1, true, yes or on, to leave \
                     them on 0, false, no, off or empty",
                    shown()
                );
                Notice::warning("misconfigured", "", message).say();
            }
        }
        disabled.unwrap_or(false)
    });
    KNOWN.store(if disabled { DISABLED } else { ENABLED }, Ordering::Relaxed);
    disabled
}

/// What a value says; `None`: nothing.
fn read(value: &OsStr) -> Option<bool> {
    let value = value.to_str()?.trim();
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(value));
    if is(&["1", "true", "yes", "on"]) {
        Some(true)
    } else if is(&["", "0", "false", "no", "off"]) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_yes_no_or_nothing() {
        let said = |value: &str| read(OsStr::new(value));
        assert!(["1", "true", "TRUE", "yes", "On", " 1 "].iter().all(|value| said(value) == Some(true)));
        assert!(["", "0", "false", "No", "off"].iter().all(|value| said(value) == Some(false)));
        assert!(["2", "disabled", "y", "-1"].iter().all(|value| said(value).is_none()));
    }
}
