//! `dlq` alone: the first page, for somebody who was just woken.

use std::time::SystemTime;

use retry_runtime::dead_letter::{FileRole, Operation, OperationStatus, Severity};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::ops::way_on;
use super::table::{self, BAD, BOLD, CAREFUL, DIM, GOOD, bytes, counted, sparkline, styled};
use crate::exit::{Exit, Failure};
use crate::status::{Arriving, Status};
use crate::stores::Access;
use crate::{documents, text, times};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let status = Status::of(&store).await?;
    if context.json {
        print_json(&json!({ "store": store.shown(), "status": documents::status(&status) }))?;
    } else {
        print(&page(&status))?;
    }
    Ok(Exit::DONE)
}

fn page(status: &Status) -> String {
    let mut lines = vec![styled(DIM, &format!("store: {}  ({})", status.store, times::full(status.now())))];
    for (title, said) in [
        ("OWED", owed(status)),
        ("NEW", new(status)),
        ("ARRIVING", arriving(status)),
        ("REPLAYING", replaying(status)),
        ("NEXT HINT", next_hint(status)),
        ("DISCARD", discard(status)),
        ("LAST HOUR", acts(status)),
        ("FILES", files(status)),
        ("WRITTEN BY", writers(status)),
        ("HEALTH", health(status)),
        ("NEXT", next(status)),
    ] {
        for (nth, line) in said.into_iter().enumerate() {
            let title = if nth == 0 { title } else { "" };
            lines.push(format!("{} {line}", styled(BOLD, &format!("{title:<11}"))));
        }
    }
    lines.join("\n")
}

fn owed(status: &Status) -> Vec<String> {
    let summary = &status.summary;
    let mut lines = Vec::new();
    if summary.is_clean() {
        lines.push(styled(GOOD, "nothing is owed"));
    } else {
        let counts: Vec<String> = [
            (summary.total_parked(), "parked"),
            (summary.replaying, "replaying"),
            (summary.abandoned, "abandoned"),
            (summary.spilled, "spilled"),
            (summary.orphaned, "of processes that died"),
        ]
        .into_iter()
        .filter(|(n, what)| *n > 0 || *what == "parked")
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
        lines.push(styled(CAREFUL, &counts.join(", ")));
    }
    let mut classes: Vec<_> = summary.parked.iter().collect();
    classes.sort_by(|a, b| b.1.cmp(a.1));
    for (class, n) in classes.iter().take(5) {
        lines.push(format!("{n:>6}  {}", text::line(class)));
    }
    if classes.len() > 5 {
        lines.push(format!("        and {} more: dlq summary", counted(classes.len() as u64 - 5, "class")));
    }
    if let Some(row) = &status.longest_unseen {
        let (first, last) = (times::ago(row.first_seen, status.now()), times::ago(row.last_seen, status.now()));
        lines.push(format!(
            "longest unseen: {} of {}, last seen {last}, first seen {first}",
            text::cut(&row.job_id, 40),
            text::cut(&row.kind, 40)
        ));
    }
    lines.push(format!("{} recovered in the last 24 hours", status.facts.recovered_in_a_day));
    if status.lost > 0 {
        lines.push(styled(
            BAD,
            &format!("{} LOST in the last 30 days: see stderr of the programs, word LOST", status.lost),
        ));
    }
    lines
}

fn new(status: &Status) -> Vec<String> {
    let arrivals = &status.arrivals;
    let mut lines = vec![format!(
        "{} in the last 24 hours, {} in the 24 before",
        counted(arrivals.day, "parking"),
        arrivals.day_before
    )];
    if status.new_groups.is_empty() {
        lines.push("no failure that was not there before".to_owned());
    }
    for group in &status.new_groups {
        lines.push(fit(&format!(
            "{}, first {}: {} of {}: {}",
            counted(group.letters, "letter"),
            times::ago(group.first_seen, status.now()),
            text::cut(&group.newest.error_class, 40),
            text::cut(&group.newest.kind, 40),
            text::line(&group.newest.error_message),
        )));
    }
    lines
}

fn arriving(status: &Status) -> Vec<String> {
    let arrivals = &status.arrivals;
    let newest = arrivals.newest.map(|at| {
        let every = arrivals.every.map(|every| match every.as_secs() {
            0 => ", before that several a second".to_owned(),
            _ => format!(", before that one every {}", times::rough(every)),
        });
        format!("the newest parking was {}{}", times::ago(at, status.now()), every.unwrap_or_default())
    });
    let verdict = match (arrivals.arriving(status.now()), newest) {
        (_, None) => styled(GOOD, "no: nothing was parked yet"),
        (Arriving::Yes, Some(newest)) => styled(BAD, &format!("yes: {newest}")),
        (Arriving::Slowing, Some(newest)) => styled(CAREFUL, &format!("it has stopped for now: {newest}")),
        (Arriving::No, Some(newest)) => styled(GOOD, &format!("it seems over: {newest}")),
    };
    vec![
        verdict,
        format!(
            "last 24 hours {}  this hour and the one before: {}, usually {}",
            sparkline(&arrivals.per_hour),
            arrivals.last_hours,
            arrivals.usual()
        ),
    ]
}

