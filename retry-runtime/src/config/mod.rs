//! Named policies from files and from the environment (feature `config`), and their reload while the program runs.
//!
//! A function names its policy; an operator changes its numbers:
//!
//! ```
//! use std::time::Duration;
//! use retry_runtime::Policy;
//! use retry_runtime::config::{NamedPolicy, Policies, Sources};
//!
//! static POLICIES: Policies = Policies::of(&[&GEMINI]);
//! static GEMINI: NamedPolicy = NamedPolicy::new(&POLICIES, "gemini", Policy::new().base_delay(Duration::from_secs(2)));
//!
//! // #[retry(policy = GEMINI)]
//! // async fn generate(prompt: &str) -> Result<String, GeminiError> { .. }
//!
//! # fn main() -> Result<(), retry_runtime::config::ConfigError> {
//! let sources = Sources::new().text("retry.toml", r#"
//! [policy.gemini]
//! max_retries = 4
//! jitter = "full"
//! "#);
//! POLICIES.load(sources.variables([("RETRY_POLICY_GEMINI_MAX_RETRIES", "6")]))?;
//!
//! let policy = GEMINI.get();
//! assert_eq!(policy.retries().attempts(), Some(7)); // the environment comes after the files
//! assert_eq!(policy.get_base_delay(), Duration::from_secs(2)); // what nobody sets is the code's own
//! # Ok(())
//! # }
//! ```
//!
//! # Files
//!
//! Each table `[policy.NAME]` holds count and wait keys of `#[retry]`, written the same way:
//!
//! | key | value |
//! |---|---|
//! | `max_retries` | a whole number, or `"forever"` (give the function a deadline or a budget then) |
//! | `base_delay`, `max_delay`, `max_retry_after` | a duration: `"250ms"`, `"1.5s"`, `"2m"`, `"1h30m"`; units ns us ms s m h d |
//! | `backoff` | `"exponential"`, `"exponential(1.5)"`, `"fixed"`, `"linear"`, `"fibonacci"` |
//! | `jitter` | `"none"`, `"full"`, `"equal"`, `"decorrelated"`, or a duration to add uniformly |
//!
//! A key that is not given is that of the policy in the code. Deadlines, time limits of attempts and the numbers of one
//! class belong to the function and are no keys here.
//!
//! # Names, and the environment
//!
//! A name consists of letters, digits, `-` and `_`, and begins with a letter. Letter case does not count, nor whether it is
//! written with `-` or `_`: `gemini-pro`, `gemini_pro` and `GEMINI_PRO` are one policy. The variable of a key is
//! `RETRY_POLICY_<NAME>_<KEY>`, all of it in upper case with `_`: `RETRY_POLICY_GEMINI_PRO_MAX_RETRIES=6`. Values are those
//! of the file without quotes. Later files come over earlier ones, the environment over all of them, key by key.
//!
//! # Mistakes
//!
//! An unknown key, policy or variable, a value that cannot be read, and settings that contradict each other are one
//! [`ConfigError`]: it names every mistake with its file and line, or its variable, and what is accepted. Nothing of a
//! configuration with a mistake is used: what was in force stays, at [`Policies::reload`] with a notice `config_rejected`.
//!
//! A policy that contradicts itself in the code already, such as a `base_delay` above its `max_delay`, is no mistake of the
//! configuration: the keys that are given hold, and waits are cut to `max_delay` as they are without a configuration.
//!
//! # No retries at all
//!
//! A configured `max_retries = 0` is an operator's last word on a policy: calls with it make one attempt, also after failures
//! of a class that has a number of its own in the code, and no other setting of the policy contradicts it. So
//! `RETRY_POLICY_GEMINI_MAX_RETRIES=0` always works. (A `max_retries = 0` in the code leaves classes their own numbers.)
//!
//! `RETRY_DISABLED=1` makes one attempt of every loop, also without this feature: see [`Policy`](crate::Policy).

mod error;
mod keys;
mod loaded;
mod named;
mod near;
mod policies;
mod sources;
mod toml_text;
mod values;
mod variables;

pub use error::{ConfigError, Mistake};
pub use named::NamedPolicy;
pub use policies::{Changes, Policies};
pub use sources::Sources;
