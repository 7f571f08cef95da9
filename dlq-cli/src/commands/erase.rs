//! `dlq erase`.

use retry_runtime::dead_letter::{EraseRequest, FileRole, Filter, StoreFile};
use retry_runtime::ledger::LedgerKey;
use serde_json::json;

use super::context::{ChangeArgs, Context, print, print_json};
use super::table::counted;
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Store};
use crate::text;

/// Whose job.
#[derive(Debug, clap::Args)]
pub(crate) struct EraseArgs {
    /// The job's id, and its key in the ledger
    #[arg(value_name = "KEY")]
    key: String,
    /// Only of this operation
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn run(context: &Context, args: EraseArgs) -> Result<Exit, Failure> {
    if args.key.trim().is_empty() {
        return Err(Failure::usage("an empty key names no job"));
    }
    let store = context.open(Access::Write)?;
    let mut filter = Filter::all();
    filter.job_ids.push(args.key.clone());
    filter.kinds.extend(args.kind.clone());
    let letters = store.count(filter).await?;
    if letters == 0 && !may_be_elsewhere(&store, &args.key).await? {
        return Err(nothing(&store, &args.key));
    }
    let what = format!(
        "erase {} of job `{}` for good, with its ledger entries and spilled lines",
        counted(letters, "letter"),
        args.key
    );
    // It cannot be undone: asked about whatever the number.
    Context::ask(&args.key, &what, args.change.yes)?;
    let mut request = EraseRequest::job(args.key.clone());
    request = args.kind.into_iter().fold(request, EraseRequest::kind);
    let done = store.erase(request, args.change.actor()).await?;
    let found = [
        done.letters,
        done.attempts,
        done.events,
        done.ledger_entries,
        done.journal_entries,
        done.spill_lines,
        done.left.len() as u64,
    ];
    if found.iter().all(|n| *n == 0) {
        return Err(nothing(&store, &args.key));
    }
    if context.json {
        print_json(&json!({
            "store": store.shown(),
            "erased": {
                "letters": done.letters, "revisions": done.revisions, "attempts": done.attempts, "events": done.events,
                "ledger_entries": done.ledger_entries, "journal_entries": done.journal_entries,
                "payload_files": done.payload_files, "spill_lines": done.spill_lines, "left": done.left,
            },
        }))?;
    } else {
        let mut out = vec![
            format!("store: {}", store.shown()),
            format!(
                "erased: {}, {}, {}, {}, {}, {}",
                counted(done.letters, "letter"),
                counted(done.revisions, "payload"),
                counted(done.attempts, "attempt"),
                counted(done.events, "event"),
                counted(done.ledger_entries, "ledger key"),
                counted(done.spill_lines, "spilled line")
            ),
            "copies elsewhere - backups, exports, logs - are not reached".to_owned(),
        ];
        out.extend(done.left.iter().map(|left| format!("left: {}", text::line(left))));
        print(&out.join("\n"))?;
    }
    Ok(if done.left.is_empty() { Exit::DONE } else { Exit::FAILED })
}

/// Whether something of a job may be where letters are not: in the ledger, in the journal, in spill files.
async fn may_be_elsewhere(store: &Store, key: &str) -> Result<bool, Failure> {
    for scope in store.scopes().await? {
        if store.entry(LedgerKey::new(scope, key)).await?.is_some() {
            return Ok(true);
        }
    }
    let has_spill = |file: &StoreFile| matches!(file.role, FileRole::Spill | FileRole::SpillBad);
    let facts = store.facts().await?;
    Ok(!facts.processes.is_empty() || facts.files.iter().any(has_spill))
}

/// A typo is no erasure.
fn nothing(store: &Store, key: &str) -> Failure {
    Failure::failed(format!(
        "nothing of a job `{}` in {}: a job's whole id is wanted, as `dlq show` prints it",
        text::line(key),
        store.shown()
    ))
}
