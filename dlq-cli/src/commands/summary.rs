//! `dlq summary`.

use serde_json::json;

use super::context::{Context, aside, print, print_json};
use crate::exit::{Exit, Failure};
use crate::stores::Access;
use crate::{documents, text};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let summary = store.summary().await?;
    if context.json {
        print_json(&json!({ "store": store.shown(), "summary": documents::summary(&summary) }))?;
    } else {
        // To the letter what programs print (B1.9), so the path goes elsewhere. Classes come from whoever parked.
        print(&text::lines(&summary.to_string()))?;
        aside(&format!("store: {}", store.shown()));
    }
    Ok(Exit::DONE)
}
