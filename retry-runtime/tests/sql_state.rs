//! Verdicts about SQLSTATEs, each row of the table.

use retry_runtime::Disposition::{Permanent, Retryable, Unknown};
use retry_runtime::classify::sql_state;

#[test]
fn each_row_of_the_table() {
    for (code, disposition, class, outcome_unknown) in [
        ("40001", Retryable, "conflict", false),
        ("40P01", Retryable, "conflict", false),
        ("40000", Retryable, "conflict", false),
        ("72000", Retryable, "conflict", false),
        ("40003", Retryable, "conflict", true),
        ("40002", Permanent, "constraint", false),
        ("08001", Retryable, "connection", false),
        ("08003", Retryable, "connection", false),
        ("08004", Retryable, "connection", false),
        ("08000", Retryable, "connection", true),
        ("08006", Retryable, "connection", true),
        ("08007", Retryable, "connection", true),
        ("08S01", Retryable, "connection", true),
        ("08P01", Retryable, "connection", true),
        ("53000", Retryable, "unavailable", false),
        ("53100", Permanent, "storage_full", false),
        ("53200", Retryable, "out_of_memory", false),
        ("53300", Retryable, "busy", false),
        ("53400", Permanent, "too_large", false),
        ("54000", Permanent, "too_large", false),
        ("55000", Permanent, "invalid_request", false),
        ("55006", Retryable, "busy", false),
        ("55P03", Retryable, "busy", false),
        ("57014", Unknown, "cancelled", false),
        ("57P01", Retryable, "unavailable", true),
        ("57P02", Retryable, "unavailable", true),
        ("57P03", Retryable, "unavailable", false),
        ("57P04", Permanent, "not_found", false),
        ("57P05", Retryable, "unavailable", false),
        ("58000", Retryable, "io", false),
        ("58030", Retryable, "io", false),
        ("58P01", Unknown, "database", false),
        ("25P02", Permanent, "invalid_request", false),
        ("25P03", Retryable, "timeout", false),
        ("25006", Unknown, "read_only", false),
        ("22003", Permanent, "invalid_data", false),
        ("23505", Permanent, "constraint", false),
        ("28P01", Permanent, "unauthorized", false),
        ("42501", Permanent, "permission_denied", false),
        ("42P01", Permanent, "invalid_request", false),
        ("3D000", Permanent, "invalid_request", false),
        ("0A000", Permanent, "not_supported", false),
        ("XX000", Unknown, "database", false),
        ("XX001", Permanent, "corrupt", false),
        ("P0001", Unknown, "database", false),
        ("HY000", Unknown, "database", false),
        ("", Unknown, "database", false),
        ("é", Unknown, "database", false),
    ] {
        let verdict = sql_state(code);
        let found = (verdict.disposition, verdict.class, verdict.outcome_unknown);
        assert_eq!(found, (disposition, class, outcome_unknown), "{code}");
    }
}
