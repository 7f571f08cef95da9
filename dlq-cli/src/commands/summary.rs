//! `dlq summary`.

use std::io::Write as _;

use retry_runtime::dead_letter::Summary;
use serde_json::{Value, json};

use super::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::stores::Access;
use crate::text;

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let summary = store.summary().await?;
    if context.json {
        print_json(&json!({ "store": store.shown(), "summary": document(&summary) }))?;
    } else {
        // To the letter what programs print (B1.9): the path is left to others. Classes come from whoever parked.
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", text::lines(&summary.to_string()))?;
        out.flush()?;
    }
    Ok(Exit::DONE)
}

/// The summary for machines.
pub(crate) fn document(summary: &Summary) -> Value {
    json!({
        "parked": summary.total_parked(),
        "parked_by_error_class": summary.parked,
        "replaying": summary.replaying,
        "abandoned": summary.abandoned,
        "owed": summary.owed(),
        "spilled": summary.spilled,
        "orphaned": summary.orphaned,
        "set_aside": summary.set_aside,
        "clean": summary.is_clean(),
    })
}
