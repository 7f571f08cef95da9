//! Your own place for dead letters: here a file with one JSON line a letter, which any log shipper can take.
//!
//! The closure only has to write a letter down. Threads, the spill file and loud losses come with the adapter; what a
//! sink promises is then checked by the conformance suite, on a fresh sink for each check.
#![allow(clippy::expect_used)] // in the checks, which end the program when they fail

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use retry_runtime::dead_letter::{BlockingSink, DeadLetter, Payload};
use retry_runtime::id::Id;
use retry_runtime::testing::conformance;
use retry_runtime::{Classify, retry};
use serde_json::{Value, json};

/// Where letters go. A letter may come again after a failure: its `park_id` tells, and then nothing is written.
struct Outbox {
    file: File,
    known: HashMap<Id, String>,
}

impl Outbox {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        // A program that restarts would read the park_ids of the file here.
        Ok(Self { file, known: HashMap::new() })
    }

    fn park(&mut self, letter: &DeadLetter) -> io::Result<String> {
        if let Some(known) = self.known.get(&letter.park_id) {
            return Ok(known.clone());
        }
        let payload = match &letter.payload {
            Payload::Json(text) => serde_json::from_str(text)?,
            _ => Value::Null,
        };
        let id = letter.park_id.to_string();
        let line = json!({
            "id": id, "kind": letter.kind, "job_id": letter.job_id, "payload": payload,
            "error_class": letter.error_class(), "error": letter.error_message, "attempts": letter.attempts,
        });
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.file.sync_data()?; // an answer means that it is durable
        self.known.insert(letter.park_id, id.clone());
        Ok(id)
    }
}

fn sink(path: &Path) -> io::Result<BlockingSink> {
    let mut outbox = Outbox::open(path)?;
    BlockingSink::new(path, move |letter| outbox.park(letter))
}

#[derive(Debug, thiserror::Error, Classify)]
enum SendError {
    #[error("the mailbox is full")]
    #[classify(retryable)]
    Full,
    #[error("no such mailbox")]
    #[classify(permanent)]
    Unknown,
}

#[retry(base_delay = "10ms", dead_letter(sink = outbox, job_id = to, payload = to))]
async fn send(outbox: &BlockingSink, to: &str) -> Result<(), SendError> {
    match to {
        "ann" => Ok(()),
        "bob" => Err(SendError::Full),
        _ => Err(SendError::Unknown),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = std::env::temp_dir().join(format!("custom-sink-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;

    let path = scratch.join("outbox.ndjson");
    let outbox = sink(&path)?;
    for to in ["ann", "bob", "eve"] {
        println!("{to}: {:?}", send(&outbox, to).await);
    }
    println!("{:?}", outbox.close(Duration::from_secs(5)));
    print!("{}", std::fs::read_to_string(&path)?);

    let checks = Cell::new(0);
    let newest = || scratch.join(format!("check-{}.ndjson", checks.get()));
    let fresh = || {
        checks.set(checks.get() + 1);
        sink(&newest()).expect("the scratch directory takes files")
    };
    let lines = |_: &BlockingSink| std::fs::read_to_string(newest()).map_or(0, |text| text.lines().count() as u64);
    let report = conformance::sink_counting(fresh, lines);
    println!("{report}");
    report.assert_passed();
    std::fs::remove_dir_all(&scratch)?;
    Ok(())
}
