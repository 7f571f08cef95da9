use std::error::Error;
use std::io;

use ::tonic::{Code, Status};

use crate::classify::Classify;
use crate::classify::boxed::{chain, held, of_chain};
use crate::verdict::Verdict;
use crate::{clock, hints};

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<Status>(link).map(shallow)
}

/// By the code, which is the verdict's code too:
///
/// | code | verdict |
/// |---|---|
/// | `Unavailable` | retryable `unavailable`, the work may have been done; not where no connection was made |
/// | `DeadlineExceeded`; `Internal` | retryable `timeout`; `server_error`; the work may have been done |
/// | `ResourceExhausted`; `Aborted` | retryable `rate_limit`; `conflict` |
/// | `InvalidArgument`, `OutOfRange` | permanent `invalid_request` |
/// | `NotFound`; `AlreadyExists` | permanent `not_found`; `conflict` |
/// | `PermissionDenied`; `Unauthenticated` | permanent `forbidden`; `unauthorized` |
/// | `FailedPrecondition`; `Unimplemented`; `DataLoss` | permanent `precondition_failed`; `not_supported`; `data_loss` |
/// | `Cancelled`, `Unknown` | what the chain of causes says, else unknown `cancelled`, `unknown`; the work may have been done |
///
/// How long to wait comes from `grpc-retry-pushback-ms`, else from the `google.rpc.RetryInfo` among the details. A pushback
/// below zero makes it permanent, as does `x-should-retry: false`.
#[diagnostic::do_not_recommend]
impl Classify for Status {
    fn classify(&self) -> Verdict {
        of_chain(self)
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

fn shallow(status: &Status) -> Verdict {
    let mut verdict = match status.code() {
        Code::Unavailable if sent_nothing(status) => Verdict::retryable("unavailable"),
        Code::Unavailable => Verdict::retryable("unavailable").outcome_unknown(),
        Code::DeadlineExceeded => Verdict::retryable("timeout").outcome_unknown(),
        Code::Internal => Verdict::retryable("server_error").outcome_unknown(),
        Code::ResourceExhausted => Verdict::retryable("rate_limit"),
        Code::Aborted => Verdict::retryable("conflict"),
        Code::InvalidArgument | Code::OutOfRange => Verdict::permanent("invalid_request"),
        Code::NotFound => Verdict::permanent("not_found"),
        Code::AlreadyExists => Verdict::permanent("conflict"),
        Code::PermissionDenied => Verdict::permanent("forbidden"),
        Code::Unauthenticated => Verdict::permanent("unauthorized"),
        Code::FailedPrecondition => Verdict::permanent("precondition_failed"),
        Code::Unimplemented => Verdict::permanent("not_supported"),
        Code::DataLoss => Verdict::permanent("data_loss"),
        Code::Cancelled => Verdict::unknown("cancelled").outcome_unknown(),
        Code::Unknown | Code::Ok => Verdict::unknown("unknown").outcome_unknown(),
    };
    verdict = verdict.code(i64::from(i32::from(status.code())));
    if let Some(wait) = hints::rpc_retry_info(status.details()) {
        verdict = verdict.retry_after(wait);
    }
    let header = |name: &str| status.metadata().get(name).and_then(|value| value.to_str().ok());
    hints::from_headers(header, clock::wall()).apply(verdict)
}

/// No connection was made: the causes have an input/output error, and it says so.
fn sent_nothing(status: &Status) -> bool {
    let mut io = chain(status).filter_map(held::<io::Error>).map(|error| error.kind().classify());
    io.next().is_some_and(|verdict| verdict.class == "connection" && !verdict.outcome_unknown)
}
