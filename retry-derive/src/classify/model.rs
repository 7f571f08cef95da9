//! What the derive knows about its input once everything is understood. It points into the user's own syntax.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{DeriveInput, ExprPath, Member, Path, Type};

use super::table::Word;
use super::tokens::repeated;

/// A whole derive.
pub(super) struct Model<'a> {
    pub(super) input: &'a DeriveInput,
    /// The runtime's path.
    pub(super) krate: TokenStream,
    pub(super) cases: Vec<Case<'a>>,
}

/// A variant, or the struct.
pub(super) struct Case<'a> {
    /// The variant's name; `None` for a struct.
    pub(super) variant: Option<&'a Ident>,
    pub(super) answer: Answer<'a>,
}

/// How a case is decided.
pub(super) enum Answer<'a> {
    /// By a disposition word, or the enum's default.
    Fixed { word: Word, class: String, details: Details<'a> },
    /// By a status, a message, or both.
    Rules {
        status: Option<Asked<'a>>,
        message: Option<Asked<'a>>,
        rules: Option<ExprPath>,
        /// The class where the rules know none.
        name: String,
        /// The class whatever the rules say.
        class: Option<String>,
        details: Details<'a>,
    },
    /// By the value inside.
    Transparent(Asked<'a>),
    /// By a function of the user's.
    With(ExprPath),
}

/// What may be added to a decision.
#[derive(Default)]
pub(super) struct Details<'a> {
    pub(super) retry_after: Option<Asked<'a>>,
    pub(super) outcome_unknown: bool,
}

/// A field that is read.
pub(super) struct Asked<'a> {
    pub(super) member: Member,
    pub(super) ty: &'a Type,
}

/// What generated code asks of a field's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Transparent,
    Status,
    Message,
    RetryAfter,
}

impl Role {
    /// The trait that a field's type must have.
    pub(super) fn asks(self, krate: &TokenStream) -> TokenStream {
        match self {
            Self::Transparent => quote!(#krate::Classify),
            Self::Status => quote!(#krate::classify::StatusField),
            Self::Message => quote!(#krate::classify::MessageField),
            Self::RetryAfter => quote!(#krate::classify::RetryAfterField),
        }
    }

    /// That trait's method.
    pub(super) fn method(self) -> TokenStream {
        match self {
            Self::Transparent => quote!(classify),
            Self::Status => quote!(status),
            Self::Message => quote!(message),
            Self::RetryAfter => quote!(retry_after),
        }
    }
}

impl<'a> Case<'a> {
    /// The fields that are read, and for what.
    pub(super) fn asked(&self) -> Vec<(Role, &Asked<'a>)> {
        let (status, message, inner, details) = match &self.answer {
            Answer::Fixed { details, .. } => (None, None, None, Some(details)),
            Answer::Rules { status, message, details, .. } => (status.as_ref(), message.as_ref(), None, Some(details)),
            Answer::Transparent(inner) => (None, None, Some(inner), None),
            Answer::With(_) => (None, None, None, None),
        };
        let retry_after = details.and_then(|details| details.retry_after.as_ref());
        [(Role::Transparent, inner), (Role::Status, status), (Role::Message, message), (Role::RetryAfter, retry_after)]
            .into_iter()
            .filter_map(|(role, asked)| asked.map(|asked| (role, asked)))
            .collect()
    }
}

/// The runtime's path, given or not.
pub(super) fn krate(given: Option<&Path>) -> TokenStream {
    given.map_or_else(|| quote!(::retry_runtime), |path| repeated(path.to_token_stream()))
}
