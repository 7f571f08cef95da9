//! Durable bulk operations (STORE D21, S2): frozen members, one fenced runner, an outcome for each member in the
//! transaction that ends its letter's replay.

pub(crate) mod freeze;
pub(crate) mod members;
#[cfg(test)]
mod plans;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod run;
