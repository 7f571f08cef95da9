//! `dlq ledger`.

use retry_runtime::ledger::{LedgerEntry, LedgerKey, LedgerQuery, LedgerStatus};
use serde_json::json;

use super::context::{ChangeArgs, Context, print, print_json};
use super::table::{Column, matching, table};
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Store};
use crate::{documents, text, times};

/// Which keys.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LedgerArgs {
    #[command(subcommand)]
    command: Option<LedgerCommand>,
    /// The keys of this scope: an operation's name, unless the program says otherwise
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Only this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Only these: open, ok, gone
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only keys that were tried so often
    #[arg(long, value_name = "N")]
    attempts_at_least: Option<u32>,
    /// At most so many; 50 unless told otherwise
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

/// What to do with a key.
#[derive(Debug, clap::Subcommand)]
enum LedgerCommand {
    /// Open a key again without attempts: the next run tries it
    #[command(
        after_help = "Example:\n  dlq ledger reset https://example.org/a.png --scope image_archive --reason 'is back'"
    )]
    Reset {
        /// The key
        key: String,
        /// Its scope, where several have the key
        #[arg(long, value_name = "SCOPE")]
        scope: Option<String>,
        #[command(flatten)]
        change: ChangeArgs,
    },
}

impl LedgerArgs {
    /// Whether keys are asked for, and not how many there are of each scope.
    fn names_keys(&self) -> bool {
        self.key.is_some()
            || self.scope.is_some()
            || self.status.is_some()
            || self.attempts_at_least.is_some()
            || self.limit.is_some()
    }
}

/// So many keys where nothing is said.
const USUAL: u32 = 50;

pub(super) async fn run(context: &Context, args: LedgerArgs) -> Result<Exit, Failure> {
    match args.command {
        Some(LedgerCommand::Reset { ref key, ref scope, ref change }) => {
            reset(context, key, scope.as_deref(), change).await
        }
        None if args.names_keys() => entries(context, &args).await,
        None => scopes(context).await,
    }
}

async fn scopes(context: &Context) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let mut found = Vec::new();
    for scope in store.scopes().await? {
        found.push((scope.clone(), store.counts(scope).await?));
    }
    if context.json {
        let scopes: Vec<_> = found
            .iter()
            .map(|(scope, counts)| json!({ "scope": scope, "open": counts.open, "ok": counts.ok, "gone": counts.gone }))
            .collect();
        print_json(&json!({ "store": store.shown(), "scopes": scopes }))?;
        return Ok(Exit::DONE);
    }
    let columns = [Column::Right("OPEN"), Column::Right("OK"), Column::Right("GONE"), Column::Rest("SCOPE")];
    let rows = found.iter().map(|(scope, counts)| {
        vec![counts.open.to_string(), counts.ok.to_string(), counts.gone.to_string(), scope.clone()]
    });
    let shown = if found.is_empty() { "the ledger is empty".to_owned() } else { table(&columns, rows) };
    print(&format!("store: {}\n{shown}", store.shown()))?;
    Ok(Exit::DONE)
}

async fn entries(context: &Context, args: &LedgerArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let status = args.status.as_deref().map(|word| {
        LedgerStatus::parse(word)
            .ok_or_else(|| Failure::usage(format!("status `{}`: accepted are open, ok, gone", text::line(word))))
    });
    let status = status.transpose()?;
    let (found, total) = match (&args.key, &args.scope) {
        (Some(key), scope) => {
            let mut found = of_key(&store, key, scope.as_deref()).await?;
            found.retain(|entry| status.is_none_or(|status| entry.status == status));
            found.retain(|entry| entry.attempts >= args.attempts_at_least.unwrap_or(0));
            let total = found.len() as u64;
            (found, total)
        }
        (None, scope) => {
            let scopes = match scope {
                Some(scope) => vec![scope.clone()],
                None => store.scopes().await?,
            };
            let (mut found, mut total) = (Vec::new(), 0);
            for scope in scopes {
                let counts = store.counts(scope.clone()).await?;
                total += match status {
                    Some(LedgerStatus::Open) => counts.open,
                    Some(LedgerStatus::Ok) => counts.ok,
                    Some(LedgerStatus::Gone) => counts.gone,
                    _ => counts.total(),
                };
                let had = u32::try_from(found.len()).unwrap_or(u32::MAX);
                let left = args.limit.unwrap_or(USUAL).saturating_sub(had);
                if left > 0 {
                    let least = args.attempts_at_least.unwrap_or(0);
                    let mut query = LedgerQuery::of(scope).attempts_at_least(least).limit(left);
                    query.status = status;
                    found.extend(store.page(query).await?.entries);
                }
            }
            (found, total)
        }
    };
    if context.json {
        let entries: Vec<_> = found.iter().map(documents::ledger).collect();
        print_json(&json!({ "store": store.shown(), "shown": entries.len(), "matching": total, "entries": entries }))?;
        return Ok(Exit::DONE);
    }
    let now = store.facts().await?.now;
    let columns = [
        Column::Left("STATUS"),
        Column::Right("ATTEMPTS"),
        Column::Left("LAST SEEN"),
        Column::Left("NOT BEFORE"),
        Column::Left("SCOPE"),
        Column::Rest("KEY"),
    ];
    let rows = found.iter().map(|entry| {
        vec![
            entry.status.as_str().to_owned(),
            entry.attempts.to_string(),
            times::ago(entry.last_seen, now),
            entry.next_at.map(|at| times::ago(at, now)).unwrap_or_default(),
            text::cut(&entry.key.scope, 32),
            entry.key.key.clone(),
        ]
    });
    print(&format!("store: {}\n{}\n{}", store.shown(), table(&columns, rows), matching(found.len() as u64, total)))?;
    Ok(Exit::DONE)
}

/// The entries of a key, in one scope or in all of them.
async fn of_key(store: &Store, key: &str, scope: Option<&str>) -> Result<Vec<LedgerEntry>, Failure> {
    let scopes = match scope {
        Some(scope) => vec![scope.to_owned()],
        None => store.scopes().await?,
    };
    let mut found = Vec::new();
    for scope in scopes {
        found.extend(store.entry(LedgerKey::new(scope, key)).await?);
    }
    Ok(found)
}

async fn reset(context: &Context, key: &str, scope: Option<&str>, change: &ChangeArgs) -> Result<Exit, Failure> {
    if change.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
        return Err(Failure::usage("a key is opened again for a reason: say --reason TEXT"));
    }
    let store = context.open(Access::Write)?;
    let found = of_key(&store, key, scope).await?;
    let entry = match found.as_slice() {
        [entry] => entry,
        [] => return Err(Failure::failed(format!("no key `{}` in the ledger of {}", text::line(key), store.shown()))),
        several => {
            let scopes: Vec<_> = several.iter().map(|entry| text::line(&entry.key.scope)).collect();
            return Err(Failure::failed(format!(
                "several scopes have the key `{}`: say --scope, one of {}",
                text::line(key),
                scopes.join(", ")
            )));
        }
    };
    let reset = store.reset(entry.key.clone(), change.actor()).await?;
    let reset = reset.ok_or_else(|| Failure::failed("the key is gone"))?;
    if context.json {
        print_json(&json!({ "store": store.shown(), "entry": documents::ledger(&reset) }))?;
    } else {
        print(&format!(
            "store: {}\n{} is open again, without attempts",
            store.shown(),
            text::line(&reset.key.to_string())
        ))?;
    }
    Ok(Exit::DONE)
}
