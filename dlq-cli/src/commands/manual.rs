//! `dlq completions` and `dlq man`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::args::Args;
use crate::exit::{Exit, Failure};

/// For which shell.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Where to.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// A directory for all pages; without it the page of `dlq` itself goes to stdout
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "dlq", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::DONE)
}

pub(super) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let command = Args::command();
    let Some(directory) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        std::io::stdout().lock().write_all(&page)?;
        return Ok(Exit::DONE);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .map_err(|error| Failure::failed(format!("cannot write the pages into `{}`: {error}", directory.display())))?;
    Ok(Exit::DONE)
}
