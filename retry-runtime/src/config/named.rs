//! A policy by its name.

use crate::policy::Policy;

use super::Policies;

/// A policy by its name: the code's own, until a configuration says otherwise.
///
/// Made to be a `static` beside the [`Policies`] that it belongs to, and used as `#[retry(policy = NAME)]`, or as
/// `Retry::new(&NAME)`. It is asked when an attempt has failed and not before, so that a first-try success pays nothing
/// for it, and a reload holds for calls that are under way from their next failure on.
///
/// ```
/// use retry_runtime::config::{NamedPolicy, Policies, Sources};
/// use retry_runtime::{Classify, Policy, retry};
///
/// static POLICIES: Policies = Policies::of(&[&GEMINI]);
/// static GEMINI: NamedPolicy = NamedPolicy::new(&POLICIES, "gemini", Policy::new());
///
/// #[derive(Debug, Classify)]
/// #[classify(retryable)]
/// struct Busy;
///
/// #[retry(policy = GEMINI)]
/// fn generate(calls: &mut u32) -> Result<(), Busy> {
///     *calls += 1;
///     Err(Busy)
/// }
///
/// # fn main() -> Result<(), retry_runtime::config::ConfigError> {
/// POLICIES.load(Sources::new().variables([("RETRY_POLICY_GEMINI_MAX_RETRIES", "0")]))?;
/// let mut calls = 0;
/// let _failed = generate(&mut calls);
/// assert_eq!(calls, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NamedPolicy<'p> {
    policies: &'p Policies,
    name: &'p str,
    default: Policy,
}

impl<'p> NamedPolicy<'p> {
    /// The policy of this name, and what it is where nothing is configured. The name of a policy that stands in
    /// [`Policies::of`] is checked with it.
    pub const fn new(policies: &'p Policies, name: &'p str, default: Policy) -> Self {
        Self { policies, name, default }
    }

    /// What it is now.
    pub fn get(&self) -> Policy {
        self.policies.get_or(self.name, &self.default)
    }

    /// Its name.
    pub const fn name(&self) -> &str {
        self.name
    }

    /// What it is where nothing is configured.
    pub const fn default(&self) -> &Policy {
        &self.default
    }
}
