//! What the examples and their tests share: a local server that misbehaves on a plan, and shorter waits.
//!
//! Each program includes it as a module and uses what it needs: what one leaves unused is no mistake.
#![allow(dead_code, unreachable_pub)]

pub mod books;
pub mod http;
pub mod plan;
pub mod progress;
pub mod server;
pub mod time;
