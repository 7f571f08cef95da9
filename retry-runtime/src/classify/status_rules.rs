//! Deciding by an HTTP-like status and the text that came with it.

use crate::verdict::{Disposition, Verdict};

/// A table that decides by status and message, built in a `const`.
///
/// The first rule that fits decides:
/// 1. a permanent status,
/// 2. a permanent word in the message,
/// 3. a gone status, then a gone word (after the permanent words: a gone job leaves no dead letter, so what contradicts it
///    wins),
/// 4. a retryable status,
/// 5. a retryable word in the message,
/// 6. unknown.
///
/// Among the statuses a list beats a range, so a range says what the rest of a hundred is. Words are found anywhere in the
/// message, whatever the case of their letters A to Z.
///
/// ```
/// use retry_runtime::{Disposition, StatusRules};
///
/// const RULES: StatusRules = StatusRules::new()
///     .permanent(&[400, 403, 404, 422])
///     .permanent_words(&["INVALID_ARGUMENT", "FAILED_PRECONDITION", "SAFETY", "BLOCKED"])
///     .retryable(&[429, 500, 502, 503, 504])
///     .retryable_words(&["DEADLINE_EXCEEDED", "UNAVAILABLE"]);
///
/// let verdict = RULES.verdict(Some(503), "blocked for Safety");
/// assert_eq!((verdict.disposition, verdict.class, verdict.code), (Disposition::Permanent, "safety", Some(503)));
/// assert_eq!(RULES.verdict(Some(418), "unavailable").disposition, Disposition::Retryable);
/// assert_eq!(RULES.verdict(Some(418), "teapot").disposition, Disposition::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a table does nothing by itself"]
pub struct StatusRules {
    permanent: Rule,
    gone: Rule,
    retryable: Rule,
    unknown: &'static [i64],
    outcome_unknown: &'static [i64],
}

/// What leads to one disposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    statuses: &'static [i64],
    range: Option<(i64, i64)>,
    words: &'static [&'static str],
}

impl Rule {
    const NONE: Self = Self { statuses: &[], range: None, words: &[] };

    const fn covers(&self, status: i64) -> bool {
        match self.range {
            Some((first, last)) => first <= status && status <= last,
            None => false,
        }
    }
}

impl StatusRules {
    /// What a careful HTTP client does. The message is not asked.
    ///
    /// | status | verdict | why |
    /// |---|---|---|
    /// | 408, 425, 429 | retryable | the server asks for another try: too slow, too early, too often |
    /// | 421, 423 | retryable | another connection, or a lock released, may do |
    /// | 500, 502, 503, 504 | retryable | a fault or an overload of the server or of a gateway |
    /// | 520 to 525, 527, 529, 530, 598, 599 and every other 5xx | retryable | faults of proxies; an unknown 5xx counts as a 500 (RFC 9110, 15) |
    /// | 501, 505, 506, 507, 508, 510, 511, 526 | permanent | a missing ability, a wrong setting, a log-in page: the same again |
    /// | 404, 410 | gone | a final answer: there is nothing |
    /// | 409 | unknown | a lock time-out with some servers, a real conflict with others |
    /// | 400, 401, 402, 403, 405, 407, 422, 451 and every other 4xx | permanent | the request is at fault; an unknown 4xx counts as a 400 |
    /// | 1xx, 2xx, 3xx, all else, none | unknown | no failure that HTTP knows |
    ///
    /// After 502, 504, 520, 522, 524, 598 and 599 the work may have been done all the same
    /// ([`outcome_unknown`](Verdict::outcome_unknown)): a gateway lost the answer, not the request.
    pub const HTTP: Self = Self::new()
        .permanent(&[501, 505, 506, 507, 508, 510, 511, 526])
        .permanent_range(400, 499)
        .gone(&[404, 410])
        .retryable(&[408, 421, 423, 425, 429])
        .retryable_range(500, 599)
        .unknown(&[409])
        .outcome_unknown(&[502, 504, 520, 522, 524, 598, 599]);

    /// An empty table: everything is unknown.
    pub const fn new() -> Self {
        Self { permanent: Rule::NONE, gone: Rule::NONE, retryable: Rule::NONE, unknown: &[], outcome_unknown: &[] }
    }

