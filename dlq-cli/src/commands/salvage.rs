//! `dlq salvage`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dlq_sqlite::{BooksTaken, Salvaged};
use retry_runtime::dead_letter::{Exporter, FileRole, Filter, ImportReport, Importer};
use serde_json::{Value, json};

use super::context::{ChangeArgs, Context, aside, print, print_json};
use super::edit::private_directory;
use super::interrupt::interrupted;
use super::progress::Progress;
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Store};
use crate::text;

/// Of which file.
#[derive(Debug, clap::Args)]
pub(crate) struct SalvageArgs {
    /// A damaged file; without it, all that this store has set aside
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    change: ChangeArgs,
}

/// What came home of one file.
struct Home {
    file: PathBuf,
    saved: Salvaged,
    report: ImportReport,
    books: BooksTaken,
}

impl Home {
    /// What did not come home.
    fn losses(&self) -> Vec<String> {
        let mut losses = self.saved.losses();
        if self.report.refused_lines > 0 {
            losses.push(format!("{} letters were refused", self.report.refused_lines));
        }
        losses
    }
}

pub(super) async fn run(context: &Context, args: SalvageArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let files = match args.file {
        Some(file) => vec![std::path::absolute(&file).unwrap_or(file)],
        None => {
            let facts = store.facts().await?;
            facts.files.into_iter().filter(|file| file.role == FileRole::SetAside).map(|file| file.path).collect()
        }
    };
    let mut homes = Vec::new();
    for file in files {
        let Some(home) = one(&store, &file, &args.change).await? else {
            aside("interrupted: what was taken in stays; run it again, which counts nothing twice");
            return Ok(Exit::INTERRUPTED);
        };
        homes.push(home);
    }
    store.close(Duration::from_secs(10)).await;
    say(context, &store, &homes)?;
    let is_whole = homes.iter().all(|home| home.losses().is_empty());
    Ok(if is_whole { Exit::DONE } else { Exit::FAILED })
}

/// `None`: it was interrupted.
async fn one(store: &Store, file: &Path, change: &ChangeArgs) -> Result<Option<Home>, Failure> {
    let directory = private_directory()
        .map_err(|error| Failure::failed(format!("cannot make a directory for what is saved: {error}")))?;
    let (saved, how) = Store::salvage(file, directory.path()).await?;
    let bar = Progress::of(Some(how.letters), "letters");
    let mut exporter = Exporter::new(saved.all(), Filter::all());
    let mut importer = Importer::new(store.all(), change.actor());
    let mut stop = Box::pin(interrupted());
    loop {
        let lines = tokio::select! {
            biased;
            () = &mut stop => {
                bar.end();
                return Ok(None);
            }
            lines = exporter.next() => lines?,
        };
        let Some(lines) = lines else { break };
        for line in lines.lines() {
            importer.line(line.as_bytes()).await?;
            bar.add(1);
        }
    }
    let report = importer.finish().await?;
    bar.end();
    saved.close(Duration::from_secs(5)).await;
    let books = store.take_books(how.clone(), change.actor()).await?;
    Ok(Some(Home { file: file.to_owned(), saved: how, report, books }))
}

/// What could be read. The place of the copy is nobody's business: it is gone in a moment.
fn read(saved: &Salvaged) -> String {
    saved.to_string().replace(&format!(" in {}", saved.path.display()), " could be read")
}

fn say(context: &Context, store: &Store, homes: &[Home]) -> Result<(), Failure> {
    if context.json {
        let files: Vec<Value> = homes
            .iter()
            .map(|home| {
                let report = &home.report;
                json!({
                    "file": home.file.to_string_lossy(), "text": read(&home.saved), "new": report.new,
                    "merged": report.merged, "known": report.known, "refused_lines": report.refused_lines,
                    "ledger": home.books.ledger, "counters": home.books.counters,
                    "counters_known": home.books.counters_known, "losses": home.losses(),
                })
            })
            .collect();
        return print_json(&json!({ "store": store.shown(), "files": files }));
    }
    let mut out = vec![format!("store: {}", store.shown())];
    for home in homes {
        let path = text::cut(&home.file.to_string_lossy(), 4_096);
        let report = &home.report;
        out.push(format!("{path}: {}", text::lines(&read(&home.saved))));
        out.push(format!(
            "  {} new here, {} merged, {} known already; {}",
            report.new, report.merged, report.known, home.books
        ));
        out.extend(home.losses().iter().map(|loss| format!("  NOT SAVED: {}", text::line(loss))));
        for (line, why) in report.refused.iter().take(10) {
            out.push(format!("  refused: letter {line}: {}", text::line(why)));
        }
        out.push(format!("  keep it elsewhere, with its -wal and -shm, and move it away: until then it is told of (mv {path}* /elsewhere/)"));
    }
    if homes.is_empty() {
        out.push("no file was set aside".to_owned());
    }
    print(&out.join("\n"))
}
