//! The policies of a program, by name.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::observe::{Notice, warn_once};
use crate::policy::Policy;

use super::loaded::{Loaded, refusal};
use super::sources::Content;
use super::{ConfigError, NamedPolicy, Sources};

/// The policies of a program by name: see the [module](super).
///
/// [`of`](Self::of) knows the names that there are, with the policy of each in the code, so that a configuration is
/// checked in full when it is loaded. [`new`](Self::new) takes any name: the code's own policy is known when it is asked
/// for, and a misspelt name in a file is found by [`unused`](Self::unused) only.
pub struct Policies {
    names: Option<&'static [&'static NamedPolicy<'static>]>,
    current: RwLock<Option<Arc<Loaded>>>,
    source: Mutex<Source>,
}

/// What was read last.
#[derive(Debug)]
struct Source {
    sources: Sources,
    content: Option<Content>,
}

impl Policies {
    /// Policies of any name, and no configuration.
    pub const fn new() -> Self {
        Self::with(None)
    }

    /// These policies and no others, and no configuration.
    ///
    /// ```
    /// use retry_runtime::Policy;
    /// use retry_runtime::config::{NamedPolicy, Policies, Sources};
    ///
    /// static POLICIES: Policies = Policies::of(&[&GEMINI, &WORKER]);
    /// static GEMINI: NamedPolicy = NamedPolicy::new(&POLICIES, "gemini", Policy::new().max_retries(4));
    /// static WORKER: NamedPolicy = NamedPolicy::new(&POLICIES, "worker", Policy::new());
    ///
    /// let error = POLICIES.load(Sources::new().text("retry.toml", "[policy.gemni]\nmax_retries = -1")).unwrap_err();
    /// assert_eq!(error.to_string(), "\
    /// 2 mistakes in the configuration of retries
    ///   retry.toml:1: policy.gemni: no such policy (did you mean `gemini`?); the policies are gemini, worker
    ///   retry.toml:2: policy.gemni.max_retries = -1: the value is a whole number from 0 to 4294967295, or \"forever\"");
    /// assert_eq!(GEMINI.get(), Policy::new().max_retries(4)); // nothing of it is used
    /// ```
    pub const fn of(names: &'static [&'static NamedPolicy<'static>]) -> Self {
        Self::with(Some(names))
    }

    const fn with(names: Option<&'static [&'static NamedPolicy<'static>]>) -> Self {
        let source = Source { sources: Sources::new(), content: None };
        Self { names, current: RwLock::new(None), source: Mutex::new(source) }
    }

    /// The policy of a name as it is now: `default`, with the keys that are configured in place of its own.
    ///
    /// In `#[retry(policy = POLICIES.get_or("gemini", &DEFAULT))]` it is asked when the call starts. A [`NamedPolicy`] is
    /// asked at a failure only, which is cheaper.
    ///
    /// Where a configuration and `default` contradict each other, which was not known when it was loaded, the policy is
    /// `default`, and a notice `config_rejected` says so.
    pub fn get_or(&self, name: &str, default: &Policy) -> Policy {
        if let Some(why) = refusal(name, self.names) {
            warn_once("unknown_policy", name, None, || why);
            return *default;
        }
        self.loaded().and_then(|loaded| loaded.find(name, default)).unwrap_or(*default)
    }

    /// Reads a configuration and puts it in the place of the one before, in one moment for all policies.
    ///
    /// # Errors
    /// [`ConfigError`] with all mistakes. What was in force stays, and the sources are read again by
    /// [`reload`](Self::reload).
    pub fn load(&self, sources: Sources) -> Result<Changes, ConfigError> {
        let mut source = self.source();
        let content = sources.look();
        *source = Source { sources, content: None };
        self.replace(&mut source, content)
    }

    /// Reads the same sources again.
    ///
    /// # Errors
    /// [`ConfigError`] with all mistakes. What was in force stays, which a notice `config_rejected` says as well.
    pub fn reload(&self) -> Result<Changes, ConfigError> {
        let mut source = self.source();
        let content = source.sources.look();
        said(self.replace(&mut source, content))
    }

    /// Reads the same sources again, and does what [`reload`](Self::reload) does where they hold something else than they
    /// did when they were last read: for a task that watches them. `None` where they do not; so one mistake is reported
    /// once. The content is compared: neither the time of a file nor how it came to its place counts.
    ///
    /// ```
    /// use retry_runtime::config::{Policies, Sources};
    ///
    /// static POLICIES: Policies = Policies::new();
    ///
    /// # fn main() -> Result<(), retry_runtime::config::ConfigError> {
    /// POLICIES.load(Sources::new().text("retry.toml", "policy.gemini.max_retries = 4"))?;
    /// // in a task or thread: loop { .. wait some seconds ..; if let Ok(Some(changes)) = POLICIES.refresh() { .. log .. } }
    /// assert_eq!(POLICIES.refresh()?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    pub fn refresh(&self) -> Result<Option<Changes>, ConfigError> {
        let mut source = self.source();
        let content = source.sources.look();
        if source.content.as_ref() == Some(&content) {
            return Ok(None);
        }
        said(self.replace(&mut source, content)).map(Some)
    }

    /// The configured names that nobody has asked for: to be looked at when all handles have been used once, of policies
    /// that take any name.
    pub fn unused(&self) -> Vec<String> {
        self.loaded().map(|loaded| loaded.unused()).unwrap_or_default()
    }

    fn loaded(&self) -> Option<Arc<Loaded>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn source(&self) -> std::sync::MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under the lock of the sources: two reloads come one after the other.
    fn replace(&self, source: &mut Source, content: Content) -> Result<Changes, ConfigError> {
        let before = self.loaded().unwrap_or_default();
        let read = Loaded::read(&content, self.names, &before);
        source.content = Some(content);
        let loaded = read?;
        let changes = Changes { names: before.differences(&loaded) };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(loaded));
        Ok(changes)
    }
}

/// Says that a reload failed.
fn said(end: Result<Changes, ConfigError>) -> Result<Changes, ConfigError> {
    if let Err(error) = &end {
        let message = format!("{}; the configuration before it stays in force", error.in_one_line());
        Notice::error("config_rejected", "", message).say();
    }
    end
}

impl Default for Policies {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // not the names of `of`: each of those knows these policies
        f.debug_struct("Policies").field("loaded", &self.loaded()).finish_non_exhaustive()
    }
}

/// What a configuration changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// The policies that are set differently than before, in order: lower case, with `_`.
    pub names: Vec<String>,
}

impl Changes {
    /// Whether nothing is set differently.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.as_slice() {
            [] => f.write_str("no policy changed"),
            names => write!(f, "changed: {}", names.join(", ")),
        }
    }
}
