//! Those who logged in. In memory: a restart logs everybody out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::identity::Identity;
use super::tokens::{digest, random};

/// So long after the last request a session ends.
const IDLE: Duration = Duration::from_secs(8 * 3_600);

/// So many sessions at once; the one that was idle longest goes first.
const MOST: usize = 1_000;

/// Sessions, by the hash of what the cookie has.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], (Identity, Instant)>>);

impl Sessions {
    /// A new session; the text is for the cookie.
    pub(super) fn begin(&self, identity: Identity) -> Result<String, String> {
        let secret = random()?;
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, (_, seen)| seen.elapsed() < IDLE);
        if sessions.len() >= MOST {
            let oldest = sessions.iter().min_by_key(|(_, (_, seen))| *seen).map(|(key, _)| *key);
            oldest.and_then(|key| sessions.remove(&key));
        }
        sessions.insert(digest(&secret), (identity, Instant::now()));
        Ok(secret)
    }

    /// Whose session it is. It lives on from now.
    pub(super) fn find(&self, secret: &str) -> Option<Identity> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, seen) = sessions.get_mut(&digest(secret))?;
        if seen.elapsed() >= IDLE {
            return None;
        }
        *seen = Instant::now();
        Some(identity.clone())
    }

    /// The session is over.
    pub(super) fn end(&self, secret: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest(secret));
    }
}

#[cfg(test)]
mod tests {
    use super::super::identity::Role;
    use super::*;

    #[test]
    fn a_session_is_somebody_s_until_it_ends_and_there_are_not_too_many() {
        let sessions = Sessions::default();
        let first = sessions.begin(Identity::new("ann", Role::Viewer)).unwrap();
        assert_eq!(sessions.find(&first).unwrap().name, "ann");
        assert_eq!(sessions.find("x"), None);
        for _ in 0..MOST {
            sessions.begin(Identity::new("bob", Role::Viewer)).unwrap();
        }
        assert_eq!(sessions.find(&first), None, "the one idle longest has gone");
        let last = sessions.begin(Identity::new("eve", Role::Viewer)).unwrap();
        sessions.end(&last);
        assert_eq!(sessions.find(&last), None);
    }
}
