//! `dlq serve`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use retry_runtime::dead_letter::OperationRunner;

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
    if let Some(means) = means {
        dashboard = dashboard.means(by_itself(&store, means));
    }
    let listening = listen(dashboard, args.listen).await.map_err(|error| Failure::failed(error.to_string()))?;
    let may = if args.allow_actions { "actions are allowed" } else { "it only reads: --allow-actions lets it act" };
    // On stdout, flushed: a script waits for it.
    print(&format!("store: {}\nhttp://{}/ ({may}; Ctrl-C ends)", store.shown(), listening.address()))?;
    listening.run(interrupted()).await;
    store.close(std::time::Duration::from_secs(10)).await;
    Ok(Exit::DONE)
}

/// This process does the jobs of operations that are started in it.
fn by_itself(store: &Store, means: Means) -> ByWhom {
    let said = format!("by {}", means.said());
    let store = store.clone();
    ByWhom::own(said, move |op_id| {
        let (store, means) = (store.clone(), means.clone());
        Box::pin(async move {
            let handlers = means.handlers(&store, true).await.map_err(|failure| {
                retry_runtime::error::StoreError::new(
                    retry_runtime::error::StoreErrorKind::Unavailable,
                    failure.to_string(),
                )
            })?;
            let name = format!("dlq serve@{}:{}", host(), std::process::id());
            OperationRunner::new(store.all()).handlers(handlers).name(name).run(op_id).await
        })
    })
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
