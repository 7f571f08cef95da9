//! What the measurements share: the figures that they find, and the loops that are measured.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)] // a bench fails by panicking
#![allow(clippy::missing_panics_doc)] // the same

pub mod cases;
pub mod figures;
pub mod loops;
