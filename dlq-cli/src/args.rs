//! The command line.

use clap::{Parser, Subcommand};

/// Look at dead letters, replay them with care, and give up on purpose.
///
/// Without a command: what is owed, what is new since yesterday, whether it is still arriving, who is replaying, and what to
/// type next.
#[derive(Debug, Parser)]
#[command(name = "dlq", version, about, long_about, max_term_width = 110)]
pub struct Args {
    /// Where the letters are: sqlite:PATH; else `DLQ_STORE` in the environment, else --store-file
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub store: Option<String>,
    /// A file whose first line is the address of the store: for addresses with a password
    #[arg(long, global = true, value_name = "FILE")]
    pub store_file: Option<std::path::PathBuf>,
    /// For machines: JSON, as docs/dlq-json.md says
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Count what is owed, by error class
    #[command(after_help = "Example:\n  dlq --store sqlite:var/jobs.db summary")]
    Summary,
}
