use std::error::Error;
use std::sync::Arc;

use ::redis::{ErrorKind, RedisError, ServerError, ServerErrorKind};

use crate::classify::Classify;
use crate::classify::boxed::{held, of_chain};
use crate::verdict::{Disposition, Verdict};

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<RedisError>(link).map(Classify::classify)
}

/// The error that the server answered with, by its first word, or what happened without an answer:
///
/// | failure | verdict |
/// |---|---|
/// | input/output | what its kind says: reset and time-out may have done the work, refused sent nothing |
/// | an answer that cannot be parsed | retryable `connection`, the work may have been done |
/// | `LOADING`, `CLUSTERDOWN`, `MASTERDOWN`, `NOREPLICAS`, `MISCONF`, `UNBLOCKED`; no master, replica or node found | retryable `unavailable` |
/// | `TRYAGAIN`, `BUSY`, too many clients | retryable `busy` |
/// | `MOVED`, `ASK` | retryable `moved`: a cluster client asks the right node next |
/// | `OOM` | retryable `out_of_memory`: keys expire and are evicted |
/// | `READONLY` | unknown `read_only`: a replica, or a primary that was one until just now |
/// | `NOAUTH`, `WRONGPASS`; `NOPERM` | permanent `unauthorized`; `permission_denied` |
/// | `NOSCRIPT`; `BUSYKEY`, `BUSYGROUP` | permanent `not_found`; `already_exists` |
/// | `ERR`, `EXECABORT`, `CROSSSLOT`, `WRONGTYPE`, `NOTBUSY`, `NOSUB`, `UNKILLABLE`, misuse of the client | permanent `invalid_request` |
/// | settings of the client; a value of another type | permanent `configuration`; `invalid_data` |
/// | any other answer | unknown `redis` |
/// | a pipeline of which some failed | the worst of their verdicts, and the work may have been done: the rest was |
/// | a transaction that was not run | the worst of the verdicts about its commands |
#[diagnostic::do_not_recommend]
impl Classify for RedisError {
    fn classify(&self) -> Verdict {
        if let Some(verdict) = of_several(self) {
            return verdict;
        }
        match self.kind() {
            ErrorKind::Io => match cause(self) {
                Some(cause) => of_chain(cause),
                // the connection's own words for "it is gone"
                None => LOST,
            },
            ErrorKind::Parse => LOST,
            ErrorKind::AuthenticationFailed => Verdict::permanent("unauthorized"),
            ErrorKind::UnexpectedReturnType => Verdict::permanent("invalid_data"),
            ErrorKind::InvalidClientConfig | ErrorKind::EmptySentinelList | ErrorKind::RESP3NotSupported => {
                Verdict::permanent("configuration")
            }
            ErrorKind::Client => Verdict::permanent("invalid_request"),
            ErrorKind::MasterNameNotFoundBySentinel
            | ErrorKind::NoValidReplicasFoundBySentinel
            | ErrorKind::ClusterConnectionNotFound => Verdict::retryable("unavailable"),
            ErrorKind::Server(kind) => answered(Some(kind), "", self.detail()),
            ErrorKind::Extension => answered(None, self.code().unwrap_or_default(), self.detail()),
            _ => Verdict::unknown("redis"),
        }
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

const LOST: Verdict = Verdict::retryable("connection").outcome_unknown();

/// What the error holds, which is a shared box of unknown content.
fn cause(error: &RedisError) -> Option<&(dyn Error + 'static)> {
    let source = error.source()?;
    match source.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        Some(shared) => Some(&**shared),
        None => Some(source),
    }
}

/// A pipeline or a transaction: what a single answer is not.
fn of_several(error: &RedisError) -> Option<Verdict> {
    let from_server = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    if !from_server || error.source().is_some() {
        return None;
    }
    let aborted = error.kind() == ErrorKind::Server(ServerErrorKind::ExecAbort);
    let failed = error.clone().into_server_errors()?;
    let of_one = |error: &ServerError| answered(error.kind(), error.code(), error.details());
    let verdicts = failed.iter().map(|(_, error)| of_one(error));
    let worst = verdicts.min_by_key(|verdict| match verdict.disposition {
        Disposition::Permanent | Disposition::Gone => 0,
        Disposition::Unknown => 1,
        Disposition::Retryable => 2,
    });
    let worst = worst.unwrap_or(Verdict::permanent("invalid_request"));
    Some(if aborted { worst } else { worst.outcome_unknown() })
}

fn answered(kind: Option<ServerErrorKind>, code: &str, detail: Option<&str>) -> Verdict {
    match kind {
        Some(ServerErrorKind::BusyLoading | ServerErrorKind::ClusterDown | ServerErrorKind::MasterDown) => {
            Verdict::retryable("unavailable")
        }
        Some(ServerErrorKind::TryAgain) => Verdict::retryable("busy"),
        Some(ServerErrorKind::Moved | ServerErrorKind::Ask) => Verdict::retryable("moved"),
        Some(ServerErrorKind::ReadOnly) => Verdict::unknown("read_only"),
        Some(ServerErrorKind::NoPerm) => Verdict::permanent("permission_denied"),
        Some(ServerErrorKind::NoScript) => Verdict::permanent("not_found"),
        Some(ServerErrorKind::ResponseError)
            if detail.is_some_and(|detail| detail.starts_with("max number of clients reached")) =>
        {
            Verdict::retryable("busy")
        }
        Some(
            ServerErrorKind::ResponseError
            | ServerErrorKind::ExecAbort
            | ServerErrorKind::CrossSlot
            | ServerErrorKind::NotBusy
            | ServerErrorKind::NoSub,
        ) => Verdict::permanent("invalid_request"),
        _ => match code {
            "BUSY" => Verdict::retryable("busy"),
            "NOREPLICAS" | "MISCONF" | "UNBLOCKED" => Verdict::retryable("unavailable"),
            "OOM" => Verdict::retryable("out_of_memory"),
            "NOAUTH" | "WRONGPASS" => Verdict::permanent("unauthorized"),
            "BUSYKEY" | "BUSYGROUP" => Verdict::permanent("already_exists"),
            "WRONGTYPE" | "UNKILLABLE" => Verdict::permanent("invalid_request"),
            _ => Verdict::unknown("redis"),
        },
    }
}
