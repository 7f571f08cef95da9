//! The words of `#[classify(..)]`: one table that drives parsing, errors and help.

/// Every word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Retryable,
    Permanent,
    Gone,
    Unknown,
    Class,
    Transparent,
    Status,
    Message,
    Rules,
    RetryAfter,
    OutcomeUnknown,
    With,
    Default,
    Crate,
}

/// Where an attribute stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Enum,
    Struct,
    Variant,
    Field,
}

/// What stands behind a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Nothing.
    Bare,
    /// `= "text"`.
    Text,
    /// `= field` on a variant or struct, nothing on a field.
    Field,
    /// As `Field`, or nothing where there is only one field.
    FieldOrOnly,
    /// `= path`.
    Path,
    /// `= disposition`.
    Disposition,
    /// `= ::path`.
    Crate,
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) word: Word,
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) places: &'static [Place],
    /// How it is written on a variant, a struct or an enum.
    pub(super) example: &'static str,
}

const CASE: &[Place] = &[Place::Variant, Place::Struct];
const CASE_OR_FIELD: &[Place] = &[Place::Variant, Place::Struct, Place::Field];
const ENUM: &[Place] = &[Place::Enum];
const TYPE: &[Place] = &[Place::Enum, Place::Struct];

const fn entry(word: Word, name: &'static str, form: Form, places: &'static [Place], example: &'static str) -> Entry {
    Entry { word, name, form, places, example }
}

/// All words, in the order in which help lists them.
pub(super) static TABLE: &[Entry] = &[
    entry(Word::Retryable, "retryable", Form::Bare, CASE, "retryable"),
    entry(Word::Permanent, "permanent", Form::Bare, CASE, "permanent"),
    entry(Word::Gone, "gone", Form::Bare, CASE, "gone"),
    entry(Word::Unknown, "unknown", Form::Bare, CASE, "unknown"),
    entry(Word::Transparent, "transparent", Form::FieldOrOnly, CASE_OR_FIELD, "transparent = field"),
    entry(Word::Status, "status", Form::Field, CASE_OR_FIELD, "status = field"),
    entry(Word::Message, "message", Form::Field, CASE_OR_FIELD, "message = field"),
    entry(Word::With, "with", Form::Path, CASE, "with = path::to::function"),
    entry(Word::Class, "class", Form::Text, CASE, "class = \"rate_limit\""),
    entry(Word::RetryAfter, "retry_after", Form::Field, CASE_OR_FIELD, "retry_after = field"),
    entry(Word::OutcomeUnknown, "outcome_unknown", Form::Bare, CASE, "outcome_unknown"),
    entry(Word::Rules, "rules", Form::Path, CASE, "rules = PATH"),
    entry(Word::Default, "default", Form::Disposition, ENUM, "default = permanent"),
    entry(Word::Crate, "crate", Form::Crate, TYPE, "crate = ::retry_runtime"),
];

/// The four disposition words, and the variant of `Disposition` each stands for.
pub(super) static DISPOSITIONS: &[(Word, &str, &str)] = &[
    (Word::Retryable, "retryable", "Retryable"),
    (Word::Permanent, "permanent", "Permanent"),
    (Word::Gone, "gone", "Gone"),
    (Word::Unknown, "unknown", "Unknown"),
];

/// What people write for our words, and typing errors do not explain.
static SYNONYMS: &[(&str, &str)] = &[
    ("transient", "retryable"),
    ("temporary", "retryable"),
    ("retry", "retryable"),
    ("fatal", "permanent"),
    ("never", "permanent"),
    ("stop", "permanent"),
    ("no_retry", "permanent"),
    ("not_retryable", "permanent"),
    ("non_retryable", "permanent"),
    ("not_found", "gone"),
    ("name", "class"),
    ("kind", "class"),
    ("source", "transparent"),
    ("from", "transparent"),
    ("inner", "transparent"),
    ("forward", "transparent"),
    ("delegate", "transparent"),
    ("code", "status"),
    ("status_code", "status"),
    ("text", "message"),
    ("body", "message"),
    ("after", "retry_after"),
    ("delay", "retry_after"),
    ("function", "with"),
    ("by", "with"),
    ("krate", "crate"),
];

impl Word {
    /// Whether the word alone says what to do.
    pub(super) fn is_disposition(self) -> bool {
        DISPOSITIONS.iter().any(|(word, ..)| *word == self)
    }
}

impl Place {
    /// The place as a phrase.
    pub(super) const fn phrase(self) -> &'static str {
        match self {
            Self::Enum => "an enum",
            Self::Struct => "a struct",
            Self::Variant => "a variant",
            Self::Field => "a field",
        }
    }

    /// An attribute that is right here.
    pub(super) const fn example(self) -> &'static str {
        match self {
            Self::Enum => "#[classify(default = permanent)]",
            Self::Struct | Self::Variant => "#[classify(retryable)]",
            Self::Field => "#[classify(status)]",
        }
    }

    /// The words that may stand here.
    pub(super) fn words(self) -> Vec<&'static str> {
        TABLE.iter().filter(|entry| entry.places.contains(&self)).map(|entry| entry.name).collect()
    }
}

impl Entry {
    /// The entry of a word as typed.
    pub(super) fn of(typed: &str) -> Option<&'static Self> {
        TABLE.iter().find(|entry| entry.name == typed)
    }

    /// Where the word belongs, as a phrase.
    pub(super) fn belongs(&self) -> &'static str {
        match (self.places.contains(&Place::Enum), self.places.contains(&Place::Struct)) {
            (true, true) => "the enum or struct",
            (true, false) => "the enum",
            (false, _) => "a variant or a struct",
        }
    }
}

/// The word that an unknown one was most likely meant to be.
pub(super) fn meant(typed: &str, place: Place) -> Option<&'static str> {
    let lower = typed.to_lowercase();
    let synonym = SYNONYMS.iter().find(|(wrong, _)| *wrong == lower).map(|(_, right)| *right);
    let here = place.words();
    synonym
        .filter(|right| here.contains(right))
        .or_else(|| crate::names::nearest(typed, &here))
        .or_else(|| crate::names::nearest(typed, &TABLE.iter().map(|entry| entry.name).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stands_in_the_table_once_and_somewhere() {
        for entry in TABLE {
            assert_eq!(TABLE.iter().filter(|other| other.name == entry.name || other.word == entry.word).count(), 1);
            assert!(!entry.places.is_empty(), "{}", entry.name);
            assert!(entry.example.starts_with(entry.name), "{}", entry.name);
        }
        for (word, name, _) in DISPOSITIONS {
            assert_eq!(Entry::of(name).map(|entry| entry.word), Some(*word));
        }
    }

    #[test]
    fn synonyms_lead_to_real_words_and_are_none_themselves() {
        for (wrong, right) in SYNONYMS {
            assert!(Entry::of(right).is_some(), "{right}");
            assert!(Entry::of(wrong).is_none(), "{wrong}");
        }
        assert_eq!(meant("transient", Place::Variant), Some("retryable"));
        assert_eq!(meant("code", Place::Field), Some("status"));
        assert_eq!(meant("zzzzzz", Place::Variant), None);
    }
}
