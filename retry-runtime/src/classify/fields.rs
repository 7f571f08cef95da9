//! What `#[derive(Classify)]` can read from a field: a status, a message, or the wait that a server asked for.
//!
//! Implement these for types of your own to use them in `#[classify(status = field)]` and its like.

use std::borrow::Cow;
use std::error::Error;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A field that holds a status or an error code, for `#[classify(status)]`.
///
/// ```
/// use retry_runtime::classify::StatusField;
///
/// enum Grade {
///     Fine,
///     Poor,
/// }
///
/// impl StatusField for Grade {
///     fn status(&self) -> Option<i64> {
///         match self {
///             Grade::Fine => None,
///             Grade::Poor => Some(503),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no status that `#[classify(status)]` can read",
    label = "expected an integer, or an `Option` of one",
    note = "for a type of your own implement `retry_runtime::classify::StatusField`",
    note = "for `http::StatusCode` turn on the feature `http` of retry-runtime",
    note = "or decide with a function: `#[classify(with = path)]`"
)]
pub trait StatusField {
    /// The status; `None` when there is none, or none that fits.
    fn status(&self) -> Option<i64>;
}

/// A field that holds a text to look for words in, for `#[classify(message)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no text that `#[classify(message)]` can read",
    label = "expected a string, a boxed error, or an `Option` of one",
    note = "for a type of your own implement `retry_runtime::classify::MessageField`",
    note = "or decide with a function: `#[classify(with = path)]`"
)]
pub trait MessageField {
    /// The text; empty when there is none.
    fn message(&self) -> Cow<'_, str>;
}

/// A field that holds the wait that a server asked for, for `#[classify(retry_after)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no wait that `#[classify(retry_after)]` can read",
    label = "expected a `Duration`, whole seconds, or an `Option` of one",
    note = "for a type of your own implement `retry_runtime::classify::RetryAfterField`",
    note = "or decide with a function: `#[classify(with = path)]`"
)]
pub trait RetryAfterField {
    /// The wait; `None` when there is no hint. A negative number of seconds is none.
    fn retry_after(&self) -> Option<Duration>;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl StatusField for $type {
            fn status(&self) -> Option<i64> {
                i64::try_from(*self).ok()
            }
        }

        #[diagnostic::do_not_recommend]
        impl RetryAfterField for $type {
            fn retry_after(&self) -> Option<Duration> {
                u64::try_from(*self).ok().map(Duration::from_secs)
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

#[diagnostic::do_not_recommend]
impl StatusField for NonZeroU16 {
    fn status(&self) -> Option<i64> {
        Some(i64::from(self.get()))
    }
}

#[diagnostic::do_not_recommend]
impl RetryAfterField for Duration {
    fn retry_after(&self) -> Option<Duration> {
        Some(*self)
    }
}

#[diagnostic::do_not_recommend]
impl MessageField for str {
    fn message(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

#[diagnostic::do_not_recommend]
impl MessageField for String {
    fn message(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

#[diagnostic::do_not_recommend]
impl MessageField for Cow<'_, str> {
    fn message(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

macro_rules! errors {
    ($($type:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl MessageField for $type {
            fn message(&self) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }
        }
    )*};
}

errors!(dyn Error + '_, dyn Error + Send + '_, dyn Error + Send + Sync + '_);

#[diagnostic::do_not_recommend]
impl<T: StatusField> StatusField for Option<T> {
    fn status(&self) -> Option<i64> {
        self.as_ref().and_then(StatusField::status)
    }
}

#[diagnostic::do_not_recommend]
impl<T: MessageField> MessageField for Option<T> {
    fn message(&self) -> Cow<'_, str> {
        self.as_ref().map_or(Cow::Borrowed(""), MessageField::message)
    }
}

#[diagnostic::do_not_recommend]
impl<T: RetryAfterField> RetryAfterField for Option<T> {
    fn retry_after(&self) -> Option<Duration> {
        self.as_ref().and_then(RetryAfterField::retry_after)
    }
}

macro_rules! through {
    ($($type:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: StatusField + ?Sized> StatusField for $type {
            fn status(&self) -> Option<i64> {
                (**self).status()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: MessageField + ?Sized> MessageField for $type {
            fn message(&self) -> Cow<'_, str> {
                (**self).message()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: RetryAfterField + ?Sized> RetryAfterField for $type {
            fn retry_after(&self) -> Option<Duration> {
                (**self).retry_after()
            }
        }
    )*};
}

through!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_every_width() {
        assert_eq!(StatusField::status(&503_u16), Some(503));
        assert_eq!(StatusField::status(&-7_i32), Some(-7));
        assert_eq!(StatusField::status(&u64::MAX), None);
        assert_eq!(StatusField::status(&Some(&404_u32)), Some(404));
        assert_eq!(StatusField::status(&None::<u16>), None);
        assert_eq!(StatusField::status(&NonZeroU16::MIN), Some(1));
        assert_eq!(StatusField::status(&Box::new(Rc::new(Arc::new(1_i64)))), Some(1));
    }

    #[test]
    fn messages_of_every_kind() {
        let error: Box<dyn Error + Send + Sync> = "boxed".into();
        assert_eq!(MessageField::message(&error), "boxed");
        assert_eq!(MessageField::message(&"text"), "text");
        assert_eq!(MessageField::message(&Some(Box::<str>::from("b"))), "b");
        assert_eq!(MessageField::message(&None::<String>), "");
        assert_eq!(MessageField::message(&Cow::Borrowed("cow")), "cow");
    }

    #[test]
    fn hints_in_seconds_or_as_durations() {
        assert_eq!(RetryAfterField::retry_after(&3_u8), Some(Duration::from_secs(3)));
        assert_eq!(RetryAfterField::retry_after(&u64::MAX), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(RetryAfterField::retry_after(&-1_i64), None);
        assert_eq!(RetryAfterField::retry_after(&Some(Duration::ZERO)), Some(Duration::ZERO));
        assert_eq!(RetryAfterField::retry_after(&None::<u64>), None);
    }
}
