//! A configuration that is in force.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::observe::Notice;
use crate::policy::Policy;

use super::error::Mistake;
use super::keys::{NAME_FORM, Section, canonical, is_name};
use super::near::hint;
use super::{ConfigError, NamedPolicy, sources::Content};

/// A configuration that is in force. It never changes; a reload puts another in its place.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    policies: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    section: Section,
    /// The code's own policy, as the first who asked gave it.
    default: OnceLock<Policy>,
    /// The policies of the code that this contradicts, as far as they were told of.
    told: Mutex<Vec<Policy>>,
}

/// As many policies of one name are told of.
const TOLD: usize = 16;

impl Entry {
    /// Whether this policy of the code was not told of yet.
    fn complains_of(&self, default: &Policy) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = told.len() < TOLD && !told.contains(default);
        if is_new {
            told.push(*default);
        }
        is_new
    }
}

impl Loaded {
    /// Reads a configuration. The code's own policies are those of `names`, where they are known beforehand, else those
    /// that were given since the configuration `before`.
    pub(super) fn read(
        content: &Content,
        names: Option<&[&NamedPolicy<'static>]>,
        before: &Self,
    ) -> Result<Self, ConfigError> {
        let mut mistakes = Vec::new();
        let sections = content.sections(&mut mistakes);
        let mut policies = BTreeMap::new();
        for (name, section) in sections {
            let declared = names.and_then(|names| names.iter().find(|known| canonical(known.name()) == name));
            let asked = before.policies.get(&name).and_then(|entry| entry.default.get());
            let default = declared.map(|known| known.default()).or(asked);
            if let (Some(names), None) = (names, declared) {
                mistakes.extend(unknown(&name, &section, names));
            } else {
                mistakes.extend(section.contradiction(&name, default));
            }
            let entry = Entry { section, default: OnceLock::new(), told: Mutex::default() };
            if let Some(default) = default {
                let _first = entry.default.set(*default);
            }
            policies.insert(name, entry);
        }
        mistakes.sort_by_key(|mistake| (content.position(&mistake.place), mistake.line));
        match ConfigError::of(mistakes) {
            None => Ok(Self { policies }),
            Some(error) => Err(error),
        }
    }

    /// The policy of a name; `None` where nothing is configured for it.
    pub(super) fn find(&self, name: &str, default: &Policy) -> Option<Policy> {
        if self.policies.is_empty() {
            return None;
        }
        let name = canonical(name);
        let entry = self.policies.get(&*name)?;
        entry.default.get_or_init(|| *default);
        let policy = entry.section.over(default);
        if policy.validate().is_ok() {
            return Some(policy);
        }
        // The code's policy was not known when this was loaded, and they contradict each other; or it contradicts itself,
        // and the configured keys hold beside it.
        let Some(mistake) = entry.section.contradiction(&name, Some(default)) else { return Some(policy) };
        if entry.complains_of(default) {
            let message = format!("{mistake}; the policy of the code stays in force");
            Notice::error("config_rejected", name, message).say();
        }
        Some(*default)
    }

    /// The names that nobody asked for.
    pub(super) fn unused(&self) -> Vec<String> {
        let unused = self.policies.iter().filter(|(_, entry)| entry.default.get().is_none());
        unused.map(|(name, _)| name.clone()).collect()
    }

    /// The policies that another configuration sets differently.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let limits = |loaded: &Self, name: &str| loaded.policies.get(name).map(|entry| entry.section.limits());
        let mut names: Vec<&String> = self.policies.keys().chain(other.policies.keys()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter(|name| limits(self, name) != limits(other, name)).cloned().collect()
    }
}

/// A policy that the program has not.
fn unknown(name: &str, section: &Section, names: &[&NamedPolicy<'static>]) -> Option<Mistake> {
    let known: Vec<&str> = names.iter().map(|known| known.name()).collect();
    let near = hint(name, &known);
    let message = match known.as_slice() {
        [] => "no such policy: this program has none".to_owned(),
        known => format!("no such policy{near}; the policies are {}", known.join(", ")),
    };
    section.mistake(name, message)
}

/// Why nothing can be configured for a name.
pub(super) fn refusal(name: &str, names: Option<&[&NamedPolicy<'static>]>) -> Option<String> {
    if !is_name(name) {
        return Some(format!("nothing can be configured for this policy: {NAME_FORM}"));
    }
    let names = names?;
    let wanted = canonical(name);
    (!names.iter().any(|known| canonical(known.name()) == wanted))
        .then(|| "the policy is not among those of `Policies::of`, so nothing can be configured for it".to_owned())
}
