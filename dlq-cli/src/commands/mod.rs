//! The commands, a file each.

pub(crate) mod audit;
pub(crate) mod backup;
mod by;
pub(crate) mod check;
mod context;
pub(crate) mod discard;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod erase;
pub(crate) mod export;
pub(crate) mod groups;
pub(crate) mod hand;
pub(crate) mod import;
mod interrupt;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod manual;
pub(crate) mod migrate;
pub(crate) mod note;
mod operate;
pub(crate) mod ops;
mod progress;
pub(crate) mod prune;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod salvage;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod stats;
mod status;
mod summary;
mod table;
pub(crate) mod tail;

use crate::args::{Args, Command};
use crate::exit::{Exit, Failure};
use context::Context;

pub(crate) async fn run(args: Args) -> Result<Exit, Failure> {
    let context = &Context::new(&args);
    match args.command {
        None => status::run(context).await,
        Some(Command::Summary) => summary::run(context).await,
        Some(Command::List(args)) => list::run(context, args).await,
        Some(Command::Groups(args)) => groups::run(context, args).await,
        Some(Command::Show(args)) => show::run(context, args).await,
        Some(Command::Tail(args)) => tail::run(context, args).await,
        Some(Command::Replay(args)) => replay::run(context, args).await,
        Some(Command::Edit(args)) => edit::run(context, args).await,
        Some(Command::Discard(args)) => discard::run(context, args).await,
        Some(Command::Restore(args)) => restore::run(context, args).await,
        Some(Command::Resolve(args)) => hand::resolve(context, args).await,
        Some(Command::Release(args)) => hand::release(context, args).await,
        Some(Command::Erase(args)) => erase::run(context, args).await,
        Some(Command::Note(args)) => note::run(context, args).await,
        Some(Command::Export(args)) => export::run(context, args).await,
        Some(Command::Import(args)) => import::run(context, args).await,
        Some(Command::Prune(args)) => prune::run(context, args).await,
        Some(Command::Ledger(args)) => ledger::run(context, args).await,
        Some(Command::Stats(args)) => stats::run(context, args).await,
        Some(Command::Ops(args)) => ops::run(context, args).await,
        Some(Command::Audit(args)) => audit::run(context, args).await,
        Some(Command::Check(args)) => check::run(context, args).await,
        Some(Command::Doctor(args)) => doctor::run(context, args).await,
        Some(Command::Salvage(args)) => salvage::run(context, args).await,
        Some(Command::Backup(args)) => backup::run(context, args).await,
        Some(Command::Migrate(args)) => migrate::run(context, args).await,
        Some(Command::Serve(args)) => serve::run(context, args).await,
        Some(Command::Completions(args)) => manual::completions(&args),
        Some(Command::Man(args)) => manual::man(&args),
    }
}
