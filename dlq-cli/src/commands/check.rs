//! `dlq check`: thresholds, for cron and monitoring.
//!
//! It never says that all is well when it could not look: whatever cannot be read ends it with 1.

use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{Aggregate, EventQuery, FileRole, Filter};
use serde_json::{Value, json};

use super::context::{Context, print, print_json};
use super::table::{BAD, GOOD, styled};
use crate::exit::{Exit, Failure};
use crate::status::{ArrivalFacts, lost};
use crate::stores::{Access, Store};
use crate::times;

/// What is still well.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct CheckArgs {
    /// At most so many parked letters
    #[arg(long, value_name = "N")]
    max_parked: Option<u64>,
    /// At most so many owed letters: parked, replaying, abandoned
    #[arg(long, value_name = "N")]
    max_owed: Option<u64>,
    /// At most so many abandoned letters
    #[arg(long, value_name = "N")]
    max_abandoned: Option<u64>,
    /// At most so many lines in spill files, and files set aside as corrupt
    #[arg(long, value_name = "N")]
    max_spilled: Option<u64>,
    /// At most so many letters lost in the last 30 days
    #[arg(long, value_name = "N")]
    max_lost: Option<u64>,
    /// No owed letter first failed longer ago than this: 90s, 15m, 2h, 1d
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    max_age: Option<Duration>,
    /// At most so many parkings an hour, in this hour and in the one before
    #[arg(long, value_name = "N")]
    max_rate: Option<u64>,
    /// The last sign of life of a program that writes is no older than this; no sign at all is too old
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    heartbeat_age: Option<Duration>,
}

/// One threshold, and what was found.
struct Line {
    name: &'static str,
    found: Value,
    most: Value,
    shown: String,
    is_passed: bool,
}

impl Line {
    fn count(name: &'static str, found: u64, most: u64) -> Self {
        let shown = format!("{found}, at most {most}");
        Self { name, found: found.into(), most: most.into(), shown, is_passed: found > most }
    }

    /// An age; `none` says what it means that there is nothing.
    fn age(name: &'static str, found: Option<Duration>, most: Duration, none: (bool, &str)) -> Self {
        let shown = match found {
            Some(age) => format!("{}, at most {}", times::rough(age), times::rough(most)),
            None => format!("{}, at most {}", none.1, times::rough(most)),
        };
        let is_passed = found.map_or(none.0, |age| age > most);
        Self {
            name,
            found: found.map_or(Value::Null, |age| age.as_secs().into()),
            most: most.as_secs().into(),
            shown,
            is_passed,
        }
    }
}

pub(super) async fn run(context: &Context, args: CheckArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let lines = look(&store, &args).await?;
    let is_passed = lines.iter().any(|line| line.is_passed);
    if context.json {
        let checks: Vec<Value> = lines
            .iter()
            .map(|line| json!({ "check": line.name, "found": line.found, "most": line.most, "exceeded": line.is_passed }))
            .collect();
        print_json(&json!({ "store": store.shown(), "ok": !is_passed, "checks": checks }))?;
    } else {
        let mut out = vec![format!("store: {}", store.shown())];
        out.extend(lines.iter().map(|line| {
            let word = if line.is_passed { styled(BAD, "OVER  ") } else { styled(GOOD, "ok    ") };
            format!("{word}  {}: {}", line.name, line.shown)
        }));
        print(&out.join("\n"))?;
    }
    Ok(if is_passed { Exit::FOUND } else { Exit::DONE })
}

async fn look(store: &Store, args: &CheckArgs) -> Result<Vec<Line>, Failure> {
    let facts = store.facts().await?;
    let now = facts.now;
    let summary = store.summary().await?;
    let mut lines = Vec::new();
    for (name, found, most) in [
        ("parked", summary.total_parked(), args.max_parked),
        ("owed", summary.owed() + summary.orphaned, args.max_owed),
        ("abandoned", summary.abandoned, args.max_abandoned),
        ("spilled", summary.spilled + summary.set_aside, args.max_spilled),
    ] {
        lines.extend(most.map(|most| Line::count(name, found, most)));
    }
    if let Some(most) = args.max_lost {
        lines.push(Line::count("lost", lost(store).await?, most));
    }
    if let Some(most) = args.max_age {
        let owed = store.aggregate(Aggregate::new(Filter::owed(), [])).await?;
        let oldest = owed.iter().map(|group| group.first_seen).min();
        let age = oldest.map(|at| now.duration_since(at).unwrap_or_default());
        lines.push(Line::age("age", age, most, (false, "nothing is owed")));
    }
    if let Some(most) = args.max_rate {
        let arrivals = ArrivalFacts::of(store, &facts).await?;
        let hours = arrivals.per_hour.iter().rev().take(2).copied().max().unwrap_or(0);
        lines.push(Line::count("rate", hours, most));
    }
    if let Some(most) = args.heartbeat_age {
        let mut signs: Vec<SystemTime> = facts.processes.iter().map(|process| process.seen_at).collect();
        signs.extend(store.events(EventQuery::all().limit(1)).await?.events.first().map(|event| event.at));
        for file in facts.files.iter().filter(|file| matches!(file.role, FileRole::Database | FileRole::Log)) {
            // A file that holds nothing was written by nobody.
            let written = std::fs::metadata(&file.path).ok().filter(|metadata| metadata.len() > 0);
            signs.extend(written.and_then(|metadata| metadata.modified().ok()));
        }
        let age = signs.into_iter().max().map(|at| now.duration_since(at).unwrap_or_default());
        lines.push(Line::age("heartbeat", age, most, (true, "no sign of life")));
    }
    Ok(lines)
}
