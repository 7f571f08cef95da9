//! `dlq tail`.

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{EventQuery, Filter, LetterRow, Order};

use super::context::{Context, aside};
use super::interrupt::interrupted;
use super::list::first;
use crate::exit::{Exit, Failure};
use crate::filters::FilterArgs;
use crate::stores::{Access, Store};
use crate::{documents, text, times};

/// Which letters, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Begin with so many that are there already
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    lines: u64,
    /// Look again after so long
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = times::duration)]
    interval: Duration,
}

pub(super) async fn run(context: &Context, args: TailArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let now = store.facts().await?.now;
    let meant = args.filter.meant_later(&store, now).await?;
    if !context.json {
        aside(&format!("store: {}  (Ctrl-C ends)", store.shown()));
    }
    tokio::select! {
        biased;
        // First: from its first line on it ends in order.
        () = interrupted() => Ok(Exit::INTERRUPTED),
        followed = follow(context, &store, &meant.filter, &args, meant.limit.unwrap_or(u64::MAX)) => followed,
    }
}

async fn follow(
    context: &Context,
    store: &Store,
    filter: &Filter,
    args: &TailArgs,
    limit: u64,
) -> Result<Exit, Failure> {
    // Known before the first letters are read: nothing falls between.
    let mut after = store.events(EventQuery::all().limit(1)).await?.events.first().map_or(0, |event| event.id);
    let mut left = limit;
    let mut known = first(store, filter, Order::NewestFirst, args.lines.min(left)).await?;
    known.reverse();
    for row in &known {
        say(context, row)?;
        left -= 1;
    }
    loop {
        let page = store.events(EventQuery::all().oldest_first().limit(500).after(Some(after))).await?;
        let is_full = page.next.is_some();
        let mut came: Vec<String> = Vec::new();
        for event in page.events {
            after = event.id;
            if let ("parked" | "reopened" | "late_failure", Some(letter)) = (event.what.as_str(), event.letter_id)
                && !came.contains(&letter)
            {
                came.push(letter);
            }
        }
        if !came.is_empty() {
            let mut of_these = filter.clone();
            let order = came.clone();
            of_these.ids = came;
            if !filter.ids.is_empty() {
                of_these.ids.retain(|id| filter.ids.contains(id));
            }
            let mut rows = if of_these.ids.is_empty() {
                Vec::new()
            } else {
                first(store, &of_these, Order::LongestUnseenFirst, 500).await?
            };
            // In the order in which they came, which is not that of their failures.
            rows.sort_by_key(|row| order.iter().position(|id| *id == row.letter_id));
            for row in rows {
                if left == 0 {
                    return Ok(Exit::DONE);
                }
                say(context, &row)?;
                left -= 1;
            }
        }
        if left == 0 {
            return Ok(Exit::DONE);
        }
        if !is_full {
            tokio::time::sleep(args.interval).await;
        }
    }
}

fn say(context: &Context, row: &LetterRow) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if context.json {
        writeln!(out, "{}", documents::letter(row))?;
    } else {
        writeln!(out, "{}", line(row))?;
    }
    Ok(out.flush()?)
}

fn line(row: &LetterRow) -> String {
    let at: SystemTime = row.last_seen;
    format!(
        "{}  {}  {}  {}  {}  {}",
        times::full(at),
        row.letter_id,
        text::cut(&row.kind, 24),
        text::cut(&row.job_id, 36),
        text::cut(&row.error_class, 28),
        text::line(&row.error_message)
    )
}
