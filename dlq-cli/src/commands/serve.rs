//! `dlq serve`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use retry_runtime::dead_letter::{Operation, OperationRunner, Verb};
use retry_runtime::error::{StoreError, StoreErrorKind};

use super::by::ByArgs;
use super::context::{ChangeArgs, Context, aside, host, print};
use super::interrupt::interrupted;
use crate::exit::{Exit, Failure};
use crate::means::Means;
use crate::serve::{Dashboard, Identity, Means as ByWhom, Role, Tokens, listen, new_token};
use crate::stores::{Access, Store};
use crate::text;

/// Where, for whom, and what they may do.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The address; one that other machines reach needs --tokens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8170")]
    listen: SocketAddr,
    /// Replay, discard, edit and the like; without it the dashboard only reads
    #[arg(long)]
    allow_actions: bool,
    /// Who may come in: a file of lines `name role sha256`, for its owner alone
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Make a token for this name, show it once, and add its line to the file of --tokens, or print it
    #[arg(long, value_name = "NAME")]
    new_token: Option<String>,
    /// The role of --new-token: viewer, operator or admin
    #[arg(long, value_name = "ROLE", default_value = "viewer", requires = "new_token")]
    role: String,
    /// Behind a proxy that speaks HTTPS: cookies are for HTTPS alone
    #[arg(long)]
    behind_tls: bool,
    /// Names it is reached by besides its address, for example dlq.example.org
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    #[command(flatten)]
    by: ByArgs,
}

pub(super) async fn run(context: &Context, args: ServeArgs) -> Result<Exit, Failure> {
    if let Some(name) = &args.new_token {
        return token(name, &args);
    }
    let means = args.by.means()?;
    if means.is_some() && !args.allow_actions {
        return Err(Failure::usage("--exec and --http do letters again: say --allow-actions too"));
    }
    let store = context.open(if args.allow_actions { Access::Write } else { Access::Read })?;
    let reader = context.open(Access::Read)?;
    let mut dashboard = Dashboard::new(store.all())
        .numbers_by(reader.all())
        .named(store.shown())
        .allow_actions(args.allow_actions)
        .behind_tls(args.behind_tls);
    dashboard = match &args.tokens {
        Some(file) => dashboard.tokens(Tokens::read(file).map_err(|error| Failure::failed(error.to_string()))?),
        None => {
            let role = if args.allow_actions { Role::Admin } else { Role::Viewer };
            dashboard.open_to(Identity::new(ChangeArgs::default().actor().name, role))
        }
    };
    if !args.host.is_empty() {
        dashboard = dashboard.hosts(args.host);
    }
    let taking = take_waiting(store.clone(), means.clone());
    if let Some(means) = means {
        dashboard = dashboard.means(by_itself(&store, means));
    }
    let listening = listen(dashboard, args.listen).await.map_err(|error| Failure::failed(error.to_string()))?;
    let may = if args.allow_actions { "actions are allowed" } else { "it only reads: --allow-actions lets it act" };
    // On stdout, flushed: a script waits for it.
    print(&format!("store: {}\nhttp://{}/ ({may}; Ctrl-C ends)", store.shown(), listening.address()))?;
    tokio::select! {
        () = listening.run(interrupted()) => {}
        () = taking => {}
    }
    store.close(Duration::from_secs(10)).await;
    Ok(Exit::DONE)
}

/// This process does the jobs of operations that are started in it.
fn by_itself(store: &Store, means: Means) -> ByWhom {
    let said = format!("by {}", means.said());
    let store = store.clone();
    ByWhom::own(said, move |op_id| Box::pin(run_here(store.clone(), means.clone(), op_id)))
}

async fn run_here(store: Store, means: Means, op_id: String) -> Result<Operation, StoreError> {
    let handlers = means
        .handlers(&store, true)
        .await
        .map_err(|failure| StoreError::new(StoreErrorKind::Unavailable, failure.to_string()))?;
    let name = format!("dlq serve@{}:{}", host(), std::process::id());
    OperationRunner::new(store.all()).handlers(handlers).name(name).run(op_id).await
}

/// It looks for work so often.
const LOOKS: Duration = Duration::from_secs(2);

/// Does replays that wait for a worker, as an application's workers would: those that were started elsewhere, let go on by
/// hand, or left by a runner that is gone. Those that are started here begin at once, and are not waited for.
async fn take_waiting(store: Store, means: Option<Means>) {
    let Some(means) = means else { return std::future::pending().await };
    loop {
        tokio::time::sleep(LOOKS).await;
        let Ok(facts) = store.facts().await else { continue };
        let is_left = |operation: &Operation| {
            operation.verb == Verb::Replay
                && facts.now.duration_since(operation.updated_at).unwrap_or_default() >= LOOKS
        };
        let waiting = store.waiting(20).await.unwrap_or_default();
        for operation in waiting.into_iter().filter(is_left) {
            // Another one may be quicker, and a failure is in the operation's own note.
            let done = run_here(store.clone(), means.clone(), operation.id.clone()).await;
            if let Some(error) = done.err().filter(|error| error.kind() != StoreErrorKind::Conflict) {
                aside(&format!("operation {}: {}", operation.id, text::line(&error.to_string())));
            }
        }
    }
}

fn token(name: &str, args: &ServeArgs) -> Result<Exit, Failure> {
    let role = Role::parse(&args.role).ok_or_else(|| {
        Failure::usage(format!("role `{}`: accepted are viewer, operator, admin", text::line(&args.role)))
    })?;
    let (token, line) = new_token(name, role).map_err(Failure::usage)?;
    match &args.tokens {
        Some(file) => {
            append(file, &line)
                .map_err(|error| Failure::failed(format!("cannot write `{}`: {error}", file.display())))?;
            aside(&format!("{name} may come in as {}, by this token, which is shown once:", role.as_str()));
            print(&token)?;
        }
        None => {
            aside("the token, which is shown once, and the line for the file of --tokens:");
            print(&format!("{token}\n{line}"))?;
        }
    }
    Ok(Exit::DONE)
}

/// Adds a line to a file for its owner alone.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}
