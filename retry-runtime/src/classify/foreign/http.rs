use std::error::Error;

use ::http::StatusCode;
use ::http::header::{InvalidHeaderName, InvalidHeaderValue, ToStrError};
use ::http::method::InvalidMethod;
use ::http::status::InvalidStatusCode;
use ::http::uri::{InvalidUri, InvalidUriParts};

use crate::classify::boxed::held;
use crate::classify::{Classify, StatusField, StatusRules};
use crate::verdict::Verdict;

/// Decides by [`StatusRules::HTTP`].
#[diagnostic::do_not_recommend]
impl Classify for StatusCode {
    fn classify(&self) -> Verdict {
        StatusRules::HTTP.verdict(self.status(), "")
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl StatusField for StatusCode {
    fn status(&self) -> Option<i64> {
        Some(i64::from(self.as_u16()))
    }
}

macro_rules! malformed {
    ($($type:ty),*) => {
        $(
            /// Permanent, class `invalid_request`: the same parts make the same fault.
            #[diagnostic::do_not_recommend]
            impl Classify for $type {
                fn classify(&self) -> Verdict {
                    Verdict::permanent("invalid_request")
                }

                fn describe(&self) -> Option<String> {
                    Some(self.to_string())
                }
            }
        )*

        pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
            $(
                if let Some(error) = held::<$type>(link) {
                    return Some(error.classify());
                }
            )*
            None
        }
    };
}

malformed!(
    ::http::Error,
    InvalidHeaderName,
    InvalidHeaderValue,
    InvalidMethod,
    InvalidStatusCode,
    InvalidUri,
    InvalidUriParts,
    ToStrError
);
