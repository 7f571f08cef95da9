//! The command as people and scripts use it: a process, its output, its exit status.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod change;
mod check;
mod hostile;
mod interrupt;
mod json;
mod look;
mod move_letters;
mod night;
mod replay;
mod serve;
mod store;
mod support;
mod terminal;
mod usage;
