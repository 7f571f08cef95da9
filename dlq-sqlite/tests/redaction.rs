//! Secrets do not reach the disk (STORE D9).
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, DeadLetter, DeadLetterSink, DeadLetterStore, Edit, Exporter, Filter, Importer, Order, PageRequest, Parking,
    Payload, Redactor, ReplayError, Replayer,
};

const SECRET: &str = "hunter2x9";

fn letter(job: &str) -> DeadLetter {
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
    letter.job_id = Some(job.into());
    letter.error_message = format!("401 for https://bob:{SECRET}@host/?token={SECRET}");
    letter.payload = Payload::Json(format!("{{\"password\":\"{SECRET}\",\"n\":1}}"));
    letter
}

fn park(store: &SqliteStore, letter: DeadLetter) -> Parking {
    store.submit(letter).wait(Duration::from_secs(30)).unwrap()
}

/// Every file of a directory that has the secret in it.
fn leaks(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let has_it = |path: &std::path::PathBuf| {
        path.is_file() && std::fs::read(path).unwrap().windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
    };
    files.filter(has_it).map(|path| path.display().to_string()).collect()
}

// D9: payloads only by rules the user installs; such a letter is passed over until it is edited.
#[tokio::test]
async fn an_altered_payload_waits_to_be_edited() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let options = || SqliteStore::options(&path).reserve(false).redact_payloads(Redactor::standard());
    let store = Arc::new(options().open().unwrap());
    let Parking::Parked { letter_id } = park(&store, letter("a")) else { panic!("not parked") };
    assert_eq!(leaks(directory.path()), Vec::<String>::new());
    let detail = store.get(letter_id.clone()).await.unwrap().unwrap();
    assert!(detail.row.payload_altered);
    assert_eq!(detail.payload, Payload::Json("{\"password\":\"[redacted]\",\"n\":1}".to_owned()));
    let replayer = || Replayer::new(Arc::clone(&store)).execute().on("fetch", |_| async { Ok::<_, ReplayError>(()) });
    let report = replayer().run().await.unwrap();
    assert_eq!((report.skipped.altered, report.recovered), (1, 0), "{report}");
    // Parked again, the same rule makes the same of it.
    park(&store, letter("a"));
    assert!(store.get(letter_id.clone()).await.unwrap().unwrap().row.payload_altered);
    let edit = Edit::new(&letter_id, 1, "{\"password\":\"asked for at the replay\",\"n\":1}");
    assert!(!store.edit(edit, Actor::new("ann", "made whole")).await.unwrap().row.payload_altered);
    assert!(replayer().run().await.unwrap().is_complete());
}

// D9: the spill is written by the same door, and remembers what was altered.
#[tokio::test]
async fn a_spilled_letter_has_no_secret_either() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let options = || SqliteStore::options(&path).reserve(false).redact_payloads(Redactor::standard());
    options().open().unwrap().close(Duration::from_secs(10));
    let store = options().open_read_only().unwrap();
    assert!(matches!(park(&store, letter("a")), Parking::Spilled { .. }));
    assert_eq!(leaks(directory.path()), Vec::<String>::new());
    store.close(Duration::from_secs(10));
    drop(store);
    // Whoever takes it in knows, whatever its own rules are.
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    store.settle().await;
    let page = store.list(Filter::all(), PageRequest::first(Order::NewestFirst, 10)).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    assert!(page.rows.iter().all(|row| row.payload_altered && row.error_message.starts_with("401 for https://")));
    assert_eq!(leaks(directory.path()), Vec::<String>::new());
}

// D9: what a program with other rules has spilled comes in by the same door.
#[tokio::test]
async fn a_spilled_letter_is_taken_in_by_the_rules_of_who_takes_it_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    SqliteStore::options(&path).reserve(false).open().unwrap().close(Duration::from_secs(10));
    let careless = SqliteStore::options(&path).reserve(false).redact_errors(Redactor::none()).open_read_only().unwrap();
    assert!(matches!(park(&careless, letter("a")), Parking::Spilled { .. }));
    assert_eq!(leaks(directory.path()).len(), 1);
    careless.close(Duration::from_secs(10));
    drop(careless);
    let store = SqliteStore::options(&path).reserve(false).redact_payloads(Redactor::standard()).open().unwrap();
    store.settle().await;
    let page = store.list(Filter::all(), PageRequest::first(Order::NewestFirst, 10)).await.unwrap();
    let [row] = page.rows.as_slice() else { panic!("{page:?}") };
    assert!(row.payload_altered && !row.error_message.contains(SECRET), "{}", row.error_message);
    store.close(Duration::from_secs(10));
    drop(store);
    let of_the_database: Vec<_> =
        leaks(directory.path()).into_iter().filter(|path| !path.contains(".spill.")).collect();
    assert_eq!(of_the_database, Vec::<String>::new());
}

// D9: it can be switched off, and extended.
#[tokio::test]
async fn the_defaults_are_the_user_s_to_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).redact_errors(Redactor::none().key("n")).open().unwrap();
    let mut sent = letter("a");
    sent.error_message = format!("password={SECRET} n=17");
    let Parking::Parked { letter_id } = park(&store, sent) else { panic!("not parked") };
    let detail = store.get(letter_id).await.unwrap().unwrap();
    assert_eq!(detail.row.error_message, format!("password={SECRET} n=[redacted]"));
    assert!(!detail.row.payload_altered);
    // Stored as it is, and not shown so.
    let shown = format!("{:?}", Redactor::standard().payload(&detail.payload));
    assert!(!shown.contains(SECRET), "{shown}");
}

// D9: what is imported comes in by the same door, payloads too; and a second time it is known
#[tokio::test]
async fn an_imported_letter_is_taken_in_by_the_rules_of_who_takes_it_in() {
    let elsewhere = tempfile::tempdir().unwrap();
    let options = |path: &Path| SqliteStore::options(path.join("jobs.db")).reserve(false);
    let careless = options(elsewhere.path()).redact_errors(Redactor::none()).open().unwrap();
    assert!(matches!(park(&careless, letter("a")), Parking::Parked { .. }));
    let mut exporter = Exporter::new(&careless, Filter::all());
    let mut lines = String::new();
    while let Some(some) = exporter.next().await.unwrap() {
        lines.push_str(&some);
    }
    assert!(lines.contains(SECRET));
    let here = tempfile::tempdir().unwrap();
    let store = options(here.path()).redact_payloads(Redactor::standard()).open().unwrap();
    for (new, known) in [(1, 0), (0, 1)] {
        let report = Importer::new(&store, Actor::new("ann", "moved")).read(lines.as_bytes()).await.unwrap();
        assert_eq!((report.new, report.known, report.refused.len()), (new, known, 0), "{report}");
    }
    // parked here too, it is the same payload
    park(&store, letter("a"));
    let page = store.list(Filter::all(), PageRequest::default()).await.unwrap();
    let [row] = page.rows.as_slice() else { panic!("{page:?}") };
    assert!(row.payload_altered);
    assert_eq!((row.payload_revision, row.parkings), (1, 2));
    let detail = store.get(row.letter_id.clone()).await.unwrap().unwrap();
    let payload = "{\"password\":\"[redacted]\",\"n\":1}";
    assert_eq!(detail.payload, Payload::Json(payload.to_owned()));
    assert_eq!(row.payload_size, Some(payload.len() as u64));
    store.close(Duration::from_secs(10));
    drop(store);
    assert_eq!(leaks(here.path()), Vec::<String>::new());
}
