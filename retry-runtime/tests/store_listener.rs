//! A listener of notices that asks the very sink the notice is about. One test, since a process has one listener.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, SystemTime};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{BlockingSink, DeadLetter, DeadLetterSink, Spill};

static SINK: OnceLock<BlockingSink> = OnceLock::new();

fn letter() -> DeadLetter {
    DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())
}

// D18: a loss is said without any lock of the sink
#[test]
fn a_listener_may_use_the_sink() {
    let nowhere = Spill::in_dirs("queue", ["/dev/null/nowhere".into()]);
    let sink = BlockingSink::with_spill(nowhere, |_| Err::<String, _>("no")).unwrap();
    let (said, notices) = mpsc::channel();
    let said = std::sync::Mutex::new(said);
    let once = AtomicBool::new(false);
    assert!(retry_runtime::observe::set_listener(move |notice| {
        if notice.name == "lost" && !once.swap(true, Ordering::SeqCst) {
            let sink = SINK.get().unwrap();
            let outcome = sink.submit(letter()).wait(Duration::from_secs(30));
            said.lock().unwrap().send((sink.waiting(), outcome.is_ok())).unwrap();
        }
    }));
    sink.close(Duration::from_secs(30));
    assert!(SINK.set(sink).is_ok());
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        drop(SINK.get().unwrap().submit(letter()));
        ended.send(()).unwrap();
    });
    assert_eq!(notices.recv_timeout(Duration::from_secs(30)), Ok((0, true)), "the listener is stuck");
    assert_eq!(end.recv_timeout(Duration::from_secs(30)), Ok(()));
}
