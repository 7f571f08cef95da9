//! Where a configuration comes from.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::{Mistake, Place};
use super::keys::Section;
use super::{toml_text, variables};

/// Where a configuration comes from: files, texts and the environment. Later files and texts come over earlier ones, key by
/// key; variables come over all of them.
///
/// ```
/// use retry_runtime::config::Sources;
///
/// let sources = Sources::new().file("/etc/service/retry.toml").optional_file("retry.local.toml").environment();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "sources are read by `Policies::load`"]
pub struct Sources {
    texts: Vec<Text>,
    under: Option<String>,
    variables: Variables,
}

#[derive(Clone, Debug)]
enum Text {
    File { path: PathBuf, optional: bool },
    Given { name: String, text: String },
}

#[derive(Clone, Debug, Default)]
enum Variables {
    #[default]
    None,
    Environment,
    Given(BTreeMap<String, String>),
}

impl Sources {
    /// None yet.
    pub const fn new() -> Self {
        Self { texts: Vec::new(), under: None, variables: Variables::None }
    }

    /// A TOML file, which must be there.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.texts.push(Text::File { path: path.as_ref().to_owned(), optional: false });
        self
    }

    /// A TOML file that may be missing. One that is there and cannot be read is a mistake all the same.
    pub fn optional_file(mut self, path: impl AsRef<Path>) -> Self {
        self.texts.push(Text::File { path: path.as_ref().to_owned(), optional: true });
        self
    }

    /// A TOML text, with a name for its place in messages.
    pub fn text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.push(Text::Given { name: name.into(), text: text.into() });
        self
    }

    /// In all files and texts, policies stand under this table: `[TABLE.policy.NAME]`. The other tables are somebody
    /// else's and are not looked at; so a policy may stand in a program's own configuration file.
    pub fn under(mut self, table: impl Into<String>) -> Self {
        self.under = Some(table.into());
        self
    }

    /// The environment of this process: its variables `RETRY_POLICY_<NAME>_<KEY>`.
    pub fn environment(mut self) -> Self {
        self.variables = Variables::Environment;
        self
    }

    /// These variables instead of the environment. Names that do not begin with `RETRY_POLICY_` are not looked at.
    pub fn variables<N: Into<String>, V: Into<String>>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let all = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.variables = Variables::Given(all.filter(|(name, _)| name.starts_with(variables::PREFIX)).collect());
        self
    }

    /// What they hold now.
    pub(super) fn look(&self) -> Content {
        let texts = self.texts.iter().filter_map(Text::look).collect();
        let variables = match &self.variables {
            Variables::None => BTreeMap::new(),
            Variables::Given(variables) => variables.clone(),
            // what is no text is a mistake when it is read: no key and no value has such characters
            Variables::Environment => std::env::vars_os()
                .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
                .filter(|(name, _)| name.starts_with(variables::PREFIX))
                .collect(),
        };
        Content { texts, under: self.under.clone(), variables }
    }
}

impl Text {
    /// `None`: a file that may be missing, and is.
    fn look(&self) -> Option<(String, Result<String, String>)> {
        match self {
            Self::Given { name, text } => Some((name.clone(), Ok(text.clone()))),
            Self::File { path, optional } => {
                let read = fs::read_to_string(path);
                match &read {
                    Err(error) if *optional && error.kind() == ErrorKind::NotFound => return None,
                    _ => {}
                }
                let text = read.map_err(|error| format!("the file cannot be read: {error}"));
                Some((path.display().to_string(), text))
            }
        }
    }
}

/// What the sources held at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    texts: Vec<(String, Result<String, String>)>,
    under: Option<String>,
    variables: BTreeMap<String, String>,
}

impl Content {
    /// Which of the texts this is; the variables come after them.
    pub(super) fn position(&self, place: &str) -> usize {
        self.texts.iter().position(|(name, _)| name == place).unwrap_or(self.texts.len())
    }

    /// What it sets, by canonical names.
    pub(super) fn sections(&self, mistakes: &mut Vec<Mistake>) -> BTreeMap<String, Section> {
        let mut sections = BTreeMap::new();
        for (name, text) in &self.texts {
            match text {
                Ok(text) => toml_text::read(name, text, self.under.as_deref(), &mut sections, mistakes),
                Err(why) => mistakes.push(Place { name: name.clone(), line: None }.mistake("", "", why)),
            }
        }
        variables::read(&self.variables, &mut sections, mistakes);
        sections
    }
}
