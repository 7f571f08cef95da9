//! Who is compiled: the same loop by everybody, as the text of a program. `NUMBER` and `VALUE` are filled in for each
//! function.

use std::fmt::Write as _;

/// One way to write a function that is retried, or that something else is done to.
#[derive(Clone, Copy)]
pub(super) struct Contender {
    /// As the report calls it.
    pub(super) name: &'static str,
    /// Lines of `[dependencies]` besides tokio.
    pub(super) dependencies: &'static str,
    /// What stands at the top, once.
    pub(super) prelude: &'static str,
    /// One function.
    pub(super) function: &'static str,
    /// How it is called with an address.
    pub(super) call: &'static str,
}

/// A function by its name.
pub(super) const F: &str = "fNUMBER";

/// The function that nothing is done to: what the others cost is what they cost more than this.
pub(super) const PLAIN: Contender = Contender {
    name: "plain",
    dependencies: "",
    prelude: FAILURE,
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    call(url, VALUE).await
}",
    call: F,
};

/// The loop that everybody has written: what the goals are ratios to.
pub(super) const HAND: Contender = Contender {
    name: "hand",
    dependencies: "",
    prelude: FAILURE,
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    let mut retries = 0;
    loop {
        match call(url, VALUE).await {
            Ok(value) => return Ok(value),
            Err(Failure::Denied) => return Err(Failure::Denied),
            Err(error) if retries == 2 => return Err(error),
            Err(Failure::Busy) => {}
        }
        tokio::time::sleep(Duration::from_millis(1) * 2_u32.pow(retries)).await;
        retries += 1;
    }
}",
    call: F,
};

/// The same with its attempt in a block of its own, without which `?` would leave the function.
pub(super) const BLOCK: Contender = Contender {
    name: "hand in a block",
    dependencies: "",
    prelude: FAILURE,
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    let mut retries = 0;
    loop {
        let outcome: Result<u32, Failure> = async { call(url, VALUE).await }.await;
        match outcome {
            Ok(value) => return Ok(value),
            Err(Failure::Denied) => return Err(Failure::Denied),
            Err(error) if retries == 2 => return Err(error),
            Err(Failure::Busy) => {}
        }
        tokio::time::sleep(Duration::from_millis(1) * 2_u32.pow(retries)).await;
        retries += 1;
    }
}",
    call: F,
};

pub(super) const OURS: Contender = Contender {
    name: "ours",
    dependencies: super::project::OURS,
    prelude: "use retry_runtime::{Classify, retry};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Classify)]
pub enum Failure {
    #[classify(retryable)]
    Busy,
    #[classify(permanent)]
    Denied,
}
",
    function: "#[retry(max_retries = 2, base_delay = \"1ms\", jitter = none)]
pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    call(url, VALUE).await
}",
    call: F,
};

pub(super) const BACKON: Contender = Contender {
    name: "backon",
    dependencies: super::project::BACKON,
    prelude: "use backon::{ExponentialBuilder, Retryable};

const fn waits() -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(Duration::from_millis(1)).with_factor(2.0).with_max_times(2)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }
",
    function: "pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    (|| call(url, VALUE)).retry(waits()).sleep(tokio::time::sleep).when(Failure::may_pass).await
}",
    call: F,
};

pub(super) const BACKON_MACROS: Contender = Contender {
    name: "backon-macros",
    dependencies: super::project::BACKON_MACROS,
    prelude: "use backon::ExponentialBuilder;
use backon_macros::backon;

const fn waits() -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(Duration::from_millis(1)).with_factor(2.0).with_max_times(2)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }
",
    function: "#[backon(backoff = waits, sleep = tokio::time::sleep, when = Failure::may_pass)]
pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    call(url, VALUE).await
}",
    call: F,
};

/// Retries nothing: what another attribute costs.
pub(super) const ASYNC_TRAIT: Contender = Contender {
    name: "async-trait",
    dependencies: super::project::ASYNC_TRAIT,
    prelude: "use async_trait::async_trait;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }

#[async_trait]
pub trait Calls {
    async fn get(&self, url: &str) -> Result<u32, Failure>;
}
",
    function: "pub struct CNUMBER;

#[async_trait]
impl Calls for CNUMBER {
    async fn get(&self, url: &str) -> Result<u32, Failure> {
        call(url, VALUE).await
    }
}",
    call: "CNUMBER.get",
};

