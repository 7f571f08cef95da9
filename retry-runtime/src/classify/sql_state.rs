//! Deciding by the codes of databases.

use crate::verdict::Verdict;

/// The verdict about an SQLSTATE, as `PostgreSQL`, `MySQL` and others give it; for errors of drivers that are not known
/// here. The first line that fits:
///
/// | SQLSTATE | verdict |
/// |---|---|
/// | 40001, 40P01, 40000, 72000 | retryable `conflict`: rolled back, do the whole transaction again |
/// | 40003 | retryable `conflict`, the work may have been done |
/// | 40002, class 23 | permanent `constraint` |
/// | 08001, 08003, 08004 | retryable `connection`: there was none, nothing was sent |
/// | the rest of class 08 | retryable `connection`, the work may have been done |
/// | 53300, 55006, 55P03 | retryable `busy`: too many connections, an object or a lock that is held |
/// | 53200, 53000 | retryable `out_of_memory`, `unavailable` |
/// | 53100 | permanent `storage_full`: waiting frees no space, a later replay may find some |
/// | 53400, class 54 | permanent `too_large` |
/// | 57P01, 57P02 | retryable `unavailable`, the work may have been done: cut off by a shutdown or a crash |
/// | 57P03, 57P05 | retryable `unavailable`: starting up, or closed while idle |
/// | 57014 | unknown `cancelled`: a user or `statement_timeout`, the code does not tell |
/// | 57P04 | permanent `not_found` |
/// | 25P03 | retryable `timeout`: rolled back |
/// | 25006 | unknown `read_only`: a replica, or a primary that was one until just now |
/// | 58000, 58030 | retryable `io` |
/// | class 22; 28; 42501; 0A | permanent `invalid_data`; `unauthorized`; `permission_denied`; `not_supported` |
/// | XX001, XX002 | permanent `corrupt` |
/// | classes 25, 26, 2F, 34, 3D, 3F, 42, 55 | permanent `invalid_request` |
/// | all else | unknown `database` |
///
/// ```
/// use retry_runtime::classify::sql_state;
/// use retry_runtime::{Disposition, Verdict};
///
/// assert_eq!(sql_state("40P01"), Verdict::retryable("conflict"));
/// assert!(sql_state("08006").outcome_unknown);
/// assert_eq!(sql_state("23505").disposition, Disposition::Permanent);
/// ```
pub fn sql_state(code: &str) -> Verdict {
    match code {
        "40001" | "40P01" | "40000" | "72000" => return Verdict::retryable("conflict"),
        "40003" => return Verdict::retryable("conflict").outcome_unknown(),
        "40002" => return Verdict::permanent("constraint"),
        "08001" | "08003" | "08004" => return Verdict::retryable("connection"),
        "53300" | "55006" | "55P03" => return Verdict::retryable("busy"),
        "53200" => return Verdict::retryable("out_of_memory"),
        "53000" | "57P03" | "57P05" => return Verdict::retryable("unavailable"),
        "53100" => return Verdict::permanent("storage_full"),
        "53400" => return Verdict::permanent("too_large"),
        "57P01" | "57P02" => return Verdict::retryable("unavailable").outcome_unknown(),
        "57014" => return Verdict::unknown("cancelled"),
        "57P04" => return Verdict::permanent("not_found"),
        "25P03" => return Verdict::retryable("timeout"),
        "25006" => return Verdict::unknown("read_only"),
        "58000" | "58030" => return Verdict::retryable("io"),
        "42501" => return Verdict::permanent("permission_denied"),
        "XX001" | "XX002" => return Verdict::permanent("corrupt"),
        _ => {}
    }
    match code.get(..2) {
        Some("08") => Verdict::retryable("connection").outcome_unknown(),
        Some("23") => Verdict::permanent("constraint"),
        Some("54") => Verdict::permanent("too_large"),
        Some("22") => Verdict::permanent("invalid_data"),
        Some("28") => Verdict::permanent("unauthorized"),
        Some("0A") => Verdict::permanent("not_supported"),
        Some("25" | "26" | "2F" | "34" | "3D" | "3F" | "42" | "55") => Verdict::permanent("invalid_request"),
        _ => Verdict::unknown("database"),
    }
}

/// The verdict about a result code of `SQLite`, a primary or an extended one: as for `rusqlite::Error`.
#[cfg(feature = "sqlx")]
pub(crate) fn sqlite_code(code: i64) -> Verdict {
    match code & 0xff {
        5 | 6 | 15 => Verdict::retryable("busy"),
        4 | 17 => Verdict::retryable("conflict"),
        10 => Verdict::retryable("io"),
        7 => Verdict::retryable("out_of_memory"),
        9 => Verdict::unknown("interrupted"),
        13 => Verdict::permanent("storage_full"),
        11 | 26 => Verdict::permanent("corrupt"),
        8 => Verdict::permanent("read_only"),
        14 => Verdict::permanent("cannot_open"),
        19 => Verdict::permanent("constraint"),
        3 | 23 => Verdict::permanent("permission_denied"),
        18 => Verdict::permanent("too_large"),
        _ => Verdict::permanent("invalid_request"),
    }
}
