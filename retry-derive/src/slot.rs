//! A setting that may be given once.

use proc_macro2::Span;
use syn::Ident;

use crate::diag::Diag;

/// A value with the key it was given under; reports its own duplicates.
#[derive(Clone)]
pub(crate) struct Slot<T> {
    given: Option<(Ident, T)>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { given: None }
    }
}

impl<T> Slot<T> {
    /// Takes the value, or reports that there is one.
    pub(crate) fn set(&mut self, diag: &Diag, key: &Ident, value: T) {
        if self.given.is_some() {
            let name = key.to_string();
            diag.error(key, format!("duplicate option `{name}`: it is given more than once"))
                .help(format!("keep one of the two `{name}`"));
            return;
        }
        self.given = Some((key.clone(), value));
    }

    /// This one where it is set, else the other.
    pub(crate) fn or(&self, other: &Self) -> Self
    where
        T: Clone,
    {
        if self.is_set() { self.clone() } else { other.clone() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.given.as_ref().map(|(_, value)| value)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.given.is_some()
    }

    /// Where the key stands.
    pub(crate) fn key(&self) -> Option<&Ident> {
        self.given.as_ref().map(|(key, _)| key)
    }

    pub(crate) fn key_span(&self) -> Span {
        self.key().map_or_else(Span::call_site, Ident::span)
    }
}
