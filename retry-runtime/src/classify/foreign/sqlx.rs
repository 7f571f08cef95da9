use std::error::Error;
use std::io;

use ::sqlx_core::Error as SqlxError;
use ::sqlx_core::error::DatabaseError;

use crate::classify::boxed::{chain, held, of_chain};
use crate::classify::sql_state::{sql_state, sqlite_code};
use crate::classify::{Classify, std_impls};
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    held::<SqlxError>(link).map(shallow)
}

/// | failure | verdict |
/// |---|---|
/// | the database's own answer | [`sql_state`], or for `SQLite` its result code as for `rusqlite` |
/// | input/output | what its kind says: reset and time-out may have done the work, refused sent nothing |
/// | an answer that breaks the protocol; a worker that crashed | retryable `connection`, the work may have been done |
/// | no connection in the pool in time | retryable `busy`; nothing was sent |
/// | a transaction that did not begin | retryable `connection` |
/// | TLS | what its input/output error says, else permanent `tls` |
/// | a closed pool | permanent `closed` |
/// | no row; settings | permanent `not_found`; `configuration` |
/// | an argument, a column or a type that is not there, misuse of savepoints | permanent `invalid_request` |
/// | a value that cannot be encoded or decoded | what its chain says, else unknown `invalid_data` |
/// | a migration, `Any`, what is not named | what its chain says, else unknown `sqlx` |
#[diagnostic::do_not_recommend]
impl Classify for SqlxError {
    fn classify(&self) -> Verdict {
        of_chain(self)
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

const LOST: Verdict = Verdict::retryable("connection").outcome_unknown();

fn shallow(error: &SqlxError) -> Verdict {
    match error {
        SqlxError::Database(error) => by_code(&**error),
        SqlxError::Io(error) => error.classify(),
        SqlxError::Protocol(_) | SqlxError::WorkerCrashed => LOST,
        SqlxError::PoolTimedOut => Verdict::retryable("busy"),
        SqlxError::BeginFailed => Verdict::retryable("connection"),
        SqlxError::Tls(_) => {
            let io = chain(error).filter(|link| held::<io::Error>(*link).is_some()).find_map(std_impls::known);
            io.unwrap_or(Verdict::permanent("tls"))
        }
        SqlxError::PoolClosed => Verdict::permanent("closed"),
        SqlxError::RowNotFound => Verdict::permanent("not_found"),
        SqlxError::Configuration(_) => Verdict::permanent("configuration"),
        SqlxError::InvalidArgument(_)
        | SqlxError::TypeNotFound { .. }
        | SqlxError::ColumnIndexOutOfBounds { .. }
        | SqlxError::ColumnNotFound(_)
        | SqlxError::InvalidSavePointStatement => Verdict::permanent("invalid_request"),
        SqlxError::ColumnDecode { .. } | SqlxError::Encode(_) | SqlxError::Decode(_) => {
            Verdict::unknown("invalid_data")
        }
        _ => Verdict::unknown("sqlx"),
    }
}

/// An SQLSTATE has five characters, which no result code of `SQLite` has.
fn by_code(error: &dyn DatabaseError) -> Verdict {
    let Some(code) = error.code() else { return Verdict::unknown("database") };
    match code.parse() {
        Ok(number) if code.len() != 5 => sqlite_code(number).code(number),
        _ => sql_state(&code),
    }
}
