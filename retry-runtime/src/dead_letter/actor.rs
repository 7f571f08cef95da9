//! Who changes something by hand.

/// Who changes something, and why. Written down with the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// A person, or a program.
    pub name: String,
    /// Why; may be empty.
    pub reason: String,
}

impl Actor {
    /// An actor with a reason.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }
}
