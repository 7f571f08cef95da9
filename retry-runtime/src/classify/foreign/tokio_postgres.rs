use std::error::Error;
use std::io;

use ::tokio_postgres::Error as PostgresError;
use ::tokio_postgres::error::DbError;

use crate::classify::boxed::{chain, held, of_chain};
use crate::classify::sql_state::sql_state;
use crate::classify::{Classify, std_impls};
use crate::verdict::Verdict;

pub(super) fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    if let Some(error) = held::<PostgresError>(link) {
        return Some(shallow(error));
    }
    held::<DbError>(link).map(Classify::classify)
}

/// | failure | verdict |
/// |---|---|
/// | the database's own answer | [`sql_state`] |
/// | a connection that was closed, an answer out of turn | retryable `connection`, the work may have been done |
/// | input/output, also while connecting or in TLS | what its kind says: reset and time-out may have done the work, refused sent nothing |
/// | no connection in time | retryable `timeout`; nothing was sent |
/// | TLS, without input/output | permanent `tls` |
/// | the password; settings | permanent `unauthorized`; `configuration` |
/// | another number of rows than the one asked for | permanent `row_count` |
/// | a column that is not there, too many or too few parameters | permanent `invalid_request` |
/// | a value that cannot be written or read | what its chain says, else unknown `invalid_data` |
/// | all else | what its chain says, else unknown `postgres` |
#[diagnostic::do_not_recommend]
impl Classify for PostgresError {
    fn classify(&self) -> Verdict {
        of_chain(self)
    }

    fn describe(&self) -> Option<String> {
        // its own text is no more than "db error"
        Some(match self.as_db_error() {
            Some(answer) => answer.to_string(),
            None => self.to_string(),
        })
    }
}

/// [`sql_state`].
#[diagnostic::do_not_recommend]
impl Classify for DbError {
    fn classify(&self) -> Verdict {
        sql_state(self.code().code())
    }

    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
}

const LOST: Verdict = Verdict::retryable("connection").outcome_unknown();

fn shallow(error: &PostgresError) -> Verdict {
    if let Some(answer) = error.as_db_error() {
        return answer.classify();
    }
    if error.is_closed() {
        return LOST;
    }
    // The other kinds have no names that can be asked for: what they say is pinned by a test.
    let text = error.to_string();
    let is = |start: &str| text.starts_with(start);
    if is("error serializing parameter") || is("error deserializing column") {
        return Verdict::unknown("invalid_data");
    }
    if let Some(io) = chain(error).filter(|link| held::<io::Error>(*link).is_some()).find_map(std_impls::known) {
        return io;
    }
    if is("unexpected message") {
        LOST
    } else if is("timeout waiting for server") {
        Verdict::retryable("timeout")
    } else if is("error performing TLS handshake") {
        Verdict::permanent("tls")
    } else if is("authentication error") {
        Verdict::permanent("unauthorized")
    } else if is("invalid con") {
        // "connection string", "configuration"
        Verdict::permanent("configuration")
    } else if is("query returned an unexpected number of rows") {
        Verdict::permanent("row_count")
    } else if is("invalid column") || is("query returned an unexpected number of columns") || is("expected ") {
        Verdict::permanent("invalid_request")
    } else {
        Verdict::unknown("postgres")
    }
}
