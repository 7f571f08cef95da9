//! Jobs of a process that died are told of aloud (STORE D14). One test: a process has one listener.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterStore, JobJournal, ManualClock, OWNER_LEASE,
};
use retry_runtime::observe::set_listener;

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn heard() -> Vec<String> {
    std::mem::take(&mut *HEARD.lock().unwrap())
}

fn job(id: &str) -> DeadLetter {
    let mut job = DeadLetter::new("fetch", StopReason::Crashed, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
    job.job_id = Some(id.to_owned());
    job
}

#[tokio::test]
async fn what_a_dead_process_left_is_told_of_by_whoever_parks_it() {
    assert!(set_listener(|notice| {
        if notice.name == "jobs_crashed" {
            HEARD.lock().unwrap().push(notice.message.clone());
        }
    }));
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
    let open = || SqliteStore::options(directory.path().join("jobs.db")).clock(clock.clock()).open().unwrap();
    for claims in [false, true] {
        let (dies, lives) = (open(), open());
        dies.enter(job("a")).await.unwrap();
        dies.enter(job("b")).await.unwrap();
        // As if it had been killed: it does not say that it ends.
        std::mem::forget(dies);
        assert_eq!(heard(), [""; 0]);
        clock.advance(OWNER_LEASE * 2);
        if claims {
            let mut request = ClaimRequest::new(["fetch"], "test");
            request.keep_alive = false;
            lives.claim(request, Actor::new("test", "")).await.unwrap();
        } else {
            lives.reap(Actor::new("test", "")).await.unwrap();
        }
        lives.settle().await;
        assert_eq!(heard(), ["2 jobs whose process ended while it ran them are parked, as `crashed`"]);
    }
}
