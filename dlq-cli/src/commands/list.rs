//! `dlq list`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use retry_runtime::dead_letter::{Filter, HistoryEntry, LetterRow, Order, PageRequest};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::table::{Column, matching, table, window};
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
        let before = before_replays(&store, &rows).await?;
        out.push(rows_table(&rows, &before, now));
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

/// So many letters are asked what they failed of before their replays.
const ASKED: usize = 50;

/// The class of the newest failure that was no replay's, where it is another one than the letter shows now.
pub(super) fn class_before(row: &LetterRow, history: &[HistoryEntry]) -> Option<String> {
    let call = history.iter().rev().find(|entry| entry.fence.is_none() && entry.class.is_some())?;
    call.class.clone().filter(|class| row.replays > 0 && Some(class) != row.class.as_ref())
}

/// The same of some letters, by their ids.
async fn before_replays(store: &Store, rows: &[LetterRow]) -> Result<BTreeMap<String, String>, Failure> {
    let mut before = BTreeMap::new();
    for row in rows.iter().filter(|row| row.replays > 0).take(ASKED) {
        let detail = store.get(row.letter_id.clone()).await?;
        before.extend(
            detail.and_then(|detail| Some((row.letter_id.clone(), class_before(&detail.row, &detail.history)?))),
        );
    }
    Ok(before)
}

/// What stands in a column.
type Cell<'a> = Box<dyn Fn(&LetterRow) -> String + 'a>;

/// Letters in a table: with all columns in a pipe, and in a terminal as many as leave room for the message.
fn rows_table(rows: &[LetterRow], before: &BTreeMap<String, String>, now: SystemTime) -> String {
    let width = window().unwrap_or(usize::MAX);
    let kinds: BTreeSet<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    let class = |row: &LetterRow| match before.get(&row.letter_id) {
        Some(class) => format!("{}, was {}", text::cut(&row.error_class, 60), text::cut(class, 60)),
        None => text::cut(&row.error_class, 60),
    };
    let status = |row: &LetterRow| {
        let is_over = row.is_expired(now);
        if is_over { format!("{}, lease over", row.state) } else { row.state.to_string() }
    };
    let columns: [(Column, bool, Cell<'_>); 8] = [
        (Column::Left("ID"), width >= 180, Box::new(|row| row.letter_id.clone())),
        (Column::Left("KIND"), width >= 110 || kinds.len() > 1, Box::new(|row| text::cut(&row.kind, 60))),
        (Column::Left("JOB"), true, Box::new(|row| text::cut(&row.job_id, 120))),
        (Column::Left("STATUS"), true, Box::new(status)),
        (Column::Left("CLASS"), true, Box::new(class)),
        (Column::Right("ATTEMPTS"), width >= 110, Box::new(|row| row.attempts.to_string())),
        (Column::Left("LAST SEEN"), true, Box::new(|row| times::ago(row.last_seen, now))),
        (Column::Rest("MESSAGE"), true, Box::new(|row| row.error_message.clone())),
    ];
    let shown: Vec<_> = columns.into_iter().filter(|(_, is_shown, _)| *is_shown).collect();
    let titles: Vec<Column> = shown.iter().map(|(column, ..)| *column).collect();
    table(&titles, rows.iter().map(|row| shown.iter().map(|(.., cell)| cell(row)).collect()))
}
