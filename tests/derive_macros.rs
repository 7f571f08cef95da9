//! Derives inside functions and in what macros make.
#![deny(warnings)]
// forms that are here to be read
#![allow(clippy::non_minimal_cfg, clippy::single_component_path_imports, unused_qualifications)]

use retry_runtime::{Classify, Disposition, StatusRules, Verdict};

#[allow(dead_code)]
const RULES: StatusRules = StatusRules::new().gone(&[7]);

/// Every kind of fragment that can end up in an attribute or a type.
macro_rules! error {
    (
        $(#[$outer:meta])*
        $vis:vis enum $name:ident<$life:lifetime, $param:ident $(: $bound:path)?> {
            fixed: $fixed:ident = $how:ident $(class $class:literal)?,
            asked: $asked:ident($asked_type:ty) = $transparent:tt,
            status: $status:ident { $code:ident: $code_type:ty, $text:ident: $text_type:ty } by $rules:path,
            with: $with:ident($with_type:ty) = $function:path,
            meta: #[$meta:meta] $last:ident,
        }
    ) => {
        #[derive(Classify)]
        $(#[$outer])*
        #[allow(dead_code)]
        $vis enum $name<$life, $param $(: $bound)?> {
            #[classify($how $(, class = $class)?)]
            $fixed,
            #[classify($transparent)]
            $asked($asked_type),
            #[classify(status = $code, message = $text, rules = $rules)]
            $status { $code: $code_type, $text: $text_type },
            #[classify(with = $function)]
            $with($with_type),
            #[$meta]
            $last(&$life $param),
        }
    };
}

error! {
    /// Made.
    #[derive(Debug)]
    pub(crate) enum Made<'a, T: Copy> {
        fixed: Fixed = retryable class "from_a_macro",
        asked: Asked(Box<Inner>) = transparent,
        status: Status { code: Option<u16>, text: &'a str } by crate::RULES,
        with: With(T) = self::judge,
        meta: #[classify(permanent, class = "meta")] Last,
    }
}

fn judge<T: Copy>(_error: &Made<'_, T>) -> Verdict {
    Verdict::unknown("judged")
}

#[derive(Debug, Classify)]
#[classify(gone)]
struct Inner;

#[test]
fn fragments_arrive_in_invisible_groups() {
    assert_eq!(Made::<'_, u8>::Fixed.classify(), Verdict::retryable("from_a_macro"));
    assert_eq!(Made::<'_, u8>::Asked(Box::new(Inner)).classify(), Verdict::gone("inner"));
    let status: Made<'_, u8> = Made::Status { code: Some(7), text: "" };
    assert_eq!(status.classify().disposition, Disposition::Gone);
    assert_eq!(Made::With(1).classify(), Verdict::unknown("judged"));
    assert_eq!(Made::Last(&1).classify(), Verdict::permanent("meta"));
}

/// A macro that calls itself, so that groups nest.
macro_rules! nested {
    ($class:literal, $ty:ty) => {
        nested!(@again $class, $ty);
    };
    (@again $class:expr, $ty:ty) => {
        #[derive(Classify)]
        #[classify(retryable, class = $class)]
        struct Nested(#[classify(retry_after)] $ty);
    };
}

nested!("nested", Option<u32>);

#[test]
fn groups_inside_groups() {
    assert_eq!(Nested(None).classify(), Verdict::retryable("nested"));
}

/// `$crate` means the macro's crate, also where the derive repeats the tokens.
macro_rules! with_crate {
    ($name:ident) => {
        #[derive($crate::facade::retry_runtime::Classify)]
        #[classify(crate = $crate::facade::retry_runtime)]
        enum $name<T> {
            #[classify(transparent)]
            Inner($crate::Wrapper<T>),
            #[classify(with = $crate::judge_all, )]
            #[allow(dead_code)]
            Judged,
            #[classify(status = 0, rules = $crate::RULES)]
            #[allow(dead_code)]
            Status(u16),
        }
    };
}

mod facade {
    pub(crate) use retry_runtime;
}

fn judge_all<T>(_error: &T) -> Verdict {
    Verdict::permanent("all")
}

#[derive(Classify)]
#[classify(transparent)]
struct Wrapper<T>(T);

with_crate!(UsesCrate);

#[test]
fn dollar_crate_stays_what_it_is() {
    assert_eq!(UsesCrate::Inner(Wrapper(Inner)).classify(), Verdict::gone("inner"));
}

#[test]
fn types_local_to_functions_and_constants() {
    #[derive(Classify)]
    enum Local<'a, T> {
        #[classify(transparent)]
        Inner(Deep<'a, T>),
        #[classify(retryable)]
        Own,
    }

    #[derive(Classify)]
    #[classify(status = 0)]
    struct Deep<'a, T>(u16, #[allow(dead_code)] &'a T);

    const COUNT: usize = {
        #[derive(Classify)]
        #[classify(permanent)]
        #[allow(dead_code)]
        struct InConst([u8; 4]);
        4
    };

    let closure = || {
        #[derive(Classify)]
        #[classify(gone)]
        struct InClosure;
        InClosure.classify()
    };

    assert_eq!(Local::Inner(Deep(503, &1)).classify().code, Some(503));
    assert_eq!(Local::<u8>::Own.classify().disposition, Disposition::Retryable);
    assert_eq!(closure(), Verdict::gone("in_closure"));
    assert_eq!(COUNT, 4);
}

macro_rules! byte {
    () => {
        u8
    };
}

#[derive(Classify)]
#[classify(status = 0)]
struct MacroType(byte!(), #[allow(dead_code)] [byte!(); 1 + 1]);

#[test]
fn a_field_type_may_be_a_macro() {
    assert_eq!(MacroType(1, [1, 2]).classify().code, Some(1));
}

#[derive(Classify)]
#[allow(dead_code)]
#[cfg_attr(all(), classify(default = permanent))]
enum Configured {
    #[cfg(any())]
    Removed(NoSuchType),
    #[cfg_attr(any(), classify(transparent))]
    #[cfg_attr(all(), classify(status = code))]
    Code {
        #[cfg(any())]
        code: NoSuchType,
        #[cfg(all())]
        code: u16,
    },
    #[cfg(all())]
    Silent,
    #[classify(transparent)]
    One(#[cfg(any())] NoSuchType, Inner),
}

#[test]
fn what_is_configured_away_does_not_count() {
    assert_eq!(Configured::Code { code: 503 }.classify().code, Some(503));
    assert_eq!(Configured::Silent.classify(), Verdict::permanent("silent"));
    assert_eq!(Configured::One(Inner).classify(), Verdict::gone("inner"));
}
