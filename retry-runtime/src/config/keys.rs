//! The keys of a policy, and what one table or the environment sets of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::jitter::Jitter;
use crate::policy::{ClassLimits, Policy, PolicyError, Retries};

use super::error::{Mistake, Place};
use super::near::hint;
use super::values::{self, Written};

/// A key of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    MaxRetries,
    BaseDelay,
    MaxDelay,
    Backoff,
    Jitter,
    MaxRetryAfter,
}

impl Key {
    pub(super) const ALL: [Self; 6] =
        [Self::MaxRetries, Self::BaseDelay, Self::MaxDelay, Self::Backoff, Self::Jitter, Self::MaxRetryAfter];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MaxRetries => "max_retries",
            Self::BaseDelay => "base_delay",
            Self::MaxDelay => "max_delay",
            Self::Backoff => "backoff",
            Self::Jitter => "jitter",
            Self::MaxRetryAfter => "max_retry_after",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// `max_retries, base_delay, ..`
    pub(super) fn all_names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Why a name is no key.
    pub(super) fn refusal(name: &str) -> String {
        match name {
            "deadline" | "attempt_timeout" | "budget" | "breaker" | "unknown" | "idempotent" | "nested" => {
                format!(
                    "`{name}` belongs to the function and is no key of a policy; the keys are {}",
                    Self::all_names()
                )
            }
            "class" => format!(
                "the numbers of one class stand at the function, in `class(NAME, ..)`; the keys of a policy are {}",
                Self::all_names()
            ),
            _ => format!("no such key{}; the keys are {}", hint(name, &Self::ALL.map(Self::name)), Self::all_names()),
        }
    }

    fn set(self, limits: ClassLimits, written: Written<'_>) -> Result<ClassLimits, String> {
        Ok(match self {
            Self::MaxRetries => match values::count(written)? {
                Retries::Limited(retries) => limits.max_retries(retries),
                Retries::Forever => limits.forever(),
            },
            Self::BaseDelay => limits.base_delay(values::duration(written)?),
            Self::MaxDelay => limits.max_delay(values::duration(written)?),
            Self::Backoff => limits.backoff(values::backoff(written)?),
            Self::Jitter => limits.jitter(values::jitter(written)?),
            Self::MaxRetryAfter => limits.max_retry_after(values::duration(written)?),
        })
    }

    /// The keys whose values contradict each other.
    const fn of_rule(error: &PolicyError) -> &'static [Self] {
        match error {
            PolicyError::MaxDelayBelowBase { .. } => &[Self::BaseDelay, Self::MaxDelay],
            PolicyError::FactorNotFinite { .. } | PolicyError::FactorBelowOne { .. } => &[Self::Backoff],
            PolicyError::ForeverWithoutDelay => &[Self::MaxRetries, Self::BaseDelay],
            PolicyError::JitterAboveMaxDelay { .. } => &[Self::Jitter, Self::MaxDelay],
            _ => &[],
        }
    }
}

/// What is set of one policy, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Section {
    limits: ClassLimits,
    /// Where it was named first.
    named: Option<Place>,
    places: BTreeMap<Key, Place>,
}

impl Section {
    /// It is named here.
    pub(super) fn name(&mut self, place: Place) {
        self.named.get_or_insert(place);
    }

    /// Sets a key over what was set before.
    pub(super) fn set(&mut self, key: Key, written: Written<'_>, place: Place) -> Result<(), String> {
        self.limits = key.set(self.limits, written)?;
        self.places.insert(key, place);
        Ok(())
    }

    /// The policy, where `default` is the code's. A configured `max_retries = 0` is the operator's last word.
    pub(super) const fn over(&self, default: &Policy) -> Policy {
        let policy = self.limits.over(default);
        if self.is_off() { policy.switched_off() } else { policy }
    }

    const fn is_off(&self) -> bool {
        matches!(self.limits.retries(), Some(Retries::Limited(0)))
    }

    /// A mistake in the policy as a whole.
    pub(super) fn mistake(&self, name: &str, message: String) -> Option<Mistake> {
        self.named.as_ref().map(|place| place.mistake(format!("policy.{name}"), "", message))
    }

    pub(super) const fn limits(&self) -> ClassLimits {
        self.limits
    }

    /// Settings that contradict each other, where the code's policy is known; without it, those that do whatever it is.
    ///
    /// One of them is configured: what contradicts itself in the code alone does so without a configuration as well, and the
    /// configured keys hold beside it. Where no retry is made there is no wait, and nothing to contradict: an operator can
    /// always say `max_retries = 0`.
    pub(super) fn contradiction(&self, name: &str, default: Option<&Policy>) -> Option<Mistake> {
        if self.is_off() {
            return None;
        }
        let mut policy = self.over(&default.copied().unwrap_or_else(|| self.harmless()));
        loop {
            let error = policy.validate().err()?;
            let involved = Key::of_rule(&error);
            let Some(place) = involved.iter().filter_map(|key| self.places.get(key)).next_back() else {
                policy = without(policy, &error)?;
                continue;
            };
            let from: Vec<String> = involved
                .iter()
                .map(|key| match self.places.get(key) {
                    Some(place) => format!("`{}` at {place}", key.name()),
                    None => format!("`{}` of the code", key.name()),
                })
                .collect();
            return Some(place.mistake(format!("policy.{name}"), "", format!("{error} ({})", from.join(", "))));
        }
    }

    /// The code's policy that contradicts the least.
    fn harmless(&self) -> Policy {
        let longest = self.limits.over(&Policy::new().max_delay(Duration::MAX)).get_max_delay();
        let shortest = longest.min(Duration::from_nanos(1));
        Policy::new().base_delay(shortest).max_delay(Duration::MAX)
    }
}

/// The policy without a contradiction, so that others show; `None` of a rule that is not known here.
fn without(policy: Policy, error: &PolicyError) -> Option<Policy> {
    let least = Duration::from_nanos(1);
    let mended = match error {
        PolicyError::MaxDelayBelowBase { max_delay, .. } => policy.base_delay(*max_delay),
        PolicyError::FactorNotFinite { .. } | PolicyError::FactorBelowOne { .. } => policy.backoff(Backoff::Fixed),
        PolicyError::ForeverWithoutDelay => policy.base_delay(least).max_delay(policy.get_max_delay().max(least)),
        PolicyError::JitterAboveMaxDelay { .. } => policy.jitter(Jitter::None),
        _ => return None,
    };
    (mended != policy).then_some(mended)
}

/// The form in which names are compared: letter case and `-` or `_` make no difference.
pub(super) fn canonical(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte == b'-' || byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase().replace('-', "_"))
    } else {
        Cow::Borrowed(name)
    }
}

pub(super) const NAME_FORM: &str =
    "the name of a policy consists of letters, digits, `-` and `_`, and begins with a letter";

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}