fn replaying(status: &Status) -> Vec<String> {
    let now = status.now();
    let mut lines = Vec::new();
    let paused = |operation: &&Operation| operation.status == OperationStatus::Paused;
    let shown = status.operations.iter().filter(|operation| !paused(operation));
    let shown = shown.chain(status.operations.iter().filter(paused).take(PAUSED));
    for operation in shown {
        let by = match (operation.status, &operation.runner, operation.lease_until) {
            (OperationStatus::Running, Some(runner), Some(until)) if until < now => {
                format!(
                    "by {}, which said nothing since {}: it may be taken over",
                    text::line(runner),
                    times::ago(operation.updated_at, now)
                )
            }
            (OperationStatus::Running, Some(runner), _) => {
                format!("by {}, last step {}", text::line(runner), times::ago(operation.updated_at, now))
            }
            (OperationStatus::Pending, ..) => {
                format!(
                    "waiting for a worker since {}",
                    times::rough(now.duration_since(operation.updated_at).unwrap_or_default())
                )
            }
            _ => operation.note.as_deref().map(text::line).unwrap_or_default(),
        };
        lines.push(fit(&format!(
            "{} {} {}: {}; {by}",
            operation.verb, operation.id, operation.status, operation.counts
        )));
    }
    let more = status.operations.iter().filter(paused).count().saturating_sub(PAUSED) as u64;
    if more > 0 {
        lines.push(format!("and {more} more that are paused: dlq ops"));
    }
    for row in &status.under_way {
        let lease = row.lease_until.map_or_else(String::new, |until| {
            if until < now {
                format!(", lease over {}: it counts as died", times::ago(until, now))
            } else {
                format!(", lease ends {}", times::ago(until, now))
            }
        });
        lines.push(format!(
            "{} by {}{lease}",
            text::cut(&row.job_id, 40),
            text::line(row.owner.as_deref().unwrap_or("somebody"))
        ));
    }
    if status.summary.replaying > status.under_way.len() as u64 {
        lines.push(format!("{} all in all: dlq list --status replaying", counted(status.summary.replaying, "letter")));
    }
    for process in &status.facts.processes {
        lines.push(format!(
            "{} has jobs under way, last heartbeat {}",
            text::line(&process.name),
            times::ago(process.seen_at, now)
        ));
    }
    if lines.is_empty() {
        lines.push("nobody".to_owned());
    }
    lines
}

fn next_hint(status: &Status) -> Vec<String> {
    match status.facts.next_due {
        Some(at) => vec![format!(
            "a server asked to wait; the first letter is due {} ({})",
            times::ago(at, status.now()),
            times::full(at)
        )],
        None => vec!["no server asked to wait".to_owned()],
    }
}

fn discard(status: &Status) -> Vec<String> {
    let mut already = Vec::new();
    if status.discard.discarded > 0 {
        let n = counted(status.discard.discarded, "letter");
        already.push(format!("{n} discarded already: dlq list --status discarded"));
    }
    if status.discard.letters == 0 {
        already.insert(0, "nothing to discard".to_owned());
        return already;
    }
    let undone = match status.discard.kept {
        Some(kept) => format!("`dlq restore` undoes it for {}, then retention deletes", times::rough(kept)),
        None => "`dlq restore` undoes it, until somebody prunes".to_owned(),
    };
    let mut lines = vec![format!("would give up {}; {undone}", counted(status.discard.letters, "letter"))];
    lines.append(&mut already);
    lines
}

fn acts(status: &Status) -> Vec<String> {
    const SHOWN: usize = 8;
    let acts = status.acts.lines();
    let line = |(at, what): &(SystemTime, String)| fit(&format!("{:<11} {what}", times::ago(*at, status.now())));
    let mut lines: Vec<String> = acts.iter().take(SHOWN).map(line).collect();
    if lines.is_empty() {
        lines.push("nobody did anything by hand".to_owned());
    }
    if acts.len() > SHOWN {
        lines.push(format!("and {} more: dlq audit --by-hand", acts.len() - SHOWN));
    }
    let hour_ago = status.now().checked_sub(std::time::Duration::from_secs(3_600));
    if hour_ago.is_some_and(|at| status.acts.back_to > at) {
        lines.push(format!(
            "(looked back to {} only: much was written since)",
            times::ago(status.acts.back_to, status.now())
        ));
    }
    lines
}

