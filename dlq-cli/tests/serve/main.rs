//! The dashboard by its router, without a port: every page, role and form, and what must not get through.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // tests fail by panicking

mod acts;
mod client;
mod doors;
mod fields;
mod hostile;
mod night;
mod pages;
mod slow;
mod ways;
