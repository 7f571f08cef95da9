//! What the command's first page says, for the first screen: a line or two for each question of the night.

use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{EventRecord, FileRole, Operation, OperationStatus, Severity, StoreFacts};

use super::super::app::App;
use super::super::facts::Facts;
use super::super::params::address;
use super::super::shown;
use super::operations::waits_for_worker;
use super::{list_of, segment};
use crate::filters;

/// Lines of one answer, at most.
const LINES: usize = 3;

/// One question and what is known.
pub(super) struct Answer {
    pub(super) name: &'static str,
    pub(super) lines: Vec<Line>,
}

pub(super) struct Line {
    pub(super) text: String,
    /// Where there is more.
    pub(super) to: String,
    pub(super) tone: &'static str,
}

impl Line {
    fn new(text: impl AsRef<str>) -> Self {
        Self { text: shown::line(text.as_ref(), 600), to: String::new(), tone: "" }
    }

    fn to(mut self, to: String) -> Self {
        self.to = to;
        self
    }

    fn tone(mut self, tone: &'static str) -> Self {
        self.tone = tone;
        self
    }
}

pub(super) fn answers(app: &App, facts: &Facts, now: SystemTime) -> Vec<Answer> {
    let store = facts.now.numbers.store.as_ref();
    let mut answers = vec![
        Answer { name: "new", lines: new(app, facts, now) },
        Answer { name: "replaying", lines: replaying(app, facts, now) },
        Answer { name: "done by hand in the last hour", lines: acts(app, facts, now) },
        Answer { name: "a discard", lines: discard(app, facts) },
    ];
    if let Some(store) = store {
        answers.push(Answer { name: "next hint", lines: vec![next_hint(store, now)] });
        answers.push(Answer { name: "files", lines: files(facts, store) });
        answers.push(Answer { name: "written by", lines: vec![writers(store)] });
    }
    answers.push(Answer { name: "health", lines: health(facts) });
    answers
}

fn new(app: &App, facts: &Facts, now: SystemTime) -> Vec<Line> {
    if facts.is_counting() {
        return vec![Line::new("being counted")];
    }
    let counted = facts.counted();
    let sum = |skip: usize, n: usize| counted.hours.iter().rev().skip(skip).take(n).sum::<u64>();
    let mut lines = vec![Line::new(format!(
        "{} in the last 24 hours, {} in the 24 before",
        shown::count(sum(0, 25), "parking", "parkings"),
        shown::number(sum(25, 24))
    ))];
    match &counted.new {
        None => lines.push(Line::new("which failures are new cannot be read").tone("bad")),
        Some(new) if new.is_empty() => lines.push(Line::new("no failure that was not there yesterday")),
        Some(new) => {
            for group in new.iter().take(LINES) {
                let q = format!("owed {}", filters::word("group", &group.group));
                let said = format!(
                    "{}, first {}: {} of {}",
                    shown::count(group.letters, "letter", "letters"),
                    shown::ago(group.first_seen, now),
                    group.newest.error_class,
                    group.newest.kind
                );
                lines.push(Line::new(said).to(list_of(app, &q)));
            }
            if new.len() > LINES {
                let to = address(&app.path("/groups"), &[("order", "newest")]);
                lines.push(Line::new(format!("and {} more", new.len() - LINES)).to(to));
            }
        }
    }
    lines
}

/// Who is at it: operations, letters under a lease, programs with jobs under way.
fn replaying(app: &App, facts: &Facts, now: SystemTime) -> Vec<Line> {
    let known = &facts.now.numbers;
    let mut lines: Vec<_> =
        known.operations.iter().take(LINES).map(|op| Line::new(operation(app, op, now)).to(at(app, &op.id))).collect();
    if known.operations.len() > LINES {
        let more = format!("and {} more operations", known.operations.len() - LINES);
        lines.push(Line::new(more).to(app.path("/operations")));
    }
    for row in known.replaying.iter().take(LINES) {
        let owner = row.owner.as_deref().unwrap_or("somebody");
        let lease = match row.lease_until {
            Some(end) if end < now => format!(", lease over {}: it counts as died", shown::ago(end, now)),
            Some(end) => format!(", lease ends {}", shown::ago(end, now)),
            None => String::new(),
        };
        let said = format!("{owner} replays {} of {}{lease}", row.job_id, row.kind);
        let to = app.path(&format!("/letters/{}", segment(&row.letter_id)));
        lines.push(Line::new(said).to(to));
    }
    if known.summary.replaying > LINES as u64 {
        let all = format!("{} all in all", shown::count(known.summary.replaying, "letter", "letters"));
        lines.push(Line::new(all).to(list_of(app, "status:replaying")));
    }
    for process in known.store.iter().flat_map(|store| &store.processes).take(LINES) {
        let seen = shown::ago(process.seen_at, now);
        lines.push(Line::new(format!("{} has jobs under way, last heartbeat {seen}", process.name)));
    }
    if lines.is_empty() {
        lines.push(Line::new("nobody is replaying"));
    }
    lines
}

