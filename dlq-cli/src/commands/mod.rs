//! The commands, a file each.

mod context;
mod status;
mod summary;

use crate::args::{Args, Command};
use crate::exit::{Exit, Failure};
use context::Context;

pub(crate) async fn run(args: Args) -> Result<Exit, Failure> {
    let context = Context::new(&args);
    match args.command {
        None => status::run(&context).await,
        Some(Command::Summary) => summary::run(&context).await,
    }
}