    /// Statuses that will come again.
    pub const fn permanent(mut self, statuses: &'static [i64]) -> Self {
        self.permanent.statuses = statuses;
        self
    }

    /// Statuses from `first` to `last` that no list names: permanent.
    pub const fn permanent_range(mut self, first: i64, last: i64) -> Self {
        self.permanent.range = Some((first, last));
        self
    }

    /// Words in the message that make a failure permanent. Empty words are ignored.
    pub const fn permanent_words(mut self, words: &'static [&'static str]) -> Self {
        self.permanent.words = words;
        self
    }

    /// Statuses that are a final answer: no retry, no fallback, no dead letter.
    pub const fn gone(mut self, statuses: &'static [i64]) -> Self {
        self.gone.statuses = statuses;
        self
    }

    /// Words in the message that make a failure a final answer.
    pub const fn gone_words(mut self, words: &'static [&'static str]) -> Self {
        self.gone.words = words;
        self
    }

    /// Statuses worth another try.
    pub const fn retryable(mut self, statuses: &'static [i64]) -> Self {
        self.retryable.statuses = statuses;
        self
    }

    /// Statuses from `first` to `last` that no list names: retryable.
    pub const fn retryable_range(mut self, first: i64, last: i64) -> Self {
        self.retryable.range = Some((first, last));
        self
    }

    /// Words in the message that make a failure worth another try.
    pub const fn retryable_words(mut self, words: &'static [&'static str]) -> Self {
        self.retryable.words = words;
        self
    }

    /// Statuses that stay unknown, against the ranges. Words still decide about them.
    pub const fn unknown(mut self, statuses: &'static [i64]) -> Self {
        self.unknown = statuses;
        self
    }

    /// Statuses after which the work may have been done all the same.
    pub const fn outcome_unknown(mut self, statuses: &'static [i64]) -> Self {
        self.outcome_unknown = statuses;
        self
    }

    /// Decides about a failure. `status` becomes the verdict's code.
    ///
    /// The class is that of the word that decided (`safety`, `unavailable`; `DEADLINE_EXCEEDED` is `timeout`,
    /// `RESOURCE_EXHAUSTED` is `rate_limit`; a word unknown here is its own class, as written in the table), else that of the
    /// status ([`status_class`](Self::status_class)), else `unknown`. Nothing is allocated.
    pub const fn verdict(&self, status: Option<i64>, message: &str) -> Verdict {
        let by_status = match status {
            Some(status) => self.by_status(status),
            None => None,
        };
        let message = message.as_bytes();
        let (disposition, word) = if let Some(Disposition::Permanent) = by_status {
            (Disposition::Permanent, None)
        } else if let Some(word) = find_word(self.permanent.words, message) {
            (Disposition::Permanent, Some(word))
        } else if let Some(Disposition::Gone) = by_status {
            (Disposition::Gone, None)
        } else if let Some(word) = find_word(self.gone.words, message) {
            (Disposition::Gone, Some(word))
        } else if let Some(Disposition::Retryable) = by_status {
            (Disposition::Retryable, None)
        } else if let Some(word) = find_word(self.retryable.words, message) {
            (Disposition::Retryable, Some(word))
        } else {
            (Disposition::Unknown, None)
        };
        let class = match (word, status) {
            (Some(word), _) => word_class(word),
            (None, Some(status)) => Self::status_class(status),
            (None, None) => "unknown",
        };
        let mut verdict = Verdict::new(disposition, class);
        verdict.code = status;
        if let Some(status) = status {
            verdict.outcome_unknown = contains(self.outcome_unknown, status);
        }
        verdict
    }

    const fn by_status(&self, status: i64) -> Option<Disposition> {
        if contains(self.permanent.statuses, status) {
            Some(Disposition::Permanent)
        } else if contains(self.gone.statuses, status) {
            Some(Disposition::Gone)
        } else if contains(self.retryable.statuses, status) {
            Some(Disposition::Retryable)
        } else if contains(self.unknown, status) {
            None
        } else if self.permanent.covers(status) {
            Some(Disposition::Permanent)
        } else if self.retryable.covers(status) {
            Some(Disposition::Retryable)
        } else {
            None
        }
    }

    /// Names every class that these rules give for some status or word, not each only once.
    pub(crate) fn classes(&self, name: &mut dyn FnMut(&'static str)) {
        for status in 0..=999 {
            name(self.verdict(Some(status), "").class);
        }
        name(self.verdict(None, "").class);
        for word in [self.permanent.words, self.gone.words, self.retryable.words].into_iter().flatten() {
            name(word_class(word));
        }
    }

    /// The failure class of an HTTP status: `rate_limit` for 429, `timeout` for 408 and 504, `unavailable` for 503, ... A
    /// fixed set of names, so that metric labels stay bounded. Any status that is no HTTP failure is `unexpected_status`.
    pub const fn status_class(status: i64) -> &'static str {
        match status {
            401 | 407 => "unauthorized",
            402 => "payment_required",
            403 => "forbidden",
            404 => "not_found",
            408 | 504 | 522 | 524 | 598 | 599 => "timeout",
            409 => "conflict",
            410 => "gone",
            412 | 428 => "precondition_failed",
            413 | 414 | 431 => "too_large",
            421 => "misdirected",
            423 => "locked",
            425 => "too_early",
            429 => "rate_limit",
            451 => "legal_reasons",
            400..=499 => "invalid_request",
            501 | 505 | 506 | 510 => "not_supported",
            502 | 520 | 521 | 523 | 525 | 526 | 527 | 530 => "bad_gateway",
            503 | 529 => "unavailable",
            507 => "insufficient_storage",
            511 => "network_login_required",
            500..=599 => "server_error",
            _ => "unexpected_status",
        }
    }
}

