use std::error::Error;

use ::rusqlite::{Error as SqliteError, ErrorCode};

use crate::classify::Classify;
use crate::classify::boxed::{held, of_chain};
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<SqliteError>(link).map(shallow)
}

/// | failure | verdict |
/// |---|---|
/// | busy, locked, locking protocol | retryable `busy` |
/// | schema changed, operation aborted by another | retryable `conflict` |
/// | disk input/output, out of memory | retryable `io`, `out_of_memory` |
/// | interrupted | unknown `interrupted`: somebody asked for it |
/// | full | permanent `storage_full`: waiting frees no space, a later replay may |
/// | corrupt, not a database; read-only; cannot open | permanent `corrupt`; `read_only`; `cannot_open` |
/// | constraint; permission, authorisation; too big | permanent `constraint`; `permission_denied`; `too_large` |
/// | any other SQL error or misuse | permanent `invalid_request` |
/// | no row; conversions | permanent `not_found`; `invalid_data` |
/// | an error of the user's own inside a conversion or a function | what its chain says |
#[diagnostic::do_not_recommend]
impl Classify for SqliteError {
    fn classify(&self) -> Verdict {
        of_chain(self)
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

fn shallow(error: &SqliteError) -> Verdict {
    if let Some(code) = error.sqlite_error_code() {
        return by_code(code);
    }
    match error {
        SqliteError::QueryReturnedNoRows => Verdict::permanent("not_found"),
        SqliteError::IntegralValueOutOfRange(..)
        | SqliteError::Utf8Error(..)
        | SqliteError::NulError(_)
        | SqliteError::InvalidColumnType(..) => Verdict::permanent("invalid_data"),
        // These carry an error of the user's: unless its chain says more, the data is at fault.
        SqliteError::FromSqlConversionFailure(..) | SqliteError::ToSqlConversionFailure(_) => {
            Verdict::unknown("invalid_data")
        }
        SqliteError::InvalidParameterName(_)
        | SqliteError::InvalidPath(_)
        | SqliteError::ExecuteReturnedResults
        | SqliteError::QueryReturnedMoreThanOneRow
        | SqliteError::InvalidColumnIndex(_)
        | SqliteError::InvalidColumnName(_)
        | SqliteError::StatementChangedRows(_)
        | SqliteError::InvalidQuery
        | SqliteError::MultipleStatement
        | SqliteError::InvalidParameterCount(..)
        | SqliteError::SqliteSingleThreadedMode => Verdict::permanent("invalid_request"),
        _ => Verdict::unknown("sqlite"),
    }
}

fn by_code(code: ErrorCode) -> Verdict {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            Verdict::retryable("busy")
        }
        ErrorCode::SchemaChanged | ErrorCode::OperationAborted => Verdict::retryable("conflict"),
        ErrorCode::SystemIoFailure => Verdict::retryable("io"),
        ErrorCode::OutOfMemory => Verdict::retryable("out_of_memory"),
        ErrorCode::OperationInterrupted => Verdict::unknown("interrupted"),
        ErrorCode::DiskFull => Verdict::permanent("storage_full"),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Verdict::permanent("corrupt"),
        ErrorCode::ReadOnly => Verdict::permanent("read_only"),
        ErrorCode::CannotOpen => Verdict::permanent("cannot_open"),
        ErrorCode::ConstraintViolation => Verdict::permanent("constraint"),
        ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            Verdict::permanent("permission_denied")
        }
        ErrorCode::TooBig => Verdict::permanent("too_large"),
        ErrorCode::TypeMismatch
        | ErrorCode::ApiMisuse
        | ErrorCode::ParameterOutOfRange
        | ErrorCode::InternalMalfunction
        | ErrorCode::NotFound
        | ErrorCode::NoLargeFileSupport
        | ErrorCode::Unknown => Verdict::permanent("invalid_request"),
        _ => Verdict::unknown("sqlite"),
    }
}
