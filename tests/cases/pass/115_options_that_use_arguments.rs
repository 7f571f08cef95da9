// source: kind 6; what: option expressions read, borrow and move parts of the arguments, hold locks and make temporaries; evaluated once, in order, before the first attempt
// editions: 2021 2024
// level: core
#![deny(warnings)]
use retry_runtime::{retry, Classify};
use std::cell::Cell;

#[derive(Debug, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    Busy,
    #[allow(dead_code)]
    #[classify(permanent)]
    Denied,
}

use retry_runtime::{Jitter, Policy};
use std::cell::RefCell;
use std::time::Duration;

struct Config { retries: u32, delay: Duration, policy: Policy }
fn say(log: &RefCell<Vec<&'static str>>, word: &'static str) -> Duration { log.borrow_mut().push(word); Duration::from_millis(1) }

#[retry(max_retries = config.retries, base_delay = config.delay, max_delay = config.delay * 2, deadline = Duration::from_secs(60))]
async fn by_field(config: &Config, n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); Err(E::Busy) }
#[retry(policy = &config.policy)]
fn by_policy(config: &Config, n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + 1); Err(E::Busy) }
#[retry(max_delay = say(log, "max"), base_delay = say(log, "base"), jitter = say(log, "jitter"), max_retries = { log.borrow_mut().push("count"); 2 })]
async fn in_order(log: &RefCell<Vec<&'static str>>) -> Result<u32, E> { log.borrow_mut().push("body"); Err(E::Busy) }
#[retry(policy = Policy::new().max_retries(config.retries).base_delay(config.delay).jitter(Jitter::Full))]
async fn made(config: Config, n: &Cell<u32>) -> Result<u32, E> { n.set(n.get() + config.retries); Err(E::Busy) }
#[retry(max_retries = u32::try_from(names.len()).unwrap_or(9), base_delay = Duration::from_millis(names.iter().map(|n| n.len() as u64).sum()))]
fn computed(names: Vec<String>, n: &Cell<u32>) -> Result<usize, E> { n.set(n.get() + 1); if names.len() > 9 { Ok(1) } else { Err(E::Busy) } }

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let config = || Config { retries: 3, delay: Duration::from_millis(1), policy: Policy::new().max_retries(4).base_delay(Duration::from_millis(1)) };
    let n = Cell::new(0);
    assert_eq!(by_field(&config(), &n).await, Err(E::Busy));
    assert_eq!(n.replace(0), 4);
    assert_eq!(by_policy(&config(), &n), Err(E::Busy));
    assert_eq!(n.replace(0), 5);
    let log = RefCell::new(vec![]);
    assert_eq!(in_order(&log).await, Err(E::Busy));
    assert_eq!(log.take(), ["max", "base", "jitter", "count", "body", "body", "body"]);
    assert_eq!(made(config(), &n).await, Err(E::Busy));
    assert_eq!(n.replace(0), 12);
    assert_eq!(computed(vec!["a".into()], &n), Err(E::Busy));
    assert_eq!(n.get(), 2);
}
