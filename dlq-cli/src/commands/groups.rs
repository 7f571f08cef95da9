//! `dlq groups`.

use retry_runtime::dead_letter::{FailureGroup, GroupOrder, GroupsRequest};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::list::owed_unless_said;
use super::table::{counted, matching, sparkline};
use crate::exit::{Exit, Failure};
use crate::filters::{self, FilterArgs};
use crate::stores::Access;
use crate::{documents, text, times};

/// Which letters, and in which order.
#[derive(Debug, clap::Args)]
pub(crate) struct GroupsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// The newest failure first, instead of the most letters
    #[arg(long)]
    newest: bool,
}

pub(super) async fn run(context: &Context, args: GroupsArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let now = store.facts().await?.now;
    let meant = owed_unless_said(args.filter.meant(&store, now).await?);
    let order = if args.newest { GroupOrder::NewestFirst } else { GroupOrder::MostLetters };
    let limit = meant.limit.unwrap_or(20);
    let mut groups: Vec<FailureGroup> = Vec::new();
    let mut after = None;
    loop {
        let left = u32::try_from(limit.saturating_sub(groups.len() as u64)).unwrap_or(u32::MAX).min(500);
        let request = GroupsRequest::new(meant.filter.clone()).order(order).limit(left).after(after);
        let page = store.groups(request).await?;
        groups.extend(page.groups);
        after = page.next;
        if after.is_none() || groups.len() as u64 >= limit {
            break;
        }
    }
    let count = store.count(meant.filter.clone()).await?;
    let shown: u64 = groups.iter().map(|group| group.counts.letters()).sum();
    if context.json {
        let documents: Vec<_> = groups.iter().map(documents::group).collect();
        print_json(&json!({
            "store": store.shown(), "shown": shown, "matching": count, "more": after.is_some(), "groups": documents,
        }))?;
        return Ok(Exit::DONE);
    }
    let mut out = vec![format!("store: {}", store.shown())];
    for group in &groups {
        let newest = &group.newest;
        let states: Vec<String> = group.counts.states.iter().map(|(state, n)| format!("{n} {state}")).collect();
        out.push(format!(
            "\n{:>6}  {}  {}  {}",
            group.counts.letters(),
            text::cut(&newest.error_class, 40),
            text::cut(&newest.kind, 40),
            group.counts.fingerprint
        ));
        out.push(format!("        {}", text::line(&newest.error_message)));
        out.push(format!(
            "        {}; first {}, last {}; 24 hours {}  30 days {}",
            states.join(", "),
            times::ago(group.counts.first_seen, now),
            times::ago(group.counts.last_seen, now),
            sparkline(&group.trend.per_hour),
            sparkline(&group.trend.per_day)
        ));
        if let Some(note) = &group.note {
            out.push(format!("        note by {}: {}", text::line(&note.actor), text::line(&note.text)));
        }
        out.push(format!("        dlq list {}", filters::options(&of_group(&meant.filter, &group.counts.fingerprint))));
    }
    let more = if after.is_some() { ", and more groups: --limit" } else { "" };
    out.push(format!("\n{}, {}{more}", counted(groups.len() as u64, "group"), matching(shown, count)));
    print(&out.join("\n"))?;
    Ok(Exit::DONE)
}

fn of_group(filter: &retry_runtime::dead_letter::Filter, group: &str) -> retry_runtime::dead_letter::Filter {
    let mut filter = filter.clone();
    filter.fingerprints = vec![group.to_owned()];
    filter
}
