//! What an operator must hear is said, under its stable name: to a listener here, to stderr without one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::fs;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Actor, BlockingSink, BoxFuture, DeadLetter, DeadLetterSink, MemoryStore, Parking, Spill, Ticket, lost,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerToken};
use retry_runtime::observe::{Event, Level, Notice, Observer, set_listener};
use retry_runtime::reply::Reply;
use retry_runtime::{Classify, Elapsed, Policy, Refused, Retry, StopReason, Verdict, retry};

/// Every notice of this process. The tests run at one time: each looks for its own operation.
static HEARD: Mutex<Vec<Notice>> = Mutex::new(Vec::new());

fn listen() {
    static LISTENS: OnceLock<bool> = OnceLock::new();
    assert!(LISTENS.get_or_init(|| set_listener(|notice| HEARD.lock().unwrap().push(notice.clone()))));
}

/// The notices of one name about one operation.
fn heard(name: &str, operation: &str) -> Vec<Notice> {
    let heard = HEARD.lock().unwrap();
    heard.iter().filter(|notice| notice.name == name && notice.operation == operation).cloned().collect()
}

fn only(name: &str, operation: &str) -> Notice {
    let heard = heard(name, operation);
    assert_eq!(heard.len(), 1, "{name} [{operation}]: {heard:?}");
    heard[0].clone()
}

#[derive(Debug, PartialEq, thiserror::Error, Classify)]
#[error("no")]
#[classify(permanent)]
struct No;

fn full() -> StoreError {
    StoreError::new(StoreErrorKind::Full, "no space left")
}

// B2.5, 5.3
#[test]
fn a_classifier_that_panics() {
    fn broken(_: &No) -> Verdict {
        panic!("out of order")
    }
    #[retry(name = "misjudged", classify = broken)]
    fn f() -> Result<(), No> {
        Err(No)
    }
    listen();
    assert_eq!(f(), Err(No));
    let notice = only("classifier_failed", "misjudged");
    assert!(notice.level == Level::Warning && notice.message.contains("out of order"), "{notice}");
}

// 2.3: once for a site, however often it is called
#[test]
fn settings_that_contradict_each_other() {
    #[retry(name = "slow base", max_retries = 0, base_delay = delay)]
    fn delays(delay: Duration) -> Result<(), No> {
        Err(No)
    }
    #[retry(name = "no time", max_retries = 0, deadline = limit)]
    fn limits(limit: Duration) -> Result<(), No> {
        Err(No)
    }
    listen();
    for _ in 0..2 {
        assert_eq!(delays(Duration::from_secs(61)), Err(No));
        assert_eq!(limits(Duration::ZERO), Err(No));
        let policy = Policy::new().max_retries(0).max_delay(Duration::ZERO);
        assert_eq!(Retry::new(policy).name("builder").run_blocking(|| Err::<(), _>(No)), Err(No));
    }
    for (operation, what) in [("slow base", "base_delay"), ("no time", "deadline"), ("builder", "max_delay")] {
        let notice = only("misconfigured", operation);
        assert!(notice.message.contains(what), "{notice}");
    }
}

