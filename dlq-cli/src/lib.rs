//! Looking at dead letters, replaying them with care, giving up on purpose: what is behind the command `dlq`.
//!
//! [`Store`] opens a store by its address; [`status`] computes the facts of the first page; [`Filter`](retry_runtime::dead_letter::Filter)s
//! are written one way everywhere ([`filters`]); what comes from letters is hostile until [`text`] made it safe to show.
//! Everything works over the store traits of `retry-runtime` only.

mod args;
mod commands;
pub mod documents;
pub mod exit;
pub mod filters;
pub mod means;
pub mod serve;
pub mod status;
mod stores;
pub mod text;
pub mod times;

use std::process::ExitCode;

use clap::Parser as _;

pub use exit::{Exit, Failure};
pub use stores::{Access, AnyStore, Place, Store};

/// Runs the command with the process's own arguments; its exit status.
pub fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(said) => {
            // Help and version go to stdout and are no failure; a closed pipe is nobody's fault.
            let _said = said.print();
            return ExitCode::from(if said.use_stderr() { Exit::USAGE.code() } else { Exit::DONE.code() });
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(args)),
        Err(error) => Err(Failure::failed(format!("cannot start: {error}"))),
    };
    ExitCode::from(exit::say(ended).code())
}