fn files(status: &Status) -> Vec<String> {
    let mut line = vec![format!("database {}", bytes(status.bytes(FileRole::Database)))];
    line.push(format!("log {}", bytes(status.bytes(FileRole::Log))));
    if status.bytes(FileRole::Payloads) > 0 {
        line.push(format!("payload files {}", bytes(status.bytes(FileRole::Payloads))));
    }
    line.push(format!("spilled {}", status.summary.spilled));
    if let Some(free) = status.facts.free_bytes {
        line.push(format!("{} free on the disk", bytes(free)));
    }
    let mut lines = vec![line.join(", ")];
    for file in &status.facts.files {
        let path = text::cut(&file.path.to_string_lossy(), 4_096);
        match file.role {
            FileRole::Spill if file.lines.is_some_and(|lines| lines > 0) => {
                let by = if file.held { "of a running process" } else { "of a process that ended: dlq import --spill" };
                lines.push(styled(
                    CAREFUL,
                    &format!("{} wait in {path}, {by}", counted(file.lines.unwrap_or(0), "letter")),
                ));
            }
            FileRole::SpillBad => lines.push(styled(BAD, &format!("lines that could not be read: {path}"))),
            FileRole::SetAside => {
                lines.push(styled(BAD, &format!("set aside as corrupt ({}): {path}", bytes(file.bytes))));
            }
            _ => {}
        }
    }
    lines
}

fn writers(status: &Status) -> Vec<String> {
    if status.facts.writers.is_empty() {
        return vec!["no letter yet".to_owned()];
    }
    let mut versions: Vec<(String, u64)> = Vec::new();
    for (writer, n) in &status.facts.writers {
        // `program:pid@version`: the process does not matter here.
        let (program, version) = writer.rsplit_once('@').unwrap_or((writer, "?"));
        let program = program.rsplit_once(':').map_or(program, |(program, _)| program);
        let name = format!("{program} {version}");
        match versions.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known += n,
            None => versions.push((name, *n)),
        }
    }
    let said: Vec<String> = versions.iter().take(6).map(|(name, n)| format!("{} ({n})", text::line(name))).collect();
    vec![format!("{} of the newest parkings", said.join(", "))]
}

fn health(status: &Status) -> Vec<String> {
    // That this command only reads is no news.
    let told = status.health.iter().filter(|finding| finding.severity > Severity::Info);
    let mut lines: Vec<String> = told
        .map(|finding| {
            let style = if finding.severity == Severity::Error { BAD } else { CAREFUL };
            let mut said = vec![format!("{}: {}", finding.code, text::line(&finding.message))];
            if !finding.advice.is_empty() {
                said.push(format!("{:12}  -> {}", "", text::line(&finding.advice)));
            }
            styled(style, &said.join("\n"))
        })
        .collect();
    if lines.is_empty() {
        lines.push(styled(GOOD, "nothing wrong with the store (a quick look; dlq doctor --full takes longer)"));
    }
    lines
}

/// The two commands to type next.
fn next(status: &Status) -> Vec<String> {
    let summary = &status.summary;
    let now = status.now();
    // What stands still comes first: nobody else will see to it.
    let mut stuck: Vec<String> =
        status.operations.iter().filter_map(|operation| way_on(operation, now)).take(2).map(|way| fit(&way)).collect();
    let leases = status.under_way.iter().filter(|row| row.is_expired(now));
    if let Some(row) = leases.take(1).next() {
        stuck.push(format!(
            "dlq release {}    its lease is over: whoever replayed it is gone",
            text::cut(&row.job_id, 60)
        ));
    }
    let advice: [&str; 2] = if summary.owed() == 0 && summary.spilled > 0 {
        [
            "dlq import --spill        take in what waits in spill files",
            "dlq doctor                look at why it was spilled",
        ]
    } else if summary.is_clean() {
        [
            "dlq stats                 how the last 30 days were",
            "dlq check --max-parked 0  for cron: exit 3 when something is parked",
        ]
    } else if summary.total_parked() == 0 {
        [
            "dlq list --status abandoned,replaying   what is left",
            "dlq restore --status abandoned          park them again, with more replays",
        ]
    } else {
        [
            "dlq groups                which failures these are, by cause",
            "dlq replay --all          what a replay would do; changes nothing",
        ]
    };
    stuck.into_iter().chain(advice.into_iter().map(fit)).collect()
}

/// So many paused operations are told.
const PAUSED: usize = 3;

/// In one line beside a title.
fn fit(line: &str) -> String {
    text::cut(line, table::width().saturating_sub(12))
}