// a class that no failure can have: what the constant cannot know is said at the first failure, once for a site
#[test]
fn a_class_that_no_failure_has() {
    #[derive(Debug, Classify)]
    enum Inner {
        #[classify(retryable)]
        Busy,
        #[classify(status = 0)]
        Status(u16),
        #[classify(transparent)]
        Again(Box<Outer>),
    }
    #[derive(Debug, Classify)]
    enum Outer {
        #[classify(transparent)]
        Inner(Inner),
        #[classify(permanent)]
        Denied,
        #[classify(transparent)]
        No(No),
    }
    #[derive(Debug, Classify)]
    enum Open {
        #[classify(transparent)]
        Io(std::io::Error),
        #[classify(with = odd)]
        Odd,
    }
    fn odd(_: &Open) -> Verdict {
        Verdict::permanent("odd")
    }
    #[retry(
        name = "misspelt class",
        class(rate_limits, max_retries = 0),
        class(Busy, max_retries = 0),
        class(rate_limit, max_retries = 0),
        class(busy, max_retries = 0)
    )]
    fn known(error: &Outer) -> Result<(), Outer> {
        Err(match error {
            Outer::Inner(Inner::Status(status)) => Outer::Inner(Inner::Status(*status)),
            _ => Outer::Denied,
        })
    }
    #[retry(name = "hidden value", class(nobody, max_retries = 0))]
    fn hidden() -> Result<impl Copy, Box<No>> {
        Err::<(), _>(Box::new(No))
    }
    #[retry(name = "open class", class(anything, max_retries = 0))]
    fn open() -> Result<(), Open> {
        Err(Open::Odd)
    }
    #[allow(dead_code)] // what it can be is what counts
    #[derive(Debug, Classify)]
    enum Library {
        #[classify(retryable)]
        Busy,
        #[classify(transparent)]
        Refused(Refused),
        #[classify(transparent)]
        Slow(Elapsed),
        #[classify(transparent)]
        Store(StoreError),
    }
    #[retry(
        name = "library's classes",
        class(refusd, max_retries = 0),
        class(refused, max_retries = 0),
        class(storage_full, max_retries = 0),
        class(timeout, max_retries = 0)
    )]
    fn library() -> Result<(), Library> {
        Err(Library::Busy)
    }
    listen();
    assert!(library().is_err());
    let said = only("unknown_class", "library's classes").message;
    assert!(said.starts_with("`class(refusd, ..)`") && said.contains("busy, ") && said.contains("refused, "), "{said}");
    for error in [Outer::Denied, Outer::Inner(Inner::Status(429)), Outer::Inner(Inner::Busy), Outer::No(No)] {
        assert!(known(&error).is_err());
    }
    let _unused = (Outer::Inner(Inner::Again(Box::new(Outer::Denied))), Open::Io(std::io::Error::other("x")));
    assert!(open().is_err() && hidden().is_err());
    assert!(only("unknown_class", "hidden value").message.ends_with("its classes are no"));
    let notices = heard("unknown_class", "misspelt class");
    let [first, second] = &notices[..] else { panic!("one of each, and once: {notices:?}") };
    assert!(first.message.starts_with("`class(rate_limits, ..)` limits a class that no failure"), "{first}");
    assert!(first.message.contains("busy, ") && first.message.contains("rate_limit, "), "{first}");
    assert!(second.message.starts_with("`class(Busy, ..)`"), "{second}");
    assert!(heard("unknown_class", "open class").is_empty(), "nobody knows what a function says");
}

// 11.5
#[test]
fn a_payload_or_a_job_id_that_cannot_be_written() {
    struct Broken;
    impl serde::Serialize for Broken {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("cannot be serialised")
        }
    }
    impl std::fmt::Display for Broken {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("cannot be shown")
        }
    }
    #[retry(name = "unwritable", dead_letter(sink = dlq, payload = Broken, job_id = Broken))]
    fn f(dlq: &MemoryStore) -> Result<(), No> {
        Err(No)
    }
    listen();
    assert_eq!(f(&MemoryStore::new()), Err(No));
    assert!(only("payload_failed", "unwritable").message.contains("cannot be serialised"));
    assert!(only("letter_incomplete", "unwritable").message.contains("cannot be shown"));
}

// 11.2
#[tokio::test]
async fn a_letter_that_is_not_parked() {
    struct Full;
    impl DeadLetterSink for Full {
        fn submit(&self, _: DeadLetter) -> Ticket {
            Reply::ready(Parking::Lost { because: full() })
        }
    }
    #[retry(name = "full", dead_letter(sink = Full, job_id = "job 7"))]
    async fn f() -> Result<(), No> {
        Err(No)
    }
    listen();
    assert_eq!(f().await, Err(No));
    // said once, as what it is, with its letter and its job
    let lost = only("lost", "full");
    for part in ["no space left", "LOST letter ", " job job 7 ", "error class permanent"] {
        assert!(lost.message.contains(part), "{lost}");
    }
    assert_eq!(lost.level, Level::Error);
    assert!(heard("park_failed", "full").is_empty());
}

// 12.2: said once for each observer, however often it panics
#[test]
fn an_observer_that_panics() {
    struct First;
    struct Second;
    impl Observer for First {
        fn on(&self, _: &Event<'_>) {
            panic!("first")
        }
    }
    impl Observer for Second {
        fn on(&self, _: &Event<'_>) {
            panic!("second")
        }
        fn name(&self) -> &'static str {
            "the second one"
        }
    }
    #[retry(name = "watched", observer = observer)]
    fn f(observer: &dyn Observer) -> Result<(), No> {
        Err(No)
    }
    #[retry(name = "watched again", observer = (First, Second))]
    fn again() -> Result<(), No> {
        Err(No)
    }
    listen();
    for _ in 0..2 {
        assert_eq!(f(&First), Err(No));
    }
    assert!(only("observer_panicked", "watched").message.contains("an_observer_that_panics::First"));
    assert_eq!(again(), Err(No));
    assert!(
        only("observer_panicked", "watched again").message.contains("the second one panicked at `attempt_started`")
    );
}

