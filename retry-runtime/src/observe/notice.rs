//! Warnings and losses, said aloud.

use std::fmt;
use std::io::Write as _;
use std::sync::OnceLock;

use crate::panics::caught;

/// Something an operator should know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// How bad it is.
    pub level: Level,
    /// A stable name: `classifier_failed`, `misconfigured`, `park_failed`, `spilled`, `lost`, `ledger_failed`, ...
    pub name: &'static str,
    /// The operation it is about, where there is one.
    pub operation: String,
    /// A sentence for people. Never a payload.
    pub message: String,
}

/// How bad a [`Notice`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// To be looked at.
    Warning,
    /// Something was lost, or is about to be.
    Error,
}

impl Notice {
    /// A warning.
    pub fn warning(name: &'static str, operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, name, operation: operation.into(), message: message.into() }
    }

    /// An error.
    pub fn error(name: &'static str, operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::warning(name, operation, message) }
    }

    /// Says it: to the listener and, with the feature `tracing`, to a subscriber that wants it; where neither hears it, on
    /// stderr. A panicking listener is caught, and has heard nothing. Tells whether somebody heard it.
    pub fn say(self) -> bool {
        let heard = LISTENER.get().is_some_and(|listener| caught(|| listener(&self)).is_ok());
        #[cfg(feature = "tracing")]
        let heard = caught(|| super::to_tracing::notice(&self)).unwrap_or(false) || heard;
        if !heard {
            self.print();
        }
        heard
    }

    /// Writes it to stderr in one piece, so that lines of several threads stay whole. A closed stderr stops nobody.
    pub(crate) fn print(&self) {
        let _unread = std::io::stderr().write_all(format!("{self}\n").as_bytes());
    }
}

/// One line: what comes from outside is escaped in it.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Warning => "warning",
            Level::Error => "error",
        };
        write!(f, "retry: {level} {}", self.name)?;
        if !self.operation.is_empty() {
            write!(f, " [{}]", OneLine(&self.operation))?;
        }
        write!(f, ": {}", OneLine(&self.message))
    }
}

/// A text in one line. Job ids and error texts come from outside: a line break in one must not look like another notice,
/// nor a control character reach a terminal.
pub(crate) struct OneLine<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::write(&mut Escaping(f), format_args!("{}", self.0))
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut copied = 0;
        for (at, character) in text.char_indices().filter(|(_, character)| is_harmful(*character)) {
            self.0.write_str(text.get(copied..at).unwrap_or_default())?;
            write!(self.0, "{}", character.escape_default())?;
            copied = at + character.len_utf8();
        }
        self.0.write_str(text.get(copied..).unwrap_or_default())
    }
}

/// Ends a line, moves a terminal, or turns the direction of what is read.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

type Listener = Box<dyn Fn(&Notice) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Sends all notices of this process to `listener` instead of stderr; a subscriber of `tracing` hears them all the same. The first call wins; `false` says that there was
/// one already.
pub fn set_listener(listener: impl Fn(&Notice) + Send + Sync + 'static) -> bool {
    LISTENER.set(Box::new(listener)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // D18: what comes from outside cannot forge a line.
    #[test]
    fn a_notice_is_one_line() {
        let notice = Notice::error("lost", "fetch", "job a\nretry: error lost: another\u{1b}[2J\u{e9}");
        let line = notice.to_string();
        assert_eq!(line, "retry: error lost [fetch]: job a\\nretry: error lost: another\\u{1b}[2J\u{e9}");
    }
}
