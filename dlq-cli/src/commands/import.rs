//! `dlq import`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use retry_runtime::dead_letter::{FileRole, Importer, StoreFacts};
use serde_json::json;

use super::context::{ChangeArgs, Context, aside, print, print_json};
use super::interrupt::interrupted;
use super::progress::Progress;
use super::table::counted;
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Store};
use crate::text;

/// From where.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// A file of exported letters, `-` for stdin
    #[arg(value_name = "FILE", required_unless_present = "spill")]
    file: Option<PathBuf>,
    /// What waits in this store's spill files of processes that ended
    #[arg(long, conflicts_with = "file")]
    spill: bool,
    /// Make the store where there is none
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn run(context: &Context, args: ImportArgs) -> Result<Exit, Failure> {
    match &args.file {
        Some(file) => exported(context, &args, file).await,
        None => spilled(context, args.create).await,
    }
}

async fn exported(context: &Context, args: &ImportArgs, path: &std::path::Path) -> Result<Exit, Failure> {
    let is_stdin = path.as_os_str() == "-";
    // Before a store is made for it: a name that is wrong makes none.
    let (mut reader, size): (Box<dyn BufRead + Send>, Option<u64>) = if is_stdin {
        (Box::new(BufReader::new(io::stdin())), None)
    } else {
        let open = |error| Failure::failed(format!("cannot read `{}`: {error}", path.display()));
        let file = File::open(path).map_err(open)?;
        let size = file.metadata().ok().map(|metadata| metadata.len());
        (Box::new(BufReader::new(file)), size)
    };
    let store = context.open(if args.create { Access::Create } else { Access::Write })?;
    let bar = Progress::of(size, "bytes");
    let mut importer = Importer::new(store.all(), args.change.actor());
    let mut stop = Box::pin(interrupted());
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(Failure::from)? == 0 {
            break;
        }
        bar.add(line.len() as u64);
        let taken = importer.line(line.strip_suffix(b"\n").unwrap_or(&line));
        tokio::select! {
            biased;
            () = &mut stop => {
                bar.end();
                aside("interrupted: what was taken in stays; run it again, which counts nothing twice");
                return Ok(Exit::INTERRUPTED);
            }
            taken = taken => taken?,
        }
    }
    let report = importer.finish().await?;
    bar.end();
    store.close(Duration::from_secs(10)).await;
    if context.json {
        let refused: Vec<_> = report.refused.iter().map(|(line, why)| json!({ "line": line, "why": why })).collect();
        print_json(&json!({
            "store": store.shown(), "new": report.new, "merged": report.merged, "known": report.known,
            "refused_lines": report.refused_lines, "refused": refused, "redacted": report.redacted, "whole": report.is_whole,
        }))?;
    } else {
        let mut out = vec![
            format!("store: {}", store.shown()),
            format!(
                "{} new, {} merged with letters of the same jobs, {} known already",
                report.new, report.merged, report.known
            ),
        ];
        for (line, why) in report.refused.iter().take(20) {
            out.push(format!("line {line} refused: {}", text::line(why)));
        }
        if report.refused_lines > 20 {
            out.push(format!("{} lines refused in all", report.refused_lines));
        }
        if !report.is_whole {
            out.push("the file is not a whole export: its last line is missing, or does not fit the others".to_owned());
        }
        if report.redacted {
            out.push(
                "secrets were taken out when it was exported: such letters are skipped by replays until edited"
                    .to_owned(),
            );
        }
        print(&out.join("\n"))?;
    }
    Ok(if report.refused_lines == 0 && report.is_whole { Exit::DONE } else { Exit::FAILED })
}

/// A store that is opened for writing takes in what was spilled; waits until it has.
async fn spilled(context: &Context, create: bool) -> Result<Exit, Failure> {
    let before = match context.open(Access::Read) {
        Ok(store) => {
            let facts = store.facts().await?;
            store.close(Duration::from_secs(5)).await;
            Some(facts)
        }
        Err(failure) if create => {
            aside(&format!("{failure}: it is made"));
            None
        }
        Err(failure) => return Err(failure),
    };
    let store = context.open(if create { Access::Create } else { Access::Write })?;
    let waiting = before.as_ref().map_or(0, left);
    let bar = Progress::of(Some(waiting), "letters");
    let mut facts = store.facts().await?;
    // The store's own thread does it, file by file, as long as that gets on.
    let (mut still, mut idle) = (left(&facts), 0);
    while still > 0 && idle < 100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        facts = store.facts().await?;
        idle = if left(&facts) < still { 0 } else { idle + 1 };
        still = left(&facts);
        bar.at(waiting.saturating_sub(still), "");
    }
    bar.end();
    let taken = waiting.saturating_sub(still);
    let held: u64 = spills(&facts).filter(|file| file.held).filter_map(|file| file.lines).sum();
    let bad: Vec<String> = facts
        .files
        .iter()
        .filter(|file| file.role == FileRole::SpillBad)
        .map(|file| file.path.to_string_lossy().into_owned())
        .collect();
    store.close(Duration::from_secs(10)).await;
    say(context, &store, taken, held, still, &bad)?;
    Ok(if still == 0 && bad.is_empty() { Exit::DONE } else { Exit::FAILED })
}

fn say(context: &Context, store: &Store, taken: u64, held: u64, still: u64, bad: &[String]) -> Result<(), Failure> {
    if context.json {
        return print_json(&json!({ "store": store.shown(), "taken": taken, "held": held, "left": still, "bad": bad }));
    }
    let mut out =
        vec![format!("store: {}", store.shown()), format!("{} taken in from spill files", counted(taken, "line"))];
    if held > 0 {
        out.push(format!("{} in files of running processes are left to them", counted(held, "line")));
    }
    if still > 0 {
        out.push(format!("{} could not be taken in: dlq doctor says why", counted(still, "line")));
    }
    out.extend(bad.iter().map(|path| format!("lines that could not be read: {}", text::cut(path, 4_096))));
    print(&out.join("\n"))
}

fn spills(facts: &StoreFacts) -> impl Iterator<Item = &retry_runtime::dead_letter::StoreFile> {
    facts.files.iter().filter(|file| file.role == FileRole::Spill)
}

/// Lines in files that nobody holds.
fn left(facts: &StoreFacts) -> u64 {
    spills(facts).filter(|file| !file.held).filter_map(|file| file.lines).sum()
}
