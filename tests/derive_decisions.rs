//! What each word of `#[classify(..)]` decides.
#![allow(dead_code)] // fields that only stand in the way
#![allow(unused_qualifications)] // paths of every form

use std::borrow::Cow;
use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use retry_runtime::{Classify, Disposition, StatusRules, Verdict};

const MINE: StatusRules = StatusRules::new().permanent(&[418]).retryable_words(&["later"]);
static SHARED: StatusRules = MINE;
const REFERENCE: &StatusRules = &SHARED;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[derive(Classify)]
enum Words {
    #[classify(retryable)]
    RateLimit,
    #[classify(permanent, class = "auth")]
    Denied,
    #[classify(gone)]
    HTTPNotFound { url: String },
    #[classify(unknown)]
    r#Type(u8),
    #[classify(retryable, outcome_unknown)]
    Reset,
    #[classify(retryable)]
    #[classify(class = "split")]
    TwoAttributes,
    #[classify(permanent)]
    TrailingComma,
}

#[test]
fn disposition_words_and_classes() {
    assert_eq!(Words::RateLimit.classify(), Verdict::retryable("rate_limit"));
    assert_eq!(Words::Denied.classify(), Verdict::permanent("auth"));
    assert_eq!(Words::HTTPNotFound { url: String::new() }.classify(), Verdict::gone("http_not_found"));
    assert_eq!(Words::r#Type(1).classify(), Verdict::unknown("type"));
    assert_eq!(Words::Reset.classify(), Verdict::retryable("reset").outcome_unknown());
    assert_eq!(Words::TwoAttributes.classify(), Verdict::retryable("split"));
    assert_eq!(Words::TrailingComma.classify(), Verdict::permanent("trailing_comma"));
}

#[derive(Classify)]
#[classify(default = unknown)]
enum Defaulted {
    Nothing,
    #[classify(class = "named")]
    OnlyClass,
    #[classify(outcome_unknown)]
    OnlyDetail(#[classify(retry_after)] u64),
    #[classify(retryable)]
    Own,
}

#[test]
fn a_default_decides_for_variants_that_say_nothing() {
    assert_eq!(Defaulted::Nothing.classify(), Verdict::unknown("nothing"));
    assert_eq!(Defaulted::OnlyClass.classify(), Verdict::unknown("named"));
    let detailed = Verdict::unknown("only_detail").retry_after(seconds(4)).outcome_unknown();
    assert_eq!(Defaulted::OnlyDetail(4).classify(), detailed);
    assert_eq!(Defaulted::Own.classify(), Verdict::retryable("own"));
}

#[derive(Classify)]
#[classify(permanent)]
struct Unit;

#[derive(Classify)]
#[classify(retryable, retry_after = 1)]
struct Tuple(u8, Option<Duration>);

#[derive(Classify)]
#[classify(status = code, message = text, rules = MINE)]
struct Named {
    code: Option<u16>,
    text: String,
}

#[derive(Classify)]
#[classify(class = "api")]
struct OnFields {
    #[classify(status)]
    code: i32,
    #[classify(message)]
    text: Option<Cow<'static, str>>,
    #[classify(retry_after)]
    wait: Option<u32>,
}

#[test]
fn structs_are_one_case() {
    assert_eq!(Unit.classify(), Verdict::permanent("unit"));
    assert_eq!(Tuple(1, None).classify(), Verdict::retryable("tuple"));
    assert_eq!(Tuple(1, Some(seconds(2))).classify(), Verdict::retryable("tuple").retry_after(seconds(2)));
}

#[test]
fn status_and_message_are_judged_by_rules() {
    let judged = |code, text: &str| Named { code, text: text.into() }.classify();
    assert_eq!(judged(Some(418), "later").disposition, Disposition::Permanent);
    assert_eq!(judged(Some(1), "Later!").disposition, Disposition::Retryable);
    assert_eq!(judged(Some(1), "").code, Some(1));
    assert_eq!(judged(Some(503), ""), MINE.verdict(Some(503), ""));
    // neither a status nor a known word: the name says more than `unknown`
    assert_eq!(judged(None, "?"), Verdict::unknown("named"));
}

#[test]
fn rules_are_http_unless_told_otherwise_and_a_class_given_wins() {
    let error = OnFields { code: 503, text: Some("x".into()), wait: Some(9) };
    let wanted = StatusRules::HTTP.verdict(Some(503), "x");
    assert_eq!(wanted.disposition, Disposition::Retryable);
    let verdict = error.classify();
    assert_eq!(verdict, Verdict::retryable("api").code(503).retry_after(seconds(9)));
    let silent = OnFields { code: 404, text: None, wait: None }.classify();
    assert_eq!((silent.code, silent.class, silent.retry_after), (Some(404), "api", None));
}

#[derive(Classify)]
enum RulesEverywhere {
    #[classify(status = 0, rules = SHARED)]
    Static(u16),
    #[classify(status = 0, rules = REFERENCE)]
    Reference(u16),
    #[classify(status = 0, rules = StatusRules::HTTP)]
    Associated(u16),
    #[classify(message = 0, rules = crate::MINE, outcome_unknown)]
    Text(&'static str),
}

#[test]
fn rules_are_any_path_to_a_table() {
    assert_eq!(RulesEverywhere::Static(418).classify().disposition, Disposition::Permanent);
    assert_eq!(RulesEverywhere::Reference(418).classify().disposition, Disposition::Permanent);
    assert_eq!(RulesEverywhere::Associated(503).classify().disposition, Disposition::Retryable);
    let verdict = RulesEverywhere::Text("later").classify();
    assert_eq!((verdict.disposition, verdict.outcome_unknown, verdict.code), (Disposition::Retryable, true, None));
}

#[derive(Classify)]
enum Inner {
    #[classify(retryable, class = "deep")]
    Deep,
    #[classify(status = 0)]
    Code(u16),
    #[classify(retryable, class = "busy", retry_after = 0, outcome_unknown)]
    Busy(u8),
}

#[derive(Classify)]
enum Outer<'a> {
    #[classify(transparent)]
    Plain(Inner),
    #[classify(transparent)]
    Boxed(Box<Inner>),
    #[classify(transparent)]
    Shared(Arc<Inner>),
    #[classify(transparent)]
    Counted(Rc<Inner>),
    #[classify(transparent)]
    Borrowed(&'a Inner),
    #[classify(transparent = source)]
    ByName {
        source: Inner,
        context: &'static str,
    },
    #[classify(transparent = 1)]
    ByNumber(u8, Inner),
    OnField(u8, #[classify(transparent)] Inner),
    #[classify(transparent)]
    Dynamic(Box<dyn Classify + Send + Sync>),
    #[classify(transparent = r#type)]
    Raw {
        r#type: Inner,
        other: (),
    },
    #[classify(transparent = match)]
    Keyword {
        r#match: Inner,
        other: (),
    },
}

#[test]
fn transparent_gives_the_inner_verdict_whole() {
    let deep = Verdict::retryable("deep");
    for outer in [
        Outer::Plain(Inner::Deep),
        Outer::Boxed(Box::new(Inner::Deep)),
        Outer::Shared(Arc::new(Inner::Deep)),
        Outer::Counted(Rc::new(Inner::Deep)),
        Outer::Borrowed(&Inner::Deep),
        Outer::ByName { source: Inner::Deep, context: "" },
        Outer::ByNumber(1, Inner::Deep),
        Outer::OnField(1, Inner::Deep),
        Outer::Dynamic(Box::new(Inner::Deep)),
        Outer::Raw { r#type: Inner::Deep, other: () },
        Outer::Keyword { r#match: Inner::Deep, other: () },
    ] {
        assert_eq!(outer.classify(), deep);
    }
    assert_eq!(Outer::Plain(Inner::Code(429)).classify(), StatusRules::HTTP.verdict(Some(429), ""));
    let busy = Verdict::retryable("busy").retry_after(std::time::Duration::from_secs(5)).outcome_unknown();
    assert_eq!(Outer::Boxed(Box::new(Inner::Busy(5))).classify(), busy);
}

#[derive(Classify)]
enum Judged {
    #[classify(with = Self::judge)]
    Method(u8),
    #[classify(with = judge_free)]
    Free,
    #[classify(with = self::nested::judge)]
    Far,
    #[classify(with = nested::generic::<Judged, u8>)]
    Turbofish,
    #[classify(with = <Judged as Judge>::verdict)]
    Trait,
}

trait Judge {
    fn verdict(&self) -> Verdict {
        Verdict::gone("trait")
    }
}

impl Judge for Judged {}

impl Judged {
    fn judge(&self) -> Verdict {
        match self {
            Self::Method(0) => Verdict::permanent("zero").code(0),
            _ => Verdict::retryable("more").retry_after(seconds(1)),
        }
    }
}

fn judge_free(_error: &Judged) -> Verdict {
    Verdict::unknown("free")
}

mod nested {
    use retry_runtime::Verdict;

    pub(super) fn judge(_error: &super::Judged) -> Verdict {
        Verdict::permanent("far")
    }

    pub(super) fn generic<T, U: Default>(_error: &T) -> Verdict {
        let _default = U::default();
        Verdict::retryable("generic")
    }
}

#[test]
fn with_asks_a_function() {
    assert_eq!(Judged::Method(0).classify(), Verdict::permanent("zero").code(0));
    assert_eq!(Judged::Method(1).classify(), Verdict::retryable("more").retry_after(seconds(1)));
    assert_eq!(Judged::Free.classify().class, "free");
    assert_eq!(Judged::Far.classify().class, "far");
    assert_eq!(Judged::Turbofish.classify().class, "generic");
    assert_eq!(Judged::Trait.classify().class, "trait");
}

#[derive(Classify)]
enum Kinds<'a> {
    #[classify(retryable)]
    Integer(#[classify(retry_after)] u8),
    #[classify(retryable)]
    Negative(#[classify(retry_after)] Option<i64>),
    #[classify(gone, retry_after = 0)]
    Wait(Duration),
    #[classify(status = 0, message = 1)]
    Borrowed(&'a Option<u32>, &'a str),
    #[classify(status = 0, message = 1)]
    Boxes(Arc<i64>, Box<dyn Error + Send + Sync>),
    #[classify(message = 0)]
    Source(Box<dyn Error + 'a>),
    #[classify(status = 0, message = 0)]
    Both(Both),
}

struct Both;

impl retry_runtime::classify::StatusField for Both {
    fn status(&self) -> Option<i64> {
        Some(503)
    }
}

impl retry_runtime::classify::MessageField for Both {
    fn message(&self) -> Cow<'_, str> {
        "own".into()
    }
}

#[test]
fn fields_of_many_types_can_be_asked() {
    assert_eq!(Kinds::Integer(3).classify().retry_after, Some(seconds(3)));
    assert_eq!(Kinds::Negative(Some(-3)).classify().retry_after, None);
    assert_eq!(Kinds::Wait(seconds(1)).classify(), Verdict::gone("wait").retry_after(seconds(1)));
    assert_eq!(Kinds::Borrowed(&Some(503), "x").classify().code, Some(503));
    assert_eq!(Kinds::Borrowed(&None, "x").classify().code, None);
    assert_eq!(Kinds::Boxes(Arc::new(503), "x".into()).classify().code, Some(503));
    assert_eq!(Kinds::Source("x".into()).classify().code, None);
    assert_eq!(Kinds::Both(Both).classify().disposition, Disposition::Retryable);
}
