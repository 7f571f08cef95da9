//! `dlq audit`.

use std::time::SystemTime;

use retry_runtime::dead_letter::{EventQuery, EventRecord};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::ops::find;
use super::table::{Column, table};
use crate::exit::{Exit, Failure};
use crate::filters::one;
use crate::stores::Access;
use crate::{documents, status, text, times};

/// What happened to what.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// Only what happened to this letter
    #[arg(long, value_name = "ID", conflicts_with = "op")]
    letter: Option<String>,
    /// Only what belongs to this bulk operation
    #[arg(long, value_name = "OP")]
    op: Option<String>,
    /// Only since then: 2h (ago), 2026-11-30
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only what people did
    #[arg(long)]
    by_hand: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u64,
}

pub(super) async fn run(context: &Context, args: AuditArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let now = store.facts().await?.now;
    let since = args.since.as_deref().map(|text| times::moment(text, now)).transpose().map_err(Failure::usage)?;
    let mut query = match (&args.letter, &args.op) {
        (Some(letter), _) => EventQuery::letter(one(&store, letter).await?),
        (None, Some(op)) => EventQuery::operation(find(&store, op).await?.id),
        (None, None) => EventQuery::all(),
    };
    query.limit = 500;
    let wanted = |event: &EventRecord| !args.by_hand || status::is_by_hand(event);
    let mut events: Vec<EventRecord> = Vec::new();
    let mut more = false;
    'pages: loop {
        let page = store.events(query.clone()).await?;
        for event in page.events {
            if event.at < since.unwrap_or(SystemTime::UNIX_EPOCH) {
                break 'pages;
            }
            if events.len() as u64 >= args.limit {
                more = true;
                break 'pages;
            }
            if wanted(&event) {
                events.push(event);
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    if context.json {
        let documents: Vec<_> = events.iter().map(documents::event).collect();
        print_json(&json!({ "store": store.shown(), "shown": events.len(), "more": more, "events": documents }))?;
        return Ok(Exit::DONE);
    }
    let columns =
        [Column::Left("WHEN"), Column::Left("WHAT"), Column::Left("BY"), Column::Left("LETTER"), Column::Rest("WHY")];
    let rows = events.iter().map(|event| {
        let why = [event.reason.as_deref().unwrap_or_default(), event.detail.as_str()];
        let why: Vec<&str> = why.into_iter().filter(|text| !text.is_empty()).collect();
        vec![
            times::full(event.at),
            event.what.clone(),
            text::cut(event.actor.as_deref().unwrap_or("-"), 60),
            event.letter_id.clone().or_else(|| event.operation.clone()).unwrap_or_default(),
            why.join("; "),
        ]
    });
    let shown = table(&columns, rows);
    let end = if more {
        format!("{} shown, and more: --limit", events.len())
    } else {
        format!("{} shown, all there are", events.len())
    };
    print(&format!("store: {}\n{shown}\n{end}", store.shown()))?;
    Ok(Exit::DONE)
}
