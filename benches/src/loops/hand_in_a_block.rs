//! The loop by hand with its attempt in a block of its own, without which `?` would leave the function.

#![allow(clippy::redundant_closure_call)] // it is the point

use std::thread;
use std::time::Duration;

use super::{Contender, Failure, Outcome, RETRIES, SECOND, Work, at_once, now, on_tokio};

pub(super) const CONTENDER: Contender = Contender {
    name: "hand in a block",
    on_tokio: Some(on_tokio!(on_tokio)),
    ready: Some(|work| now(ready(work))),
    blocking: Some(blocking),
};

async fn on_tokio(work: &Work) -> Outcome {
    let mut retries = 0;
    loop {
        let outcome: Outcome = async { work.call().await }.await;
        match outcome {
            Ok(value) => return Ok(value),
            Err(Failure::Denied) => return Err(Failure::Denied),
            Err(error) if retries == RETRIES => return Err(error),
            Err(Failure::Busy) => {}
        }
        tokio::time::sleep(SECOND * 2_u32.pow(retries)).await;
        retries += 1;
    }
}

async fn ready(work: &Work) -> Outcome {
    let mut retries = 0;
    loop {
        let outcome: Outcome = async { work.call().await }.await;
        match outcome {
            Ok(value) => return Ok(value),
            Err(Failure::Denied) => return Err(Failure::Denied),
            Err(error) if retries == RETRIES => return Err(error),
            Err(Failure::Busy) => {}
        }
        at_once(SECOND * 2_u32.pow(retries)).await;
        retries += 1;
    }
}

fn blocking(work: &Work) -> Outcome {
    let mut retries = 0;
    loop {
        let outcome = (|| -> Outcome { work.attempt() })();
        match outcome {
            Ok(value) => return Ok(value),
            Err(Failure::Denied) => return Err(Failure::Denied),
            Err(error) if retries == RETRIES => return Err(error),
            Err(Failure::Busy) => {}
        }
        thread::sleep(Duration::ZERO * 2_u32.pow(retries));
        retries += 1;
    }
}
