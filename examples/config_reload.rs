//! Numbers of a policy in a file, changed while the program runs.
//!
//! A service asks a server that is down. Its operator edits `retry.toml` three times: fewer retries, a mistake, and more
//! retries again. The file is watched by its content: every so often it is read, and put in force where it differs. That
//! works wherever files come from - an editor, a mounted directory, a link that is exchanged.
//!
//! The environment comes over the file: `RETRY_POLICY_INVENTORY_MAX_RETRIES=0 config_reload`. `RETRY_DISABLED=1` makes one
//! attempt of every loop.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use retry_runtime::config::{NamedPolicy, Policies, Sources};
use retry_runtime::{Classify, Policy, retry};

// What the code says, and the names that a configuration may use.
static POLICIES: Policies = Policies::of(&[&INVENTORY]);
static INVENTORY: NamedPolicy =
    NamedPolicy::new(&POLICIES, "inventory", Policy::new().base_delay(Duration::from_millis(10)));

#[derive(Debug, thiserror::Error, Classify)]
#[error("the server is down")]
#[classify(retryable)]
struct Down;

#[retry(policy = INVENTORY)]
async fn ask(attempts: &AtomicU32) -> Result<u32, Down> {
    attempts.fetch_add(1, Relaxed);
    Err(Down)
}

/// Reads the sources every so often; a mistake in them is said, and what was in force stays.
async fn watch() {
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        match POLICIES.refresh() {
            Ok(None) => {}
            Ok(Some(changes)) => println!("retry.toml: {changes}; inventory: {}", INVENTORY.get()),
            Err(error) => println!("retry.toml is not used: {error}"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (file, new) = (directory.path().join("retry.toml"), directory.path().join("retry.toml.new"));
    std::fs::write(&file, "[policy.inventory]\nmax_retries = 4\n")?;

    // A mistake at the start ends the program: it says every one of them.
    POLICIES.load(Sources::new().file(&file).environment())?;
    println!("inventory: {}", INVENTORY.get());
    let watch = tokio::spawn(watch());
    work().await;
    for edit in [
        "[policy.inventory]\nmax_retries = 1\n",
        "[policy.inventory]\nmax_retries = \"1\"\njiter = \"full\"\n",
        "[policy.inventory]\nmax_retries = 6\njitter = \"full\"\n",
    ] {
        // An operator replaces a file in one step: a half-written one would be a mistake.
        std::fs::write(&new, edit)?;
        std::fs::rename(&new, &file)?;
        tokio::time::sleep(Duration::from_millis(100)).await;
        work().await;
    }
    watch.abort();
    Ok(())
}

async fn work() {
    let attempts = AtomicU32::new(0);
    if let Err(error) = ask(&attempts).await {
        println!("{error}: {} attempts", attempts.into_inner());
    }
}