// B3.6, D17: begin and end
#[test]
fn a_ledger_that_cannot_write() {
    struct Broken {
        begins: bool,
    }
    impl AttemptLedger for Broken {
        fn begin(&self, _: LedgerKey, _: u32) -> Reply<Result<Begin, StoreError>> {
            Reply::ready(if self.begins { Ok(Begin::Go { attempt: 1, token: LedgerToken(0) }) } else { Err(full()) })
        }
        fn end(&self, _: LedgerKey, _: LedgerToken, _: End) -> Reply<Result<bool, StoreError>> {
            Reply::ready(Err(full()))
        }
        fn entry(&self, _: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
            Box::pin(async { Err(full()) })
        }
        fn entries(&self, _: String, _: Option<String>, _: u32) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
            Box::pin(async { Err(full()) })
        }
        fn reset(&self, _: LedgerKey, _: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
            Box::pin(async { Err(full()) })
        }
    }
    #[retry(name = "no begin", ledger(store = ledger, key = "k", skipped = Ok(())))]
    fn no_begin(ledger: &Broken) -> Result<(), No> {
        Ok(())
    }
    #[retry(name = "no end", ledger(store = ledger, key = "k", skipped = Ok(())))]
    fn no_end(ledger: &Broken) -> Result<(), No> {
        Ok(())
    }
    listen();
    assert_eq!(no_begin(&Broken { begins: false }), Ok(()));
    assert_eq!(no_end(&Broken { begins: true }), Ok(()));
    for operation in ["no begin", "no end"] {
        let notice = only("ledger_failed", operation);
        assert!(notice.message.contains("no space left"), "{notice}");
    }
}

fn letter(kind: &str) -> DeadLetter {
    DeadLetter::new(kind, StopReason::Exhausted, SystemTime::now())
}

// 11.2, D18: the store fails, the spill fails
#[test]
fn a_loss() {
    listen();
    let dir = tempfile::tempdir().unwrap();
    let nowhere = Spill::in_dirs("jobs", [dir.path().join("not there")]);
    let sink = BlockingSink::with_spill(nowhere, |_| Err::<String, _>(full())).unwrap();
    let before = lost();
    let parking = sink.submit(letter("unlucky")).wait(Duration::from_secs(30)).unwrap();
    assert!(matches!(parking, Parking::Lost { .. }), "{parking}");
    assert_eq!(lost(), before + 1);
    let notice = only("lost", "unlucky");
    assert!(notice.level == Level::Error && notice.message.contains("exhausted"), "{notice}");
    // and the outage itself
    assert_eq!(only("sink_down", "").level, Level::Error);
}

// D5: beyond the bound letters are taken, and that is said once
#[test]
fn a_sink_that_is_too_slow() {
    listen();
    let dir = tempfile::tempdir().unwrap();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let sink = BlockingSink::new(dir.path().join("jobs"), move |letter| {
        let _closed = gate.recv();
        Ok::<_, StoreError>(letter.park_id.to_string())
    })
    .unwrap();
    let tickets: Vec<_> = (0..1_100).map(|_| sink.submit(letter("many"))).collect();
    assert!(sink.overflowed() > 0);
    only("sink_behind", "");
    drop(go);
    for ticket in tickets {
        assert!(ticket.wait(Duration::from_secs(30)).unwrap().is_kept());
    }
}

// D8: a torn line is loud
#[test]
fn a_torn_spill_line() {
    listen();
    let dir = tempfile::tempdir().unwrap();
    let spill = Spill::in_dirs("jobs", [dir.path().to_owned()]);
    let path = spill.append(&letter("kept")).unwrap();
    spill.append(&letter("torn")).unwrap();
    spill.release();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    let done = spill.import(|_| Ok(())).unwrap();
    assert_eq!((done.letters, done.bad_lines), (1, 1));
    let notice = only("spill_torn", "");
    assert!(notice.level == Level::Error && notice.message.contains(".bad"), "{notice}");
}