impl Default for StatusRules {
    /// [`StatusRules::HTTP`].
    fn default() -> Self {
        Self::HTTP
    }
}

/// Words that services put into their messages, and the classes they stand for.
const WORD_CLASSES: &[(&str, &str)] = &[
    ("ABORTED", "conflict"),
    ("ALREADY_EXISTS", "conflict"),
    ("BLOCKED", "blocked"),
    ("CANCELLED", "cancelled"),
    ("DATA_LOSS", "data_loss"),
    ("DEADLINE_EXCEEDED", "timeout"),
    ("FAILED_PRECONDITION", "precondition_failed"),
    ("INTERNAL", "server_error"),
    ("INVALID_ARGUMENT", "invalid_request"),
    ("NOT_FOUND", "not_found"),
    ("OUT_OF_RANGE", "invalid_request"),
    ("OVERLOADED", "unavailable"),
    ("PERMISSION_DENIED", "forbidden"),
    ("RATE_LIMIT", "rate_limit"),
    ("RESOURCE_EXHAUSTED", "rate_limit"),
    ("SAFETY", "safety"),
    ("TIMEOUT", "timeout"),
    ("UNAUTHENTICATED", "unauthorized"),
    ("UNAVAILABLE", "unavailable"),
    ("UNIMPLEMENTED", "not_supported"),
];

const fn word_class(word: &'static str) -> &'static str {
    let mut classes = WORD_CLASSES;
    while let [(known, class), rest @ ..] = classes {
        if known.len() == word.len() && starts_with_ignoring_case(known.as_bytes(), word.as_bytes()) {
            return class;
        }
        classes = rest;
    }
    word
}

const fn contains(mut statuses: &[i64], status: i64) -> bool {
    while let [first, rest @ ..] = statuses {
        if *first == status {
            return true;
        }
        statuses = rest;
    }
    false
}

/// The first of `words` that stands anywhere in `message`.
const fn find_word(mut words: &'static [&'static str], message: &[u8]) -> Option<&'static str> {
    while let [word, more @ ..] = words {
        let mut rest = message;
        while rest.len() >= word.len() && !word.is_empty() {
            if starts_with_ignoring_case(rest, word.as_bytes()) {
                return Some(word);
            }
            let [_, tail @ ..] = rest else { break };
            rest = tail;
        }
        words = more;
    }
    None
}

const fn starts_with_ignoring_case(mut text: &[u8], mut start: &[u8]) -> bool {
    while let [wanted, start_rest @ ..] = start {
        let [got, text_rest @ ..] = text else { return false };
        if !got.eq_ignore_ascii_case(wanted) {
            return false;
        }
        (text, start) = (text_rest, start_rest);
    }
    true
}