fn operation(app: &App, op: &Operation, now: SystemTime) -> String {
    let by = match (op.status, &op.runner, op.lease_until) {
        (OperationStatus::Running, Some(runner), Some(end)) if end < now => {
            format!("{runner} said nothing since {}: it may be taken over", shown::ago(op.updated_at, now))
        }
        (OperationStatus::Running, Some(runner), _) => {
            format!("by {runner}, last step {}", shown::ago(op.updated_at, now))
        }
        _ if waits_for_worker(app, op) => "waits for a worker".to_owned(),
        _ => op.note.clone().unwrap_or_default(),
    };
    let by = if by.is_empty() { by } else { format!("; {by}") };
    format!("{} {}: {}{by}", op.verb, op.status, op.counts)
}

/// What people did in the last hour, and who it was.
fn acts(app: &App, facts: &Facts, now: SystemTime) -> Vec<Line> {
    if facts.is_counting() {
        return vec![Line::new("being looked through")];
    }
    let Some(acts) = &facts.counted().acts else {
        return vec![Line::new("the audit cannot be read").tone("bad")];
    };
    let mut lines: Vec<_> = acts
        .events
        .iter()
        .take(LINES + 1)
        .map(|event| {
            let to = match (&event.letter_id, &event.operation) {
                (_, Some(operation)) => at(app, operation),
                (Some(letter), None) => app.path(&format!("/letters/{}", segment(letter))),
                (None, None) => String::new(),
            };
            Line::new(act(event, now)).to(to)
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::new("nobody did anything"));
    }
    if acts.events.len() > LINES + 1 {
        let to = address(&app.path("/audit"), &[("by", "hand"), ("since", "1h")]);
        lines.push(Line::new(format!("and {} more", acts.events.len() - LINES - 1)).to(to));
    }
    if acts.back_to > now.checked_sub(Duration::from_secs(3_600)).unwrap_or(now) {
        let back = shown::ago(acts.back_to, now);
        lines.push(Line::new(format!("(looked back to {back} only: much was written since)")));
    }
    lines
}

fn act(event: &EventRecord, now: SystemTime) -> String {
    let what = match event.what.as_str() {
        "operation_pending" => "resumed an operation".to_owned(),
        what => match what.strip_prefix("operation_") {
            Some(what) => format!("{what} an operation"),
            None => what.replace('_', " "),
        },
    };
    let more = [event.reason.as_deref().unwrap_or_default(), &event.detail];
    let more: Vec<_> = more.into_iter().filter(|text| !text.is_empty()).collect();
    let more = if more.is_empty() { String::new() } else { format!(": {}", more.join(" · ")) };
    let who = event.actor.as_deref().unwrap_or("somebody");
    shown::line(&format!("{}: {who} {what}{more}", shown::ago(event.at, now)), 160)
}

/// What a discard of all would lose, and until when it can be undone.
fn discard(app: &App, facts: &Facts) -> Vec<Line> {
    let (known, summary) = (&facts.now.numbers, &facts.now.numbers.summary);
    let n = summary.total_parked() + summary.abandoned;
    let undone = match known.store.as_ref().and_then(|store| store.discarded_kept) {
        Some(kept) => format!("can be restored for {}, then retention deletes", shown::span(kept)),
        None => "can be restored until somebody prunes".to_owned(),
    };
    let mut lines = vec![if n == 0 {
        Line::new("would give up nothing")
    } else {
        Line::new(format!("of all would give up {}; it {undone}", shown::count(n, "letter", "letters")))
    }];
    let gone = facts.counted().discarded;
    if gone > 0 {
        let said = format!("{} discarded already, which {undone}", shown::count(gone, "letter is", "letters are"));
        lines.push(Line::new(said).to(list_of(app, "status:discarded")));
    }
    lines
}

