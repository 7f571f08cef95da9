//! `dlq` alone: the first page.

use super::context::Context;
use crate::exit::{Exit, Failure};
use crate::status::Status;
use crate::stores::Access;

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let status = Status::of(&store).await?;
    println!("{}", status.summary);
    Ok(Exit::DONE)
}
