//! `dlq list`.

use retry_runtime::dead_letter::{Filter, LetterRow, Order, PageRequest};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::table::{Column, matching, table};
use crate::exit::{Exit, Failure};
use crate::filters::{self, FilterArgs, Meant};
use crate::stores::{Access, Store};
use crate::{documents, text, times};

/// Which letters, and in which order.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// The longest unseen first, as a replay takes them
    #[arg(long)]
    oldest: bool,
}

/// So many where nothing is said.
const USUAL: u64 = 20;

pub(super) async fn run(context: &Context, args: ListArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let now = store.facts().await?.now;
    let meant = owed_unless_said(args.filter.meant(&store, now).await?);
    let order = if args.oldest { Order::LongestUnseenFirst } else { Order::NewestFirst };
    let count = store.count(meant.filter.clone()).await?;
    let rows = first(&store, &meant.filter, order, meant.limit.unwrap_or(USUAL)).await?;
    let shown = rows.len() as u64;
    if context.json {
        let letters: Vec<_> = rows.iter().map(documents::letter).collect();
        print_json(&json!({ "store": store.shown(), "shown": shown, "matching": count, "letters": letters }))?;
        return Ok(Exit::DONE);
    }
    let said = filters::written(&meant.filter);
    let mut out = vec![format!("store: {}", store.shown())];
    if !rows.is_empty() {
        out.push(rows_table(&rows, now));
    }
    out.push(if said.is_empty() {
        matching(shown, count)
    } else {
        format!("{} ({})", matching(shown, count), text::line(&said))
    });
    print(&out.join("\n"))?;
    Ok(Exit::DONE)
}

/// Nobody who was just woken asks for what is done: without a word about states, what is owed is meant.
pub(super) fn owed_unless_said(mut meant: Meant) -> Meant {
    if !meant.all && meant.filter.states.is_empty() && meant.filter.ids.is_empty() {
        meant.filter.states = Filter::owed().states;
    }
    meant
}

/// The first letters that match, however many pages they take.
pub(super) async fn first(store: &Store, filter: &Filter, order: Order, limit: u64) -> Result<Vec<LetterRow>, Failure> {
    let mut rows: Vec<LetterRow> = Vec::new();
    let mut after = None;
    loop {
        let left = limit.saturating_sub(rows.len() as u64);
        let page = PageRequest::first(order, u32::try_from(left.min(500)).unwrap_or(500)).after(after);
        let page = store.list(filter.clone(), page).await?;
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() || rows.len() as u64 >= limit {
            return Ok(rows);
        }
    }
}

/// Letters in a table.
pub(super) fn rows_table(rows: &[LetterRow], now: std::time::SystemTime) -> String {
    let columns = [
        Column::Left("ID"),
        Column::Left("KIND"),
        Column::Left("JOB"),
        Column::Left("STATUS"),
        Column::Left("CLASS"),
        Column::Right("ATTEMPTS"),
        Column::Left("LAST SEEN"),
        Column::Rest("MESSAGE"),
    ];
    table(
        &columns,
        rows.iter().map(|row| {
            vec![
                row.letter_id.clone(),
                text::cut(&row.kind, 24),
                text::cut(&row.job_id, 36),
                row.state.to_string(),
                text::cut(&row.error_class, 28),
                row.attempts.to_string(),
                times::ago(row.last_seen, now),
                row.error_message.clone(),
            ]
        }),
    )
}