/// Retries nothing: what another attribute costs.
pub(super) const TRACING: Contender = Contender {
    name: "tracing::instrument",
    dependencies: super::project::TRACING,
    prelude: FAILURE,
    function: "#[tracing::instrument]
pub async fn fNUMBER(url: &str) -> Result<u32, Failure> {
    call(url, VALUE).await
}",
    call: F,
};

/// Those whose functions are counted by the hundred; the plain one and the yardstick come first.
pub(super) const ATTRIBUTES: [Contender; 8] = [PLAIN, HAND, BLOCK, OURS, BACKON, BACKON_MACROS, ASYNC_TRAIT, TRACING];

/// The error, for those who need nothing on it.
pub(super) const FAILURE: &str = "#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure { Busy, Denied }
";

/// The same for everybody.
const COMMON: &str = "#![allow(dead_code, unused_imports)]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

static ATTEMPTS: AtomicU32 = AtomicU32::new(0);

impl Failure {
    fn may_pass(&self) -> bool {
        matches!(self, Failure::Busy)
    }
}

#[inline(never)]
fn answer(url: &str, n: u32) -> Result<u32, Failure> {
    ATTEMPTS.fetch_add(1, Relaxed);
    match url.len() {
        0 => Err(Failure::Busy),
        1 => Err(Failure::Denied),
        length => Ok(length as u32 ^ n),
    }
}

async fn call(url: &str, n: u32) -> Result<u32, Failure> {
    answer(url, n)
}
";

impl Contender {
    /// A program of `count` such functions, each polled from somewhere. The last one changes with `edit`, and not its length.
    pub(super) fn functions(&self, count: u32, edit: u32) -> String {
        let mut source = format!("{COMMON}\n{}\n", self.prelude);
        for number in 0..count {
            let edited = if number + 1 == count { edit } else { 0 };
            source += &self.function(number, 1_000_000 * (1 + edited % 9) + number);
        }
        for number in 0..count {
            let call = fill(self.call, number, 0);
            write!(
                source,
                "\nfn p{number}(context: &mut Context<'_>) -> Poll<Result<u32, Failure>> {{
    pin!({call}(\"page\")).poll(context)
}}\n"
            )
            .unwrap();
        }
        let all: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
        source
            + &format!(
                "\nconst ALL: [fn(&mut Context<'_>) -> Poll<Result<u32, Failure>>; {count}] = [{}];

fn main() {{
    for poll in ALL {{
        let _ = std::hint::black_box(poll(&mut Context::from_waker(Waker::noop())));
    }}
}}\n",
                all.join(", ")
            )
    }

    /// A program that calls `count` such functions with the address it is given, and tells how many attempts it made.
    pub(super) fn program(&self, count: u32) -> String {
        let mut source = format!("{COMMON}\n{}\n", self.prelude);
        for number in 0..count {
            source += &self.function(number, 1_000_000 + number);
        }
        let calls: Vec<String> = (0..count)
            .map(|number| format!("    run(&runtime, pin!({}(&url)));\n", fill(self.call, number, 0)))
            .collect();
        source
            + &format!(
                "
// once, and not for each future
#[inline(never)]
fn run(runtime: &tokio::runtime::Runtime, future: std::pin::Pin<&mut dyn Future<Output = Result<u32, Failure>>>) {{
    let _ = std::hint::black_box(runtime.block_on(future));
}}

fn main() {{
    let url = std::env::args().nth(1).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
{}    println!(\"{{}}\", ATTEMPTS.load(Relaxed));
}}\n",
                calls.concat()
            )
    }

    fn function(&self, number: u32, value: u32) -> String {
        format!("\n{}\n", fill(self.function, number, value))
    }
}

fn fill(template: &str, number: u32, value: u32) -> String {
    template.replace("NUMBER", &number.to_string()).replace("VALUE", &value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    // What is compiled again after an edit is the last function: a line that moved would make more of it.
    #[test]
    fn an_edit_changes_the_last_function_alone() {
        for contender in ATTRIBUTES {
            let (before, after) = (contender.functions(3, 0), contender.functions(3, 1));
            let changed: Vec<(&str, &str)> = before.lines().zip(after.lines()).filter(|(b, a)| b != a).collect();
            assert_eq!((before.len(), changed.len()), (after.len(), 1), "{}: {changed:?}", contender.name);
            assert!(changed[0].0.contains("1000002") && changed[0].1.contains("2000002"), "{changed:?}");
        }
    }
}
