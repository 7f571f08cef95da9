//! What is wrong with a configuration: all of it, each with its place.

use std::error::Error;
use std::fmt;

/// A configuration that is not used. Its text has a line for each mistake. `{:?}` gives the same text: a `main` that returns
/// the error prints it so.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError {
    mistakes: Vec<Mistake>,
}

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// The file as it was named, or the environment variable.
    pub place: String,
    /// The line in the file, from 1; `None` of a variable, and of a file that cannot be read.
    pub line: Option<usize>,
    /// The key with its tables, as in `policy.gemini.max_retries`; empty where no key is meant.
    pub key: String,
    /// The value as it is written, cut where it is long; empty where no value is meant.
    pub value: String,
    /// What is wrong, and what is accepted.
    pub message: String,
}

impl ConfigError {
    /// `None` without a mistake.
    pub(super) fn of(mistakes: Vec<Mistake>) -> Option<Self> {
        (!mistakes.is_empty()).then_some(Self { mistakes })
    }

    /// The mistakes: file by file and line by line, then the variables.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// The mistakes in one line, for a notice.
    pub(super) fn in_one_line(&self) -> String {
        let lines: Vec<String> = self.mistakes.iter().map(Mistake::to_string).collect();
        lines.join("; ")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistakes.len() {
            1 => f.write_str("1 mistake in the configuration of retries")?,
            count => write!(f, "{count} mistakes in the configuration of retries")?,
        }
        self.mistakes.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for ConfigError {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        // the variable is the key, and stands there already
        if !self.key.is_empty() && self.line.is_some() {
            write!(f, ": {}", self.key)?;
        }
        if !self.value.is_empty() {
            write!(f, " = {}", self.value)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) line: Option<usize>,
}

impl Place {
    pub(super) fn mistake(&self, key: impl Into<String>, value: &str, message: impl Into<String>) -> Mistake {
        Mistake {
            place: self.name.clone(),
            line: self.line,
            key: key.into(),
            value: shown(value),
            message: message.into(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The longest value that a message repeats, in characters.
const SHOWN: usize = 60;

/// A value for a message: in one line, and not too long.
fn shown(value: &str) -> String {
    let mut shown = String::new();
    for (index, character) in value.chars().enumerate() {
        if index == SHOWN {
            shown.push_str("...");
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}