fn next_hint(store: &StoreFacts, now: SystemTime) -> Line {
    match store.next_due {
        Some(due) => Line::new(format!(
            "a server asked to wait; the first letter is due {} ({})",
            shown::ago(due, now),
            shown::moment(due)
        )),
        None => Line::new("no server asked to wait"),
    }
}

/// Disk, log, spill and set-aside files, also where there are none.
fn files(facts: &Facts, store: &StoreFacts) -> Vec<Line> {
    let bytes = |role| store.files.iter().filter(|file| file.role == role).map(|file| file.bytes).sum::<u64>();
    let mut said = vec![
        format!("database {}", shown::bytes(bytes(FileRole::Database))),
        format!("log {}", shown::bytes(bytes(FileRole::Log))),
    ];
    if bytes(FileRole::Payloads) > 0 {
        said.push(format!("payload files {}", shown::bytes(bytes(FileRole::Payloads))));
    }
    if let Some(free) = store.free_bytes {
        said.push(format!("{} free on the disk", shown::bytes(free)));
    }
    let mut lines =
        vec![if store.files.is_empty() { Line::new("no files: in memory") } else { Line::new(said.join(", ")) }];
    let summary = &facts.now.numbers.summary;
    if summary.spilled == 0 && summary.set_aside == 0 {
        lines.push(Line::new("nothing spilled, nothing set aside"));
    }
    if summary.spilled > 0 {
        let wait = shown::count(summary.spilled, "letter waits", "letters wait");
        lines.push(Line::new(format!("{wait} in spill files: dlq import --spill")).tone("warn"));
    }
    for file in
        store.files.iter().filter(|file| matches!(file.role, FileRole::SpillBad | FileRole::SetAside)).take(LINES)
    {
        let what =
            if file.role == FileRole::SetAside { "set aside as corrupt" } else { "lines that could not be read" };
        lines.push(Line::new(format!("{what} ({}): {}", shown::bytes(file.bytes), file.path.display())).tone("bad"));
    }
    lines
}

/// Programs and versions; which process it was does not matter here.
fn writers(store: &StoreFacts) -> Line {
    let mut versions: Vec<(String, u64)> = Vec::new();
    for (writer, n) in &store.writers {
        // `program:pid@version`.
        let (program, version) = writer.rsplit_once('@').unwrap_or((writer, ""));
        let program = program.rsplit_once(':').map_or(program, |(program, _)| program);
        let name = format!("{program} {version}");
        match versions.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known += n,
            None => versions.push((name, *n)),
        }
    }
    if versions.is_empty() {
        return Line::new("no letter yet");
    }
    let said: Vec<_> =
        versions.iter().take(4).map(|(name, n)| format!("{} ({})", name.trim(), shown::number(*n))).collect();
    Line::new(format!("{} of the newest letters", said.join(", ")))
}

fn health(facts: &Facts) -> Vec<Line> {
    // That a handle only reads is no news.
    let told = facts.counted().findings.iter().filter(|found| found.severity > Severity::Info);
    let mut lines: Vec<_> = told
        .map(|found| {
            let tone = if found.severity == Severity::Error { "bad" } else { "warn" };
            let advice = if found.advice.is_empty() { String::new() } else { format!(": {}", found.advice) };
            Line::new(format!("{}: {}{advice}", found.severity.as_str(), found.message)).tone(tone)
        })
        .collect();
    for degraded in &facts.now.numbers.degraded {
        lines.push(Line::new(format!("degraded today: {degraded}")).tone("warn"));
    }
    if facts.is_counting() {
        lines.push(Line::new("being examined"));
    } else if lines.is_empty() {
        lines.push(Line::new("nothing found by a quick examination").tone("ok"));
    }
    lines
}

fn at(app: &App, operation: &str) -> String {
    app.path(&format!("/operations/{}", segment(operation)))
}
