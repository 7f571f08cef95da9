//! The shortest whole program: a classifier, a retried function, a dead letter.

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::DeadLetterStore;
use retry_runtime::{Classify, retry};

#[derive(Debug, thiserror::Error, Classify)]
enum FetchError {
    #[error("the server is busy")]
    #[classify(retryable)]
    Busy,
    #[error("{0} is secret")]
    #[classify(permanent, class = "forbidden")]
    Forbidden(String),
}

// Three attempts, 100 ms and 200 ms apart. What is given up is parked, and replayed later.
#[retry(base_delay = "100ms", dead_letter(sink = dlq, job_id = page, payload = page))]
async fn fetch(dlq: &SqliteStore, page: &str) -> Result<usize, FetchError> {
    match page {
        "news" => Ok(page.len()),
        "sale" => Err(FetchError::Busy),
        other => Err(FetchError::Forbidden(other.to_owned())),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dlq = SqliteStore::open("quickstart.db")?;
    for page in ["news", "sale", "diary"] {
        println!("{page}: {:?}", fetch(&dlq, page).await);
    }
    println!("{}", dlq.summary().await?);
    Ok(())
}
