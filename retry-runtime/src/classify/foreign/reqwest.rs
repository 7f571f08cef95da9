use std::error::Error;
use std::io::{self, ErrorKind};

use crate::classify::boxed::{MAX_CHAIN, chain, held};
use crate::classify::{Classify, StatusRules};
use crate::verdict::{Disposition, Verdict};

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<::reqwest::Error>(link).map(Classify::classify)
}

/// The first line that fits:
///
/// | failure | verdict |
/// |---|---|
/// | a status (`error_for_status`) | [`StatusRules::HTTP`], the status as code |
/// | the request could not be built; too many redirects | permanent `invalid_request`; `redirect` |
/// | no connection: refused, unreachable, name not found | retryable `connection`, or `timeout`; nothing was sent |
/// | no connection: the other side's certificate or protocol | permanent `tls` |
/// | a time-out after that | retryable `timeout`, the work may have been done |
/// | the request was never sent on its connection | retryable `connection` |
/// | the caller's own body failed | what its input/output error says, else unknown `body` |
/// | the connection failed, or the answer is torn or no HTTP | retryable `connection`, the work may have been done |
/// | a body that arrived and cannot be decoded | what `serde_json` says, else permanent `invalid_body` |
#[diagnostic::do_not_recommend]
impl Classify for ::reqwest::Error {
    fn classify(&self) -> Verdict {
        if let Some(status) = self.status() {
            return StatusRules::HTTP.verdict(Some(i64::from(status.as_u16())), "");
        }
        if self.is_builder() {
            return Verdict::permanent("invalid_request");
        }
        if self.is_redirect() {
            return Verdict::permanent("redirect");
        }
        // reqwest's own questions walk the causes without a bound, and a user's resolver or body may bring a circle of them.
        let bounded = chain(self).count() < MAX_CHAIN;
        let timed_out = bounded && self.is_timeout();
        if bounded && self.is_connect() {
            return if timed_out {
                Verdict::retryable("timeout")
            } else if io_causes(self).any(|kind| kind == ErrorKind::InvalidData) {
                Verdict::permanent("tls")
            } else {
                Verdict::retryable("connection")
            };
        }
        if timed_out {
            return Verdict::retryable("timeout").outcome_unknown();
        }
        in_transit(self)
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

const LOST: Verdict = Verdict::retryable("connection").outcome_unknown();

fn in_transit(error: &::reqwest::Error) -> Verdict {
    let io = || io_causes(error).map(|kind| kind.classify());
    match chain(error).find_map(held::<::hyper::Error>) {
        Some(hyper) if hyper.is_canceled() => Verdict::retryable("connection"),
        Some(hyper) if hyper.is_user() => {
            io().find(|verdict| verdict.disposition != Disposition::Unknown).unwrap_or(Verdict::unknown("body"))
        }
        // Whatever else hyper reports, the stream is at fault; reqwest reports it as "decode" too when a body is read.
        Some(_) => LOST,
        None => {
            if let Some(verdict) = io().find(|verdict| verdict.disposition == Disposition::Retryable) {
                verdict
            } else if !error.is_decode() {
                LOST
            } else if let Some(json) = chain(error).find_map(held::<::serde_json::Error>) {
                Classify::classify(json)
            } else {
                Verdict::permanent("invalid_body")
            }
        }
    }
}

/// The kinds of the input/output errors among the causes, outermost first.
fn io_causes(error: &::reqwest::Error) -> impl Iterator<Item = ErrorKind> + '_ {
    chain(error).filter_map(held::<io::Error>).map(io::Error::kind)
}
