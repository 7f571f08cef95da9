//! `dlq export`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use retry_runtime::dead_letter::{Exporter, Redactor};
use serde_json::json;

use super::context::{Context, aside, print_json};
use super::interrupt::interrupted;
use super::progress::Progress;
use super::table::matching;
use crate::exit::{Exit, Failure};
use crate::filters::FilterArgs;
use crate::stores::Access;

/// Which letters, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// A file where nothing is yet, for its owner alone; stdout by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Take secrets out of payloads: such letters cannot be replayed elsewhere
    #[arg(long)]
    redact: bool,
}

pub(super) async fn run(context: &Context, args: ExportArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let meant = args.filter.meant(&store, store.facts().await?.now).await?;
    if meant.limit.is_some() {
        return Err(Failure::usage("an export takes everything that matches: leave --limit out"));
    }
    let count = store.count(meant.filter.clone()).await?;
    let mut exporter = Exporter::new(store.all(), meant.filter);
    if args.redact {
        exporter = exporter.redacted(Redactor::standard());
    }
    let file = args.out.as_deref().map(create).transpose()?;
    let mut out: Box<dyn Write> = match &file {
        Some(file) => Box::new(BufWriter::new(file)),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    };
    let bar = Progress::of(Some(count), "letters");
    let mut letters = 0_u64;
    let mut stop = Box::pin(interrupted());
    loop {
        let lines = tokio::select! {
            biased;
            () = &mut stop => {
                bar.end();
                drop(out);
                if let Some(path) = &args.out {
                    // Half an export is none.
                    let _removed = std::fs::remove_file(path);
                }
                aside("interrupted: nothing is left half-written; run it again");
                return Ok(Exit::INTERRUPTED);
            }
            lines = exporter.next() => lines?,
        };
        let Some(lines) = lines else { break };
        letters += lines.matches('\n').count() as u64;
        out.write_all(lines.as_bytes())?;
        bar.at(letters.min(count), "");
    }
    out.flush()?;
    drop(out);
    if let Some(file) = &file {
        file.sync_all()?;
    }
    bar.end();
    // The first line and the last one are no letters.
    let letters = letters.saturating_sub(2);
    match (&args.out, context.json) {
        (Some(path), true) => print_json(&json!({
            "store": store.shown(), "letters": letters, "matching": count, "redacted": args.redact, "file": path.to_string_lossy(),
        }))?,
        (Some(path), false) => {
            aside(&format!("store: {}\n{} in {}", store.shown(), matching(letters, count), path.display()));
        }
        (None, _) => aside(&format!("store: {}\n{}", store.shown(), matching(letters, count))),
    }
    Ok(Exit::DONE)
}

fn create(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            let path = path.display();
            return Failure::failed(format!("`{path}` is there already: name another file, or move that one away"));
        }
        Failure::failed(format!("cannot create `{}`: {error}", path.display()))
    })
}
