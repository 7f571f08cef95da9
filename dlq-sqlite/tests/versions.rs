//! Files of other versions, and programs of other versions on one file (STORE S7): an old file with a new program, a new
//! file with an old program, a file of a version that is still to come, and a migration that many want, or that is killed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::counters::{DailyCounters, Day, Thresholds};
use retry_runtime::dead_letter::{
    Actor, Checkup, ClaimRequest, DeadLetterSink, DeadLetterStore, Doctor, Filter, Finding, Finish, LetterState, Order,
    PageRequest, Parking, Payload, ReplayOutcome, Severity, to_millis,
};
use retry_runtime::error::StoreErrorKind;
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerBooks, LedgerKey, LedgerQuery, LedgerStatus};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use support::{assert_intact, child, child_work, letter, parkings, spilled, tell, told, wait};

/// A file of schema 1, in the repository for ever.
const OLD_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/store-v1.db");

const SCHEMA_1: &str = include_str!("../migrations/0001_initial.sql");

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn answer<T>(reply: retry_runtime::reply::Reply<T>) -> T {
    reply.wait(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no answer in a minute"))
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::options(path).reserve(false).flush_counters_every(Duration::ZERO).open().unwrap()
}

fn me() -> Actor {
    Actor::new("mira", "a test")
}

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    (directory, path)
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// A program of schema 1: its statements, as it prepared them.
struct OldProgram {
    connection: Connection,
    statements: BTreeMap<&'static str, &'static str>,
    used: BTreeSet<&'static str>,
}

impl OldProgram {
    fn open(path: &Path) -> Self {
        let text = include_str!("fixtures/schema1_statements.sql");
        let statements: BTreeMap<_, _> = text
            .split("\n-- ")
            .skip(1)
            .filter_map(|part| part.split_once('\n'))
            .filter(|(_, sql)| sql.contains(';'))
            .collect();
        let connection = Connection::open(path).unwrap();
        // As it was set then.
        connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF").unwrap();
        // What it looked at before it went on: it may write such a file.
        let min_reader = "SELECT value FROM meta WHERE key = 'min_reader_version'";
        assert_eq!(connection.query_row(min_reader, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        Self { connection, statements, used: BTreeSet::new() }
    }

    fn statement(&mut self, name: &'static str) -> &'static str {
        self.used.insert(name);
        self.statements.get(name).copied().unwrap_or_else(|| panic!("no statement `{name}`"))
    }

    fn write(&mut self, name: &'static str, values: &[Value]) -> usize {
        let sql = self.statement(name);
        self.connection.execute(sql, params_from_iter(values)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn rows(&mut self, name: &'static str, values: &[Value]) -> Vec<Vec<Value>> {
        let sql = self.statement(name);
        let mut statement = self.connection.prepare(sql).unwrap_or_else(|error| panic!("{name}: {error}"));
        let width = statement.column_count();
        let rows = statement.query_map(params_from_iter(values), |row| (0..width).map(|n| row.get(n)).collect());
        rows.unwrap().collect::<rusqlite::Result<_>>().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Parks a job with all that goes with it, in one transaction.
    fn park(&mut self, job: &str, park_id: &str, now: i64) -> i64 {
        assert_eq!(self.rows("known parking", &[text(park_id)]).len(), 0);
        self.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let json = format!("{{\"old\":\"{job}\"}}");
        let size = Value::Integer(i64::try_from(json.len()).unwrap());
        let added = self.rows(
            "add letter",
            &[
                text(&format!("letter-{job}")),
                text("default"),
                text("fetch"),
                text(job),
                Value::Null,
                text("parked"),
                text("exhausted"),
                text("retryable"),
                text("rate_limit"),
                Value::Integer(429),
                text("exhausted:429"),
                text("app::Error"),
                text("429 Too Many Requests"),
                text("00000000000000aa"),
                1.into(),
                3.into(),
                1.into(),
                5.into(),
                3.into(),
                0.into(),
                now.into(),
                now.into(),
                now.into(),
                1.into(),
                size.clone(),
                Value::Null,
                text("old:1"),
            ],
        );
        let seq = match added.first() {
            Some(row) => integer(&row[0]),
            None => integer(&self.rows("letter of a job", &[text("default"), text("fetch"), text(job)])[0][0]),
        };
        let known = self.rows("known payload", &[seq.into(), Value::Blob(vec![7; 32]), 1.into()]);
        if integer(&known[0][0]) == 0 {
            let bytes = Value::Blob(json.into_bytes());
            self.write("add payload", &[seq.into(), 1.into(), size, bytes, Value::Blob(vec![7; 32]), now.into()]);
        }
        self.attempt(seq, Some(park_id), None, "failed", now);
        let parking = [text(park_id), seq.into(), text(&format!("letter-{job}")), text("exhausted"), 3.into()];
        let taken = [now.into(), now.into(), text("live"), text("old:1")];
        self.write("add parking", &[parking.as_slice(), taken.as_slice()].concat());
        self.write("add arrival", &[(now / 3_600_000).into(), text("default"), text("fetch"), text("exhausted:429")]);
        self.event(seq, "parked", Value::Null, text("parked"), now);
        self.connection.execute_batch("COMMIT").unwrap();
        seq
    }

    fn attempt(&mut self, seq: i64, park_id: Option<&str>, fence: Option<i64>, outcome: &str, now: i64) {
        let park_id = park_id.map_or(Value::Null, text);
        let fence = fence.map_or(Value::Null, Value::Integer);
        let what = [seq.into(), park_id, fence, text(outcome), 0.into(), 1.into(), now.into(), 1_500.into()];
        let error = [text("rate_limit"), Value::Integer(429), text("429"), Value::Null];
        self.write("add attempt", &[what.as_slice(), error.as_slice()].concat());
    }

    fn event(&mut self, seq: i64, what: &str, before: Value, after: Value, now: i64) {
        self.write("add event", &[seq.into(), now.into(), text(what), text("old"), text(""), before, after, text("")]);
    }

    /// Takes the letter and leaves it `state`.
    fn replay(&mut self, seq: i64, state: &str, now: i64) {
        let due = self.rows("due letters", &[text("default"), text("fetch"), now.into(), 100.into()]);
        let row = due.iter().find(|row| integer(&row[0]) == seq).unwrap().clone();
        let fence = integer(&row[22]) + 1;
        let lease = now + 60_000;
        self.write("claim letter", &[seq.into(), text("replaying"), fence.into(), text("old"), lease.into(), 0.into()]);
        assert_eq!(self.write("extend lease", &[seq.into(), (lease + 1).into(), fence.into()]), 1);
        let payload = self.rows("payload", &[seq.into()]);
        assert_eq!(payload[0][0], text("json"));
        let closed = if state == "parked" { Value::Null } else { now.into() };
        let of = |at: usize| row[at].clone();
        let values = [
            seq.into(),
            of(5),
            text(state),
            of(7),
            of(8),
            of(9),
            of(10),
            of(11),
            of(12),
            of(13),
            of(14),
            1.into(),
            (integer(&row[15]) + 1).into(),
            of(16),
            (integer(&row[17]) + 1).into(),
            of(18),
            of(19),
            of(20),
            0.into(),
            fence.into(),
            Value::Null,
            Value::Null,
            of(25),
            of(26),
            of(27),
            now.into(),
            closed,
            of(30),
            of(31),
            of(32),
            text("old:1"),
            text("old"),
            text(state),
            of(34),
        ];
        self.write("save letter", &values);
        let outcome = if state == "recovered" { "succeeded" } else { "failed" };
        self.attempt(seq, None, Some(fence), outcome, now);
        self.event(seq, "replayed", text("replaying"), text(state), now);
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[track_caller]
fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(n) => *n,
        other => panic!("{other:?}"),
    }
}

// S7: an old program on a new file. It writes what it knows, reads what is there, and the new program reads what it wrote.
#[test]
fn a_program_of_schema_1_uses_a_file_of_this_schema() {
    let (_directory, path) = fresh();
    let store = open(&path);
    assert!(version(&path) > 1);
    for job in ["new", "both"] {
        assert!(matches!(wait(store.submit(letter(job))), Parking::Parked { .. }));
    }
    let mut large = letter("large");
    large.payload = Payload::Json(format!("\"{}\"", "x".repeat(100_000)));
    assert!(matches!(wait(store.submit(large)), Parking::Parked { .. }));

    let now = to_millis(SystemTime::now());
    let mut old = OldProgram::open(&path);
    let parked = old.park("old", "0190-1", now);
    let recovered = old.park("recovered", "0190-2", now);
    let abandoned = old.park("abandoned", "0190-3", now);
    let both = old.park("both", "0190-4", now);
    old.replay(parked, "parked", now + 1);
    old.replay(recovered, "recovered", now + 2);
    old.replay(abandoned, "abandoned", now + 3);
    assert_eq!(old.rows("expired leases", &[(now + 1).into(), 100.into()]).len(), 0);
    // What it reads: its own, and those of the new program. A payload it cannot decode it says so of, and keeps.
    assert_eq!(old.rows("letter by id", &[text("letter-old"), text("default")]).len(), 1);
    assert_eq!(old.rows("count revisions", &[parked.into()]), [[Value::Integer(1)]]);
    assert_eq!(old.rows("history", &[parked.into()]).len(), 2);
    assert_eq!(old.rows("page", &[text("default"), 0.into(), 0.into(), 100.into()]).len(), 4);
    assert_eq!(old.rows("count by tally", &[text("default")]), [[Value::Integer(5)]]);
    assert_eq!(old.rows("count by rows", &[text("default"), text("rate_limit"), 0.into()]), [[Value::Integer(4)]]);
    assert_eq!(old.rows("summary", &[text("default")]).len(), 3);
    assert!(!old.rows("groups", &[text("default")]).is_empty());
    let entry = |status: &str, attempts: i64| {
        vec![text("s"), text("k"), text(status), attempts.into(), 0.into(), now.into(), now.into(), 0.into()]
    };
    old.write("save ledger entry", &entry("open", 1));
    old.write("save ledger entry", &entry("gone", 2));
    assert_eq!(old.rows("ledger entry", &[text("s"), text("k")]).len(), 1);
    assert_eq!(old.rows("ledger page", &[text("s"), text(""), 10.into()]).len(), 1);
    for n in [3, 4] {
        let values = [text("2026-11-30"), text("archive"), text("n"), n.into(), i64::MAX.into()];
        old.write("add to counter", &values);
    }
    assert_eq!(old.rows("counters of a day", &[text("2026-11-30"), text("archive")]).len(), 1);
    let days = [text("2026-11-01"), text("2026-11-30"), text("archive"), text("n")];
    assert_eq!(old.rows("series", &days), [[text("2026-11-30"), Value::Integer(7)]]);
    old.write("probe", &[now.into()]);
    let known: BTreeSet<_> = old.statements.keys().copied().collect();
    assert_eq!(old.used, known, "every statement was tried");
    drop(old);

    // The new program reads it all, and goes on with it.
    let rows = block(store.list(Filter::all(), PageRequest::default())).unwrap().rows;
    let states: BTreeMap<_, _> = rows.iter().map(|row| (row.job_id.as_str(), row.state)).collect();
    let wanted = [
        ("abandoned", LetterState::Abandoned),
        ("both", LetterState::Parked),
        ("large", LetterState::Parked),
        ("new", LetterState::Parked),
        ("old", LetterState::Parked),
        ("recovered", LetterState::Recovered),
    ];
    assert_eq!(states, BTreeMap::from(wanted));
    let detail = block(store.get("letter-old".into())).unwrap().unwrap();
    assert_eq!((detail.row.replays, detail.history.len(), detail.revisions), (1, 2, 1));
    assert_eq!(detail.payload, Payload::Json("{\"old\":\"old\"}".into()));
    let merged = rows.iter().find(|row| row.job_id == "both").unwrap();
    assert_eq!(merged.seq, u64::try_from(both).unwrap());
    assert_eq!(block(store.restore("letter-abandoned".into(), 1, me())).unwrap().state, LetterState::Parked);
    let mut request = ClaimRequest::new(["fetch"], "new");
    request.filter = Filter::id("letter-old");
    request.ignore_backoff = true;
    let claimed = block(store.claim(request, me())).unwrap().pop().unwrap();
    let finish = Finish::new(claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered);
    assert_eq!(block(store.finish(finish, me())).unwrap().state, LetterState::Recovered);
    let page = block(store.page(LedgerQuery::of("s").status(LedgerStatus::Gone))).unwrap();
    assert_eq!(page.entries.iter().map(|entry| entry.attempts).collect::<Vec<_>>(), [2]);
    let day = Day::parse("2026-11-30").unwrap();
    assert_eq!(block(store.day("archive".into(), day)).unwrap(), BTreeMap::from([("n".to_owned(), 7)]));
    let found = block(store.doctor(Checkup::full())).unwrap();
    let bad: Vec<_> = found.iter().filter(|finding| finding.severity > Severity::Info).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

// S7: a new program that only reads an old file, which nobody brings up to date
#[test]
fn a_file_of_schema_1_is_read_in_every_way() {
    let (_directory, path) = fresh();
    std::fs::copy(OLD_FILE, &path).unwrap();
    let store = SqliteStore::options(&path).open_read_only().unwrap();
    for kinds in [vec![], vec!["fetch".to_owned()]] {
        for order in [Order::NewestFirst, Order::LongestUnseenFirst] {
            let mut filter = Filter::all();
            filter.kinds.clone_from(&kinds);
            assert_eq!(block(store.list(filter, PageRequest::first(order, 100))).unwrap().rows.len(), 8);
        }
    }
    let query = LedgerQuery::of("image_archive");
    assert_eq!(block(store.page(query.clone())).unwrap().entries.len(), 4);
    assert_eq!(block(store.page(query.status(LedgerStatus::Open))).unwrap().entries.len(), 2);
    assert_eq!(block(store.counts("image_archive".into())).unwrap().total(), 4);
    assert_eq!(block(store.scopes()).unwrap(), ["image_archive"]);
    assert_eq!(block(store.thresholds()).unwrap(), []);
    assert_eq!(block(store.degraded(Day::parse("2026-01-04").unwrap())).unwrap(), []);
    let found = block(store.doctor(Checkup::full())).unwrap();
    let codes: Vec<_> = found.iter().map(|finding| finding.code).collect();
    assert!(codes.contains(&"schema_older") && !codes.contains(&"unreadable"), "{found:#?}");
    assert_eq!(version(&path), 1);
}

// S7: processes that start together on an old file migrate it once
#[test]
fn many_processes_bring_one_old_file_up_to_date() {
    const CHILDREN: usize = 4;
    const ROUNDS: usize = 8;
    if let Some(directory) = child_work() {
        let directory = PathBuf::from(directory);
        for round in 0..ROUNDS {
            tell("ready");
            while !directory.join(format!("{round}.go")).exists() {
                std::thread::yield_now();
            }
            let store = SqliteStore::options(directory.join(format!("{round}.db"))).reserve(false).open();
            let store = store.unwrap_or_else(|error| panic!("{error}"));
            assert!(!store.is_down());
            assert!(matches!(wait(store.submit(letter(&std::process::id().to_string()))), Parking::Parked { .. }));
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let test = "many_processes_bring_one_old_file_up_to_date";
    let work = directory.path().to_str().unwrap();
    let mut children: Vec<_> = (0..CHILDREN).map(|_| child(&[], test, work).spawn().unwrap()).collect();
    let mut told: Vec<_> = children.iter_mut().map(told).collect();
    for round in 0..ROUNDS {
        let path = directory.path().join(format!("{round}.db"));
        std::fs::copy(OLD_FILE, &path).unwrap();
        for child in &mut told {
            // One that failed says nothing more; its status tells.
            let _ready = child.next();
        }
        std::fs::write(directory.path().join(format!("{round}.go")), "").unwrap();
    }
    for mut told in told {
        assert_eq!(told.next(), None);
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for round in 0..ROUNDS {
        let path = directory.path().join(format!("{round}.db"));
        assert!(version(&path) > 1);
        let connection = Connection::open(&path).unwrap();
        let jobs: i64 = connection.query_row("SELECT count(*) FROM letter", [], |row| row.get(0)).unwrap();
        assert_eq!(jobs, i64::try_from(8 + CHILDREN).unwrap());
        let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok");
    }
}

/// A file of schema 1 that takes a moment to migrate.
fn large_old_file(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL").unwrap();
    connection.execute_batch(&format!("BEGIN; {SCHEMA_1}")).unwrap();
    connection
        .execute_batch(
            "INSERT INTO meta VALUES('min_reader_version', 1);
             WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10000)
             INSERT INTO letter(id, scope, kind, job_id, state, reason, disposition, error_class, error_type,
               error_message, fingerprint, fingerprint_version, max_replays, max_crashes, first_seen, last_seen,
               parked_at, writer)
             SELECT 'letter-' || x, 'default', 'fetch', 'job-' || x, 'parked', 'exhausted', 'retryable', 'exhausted',
               'app::Error', 'no answer', 'f', 1, 5, 3, x, x, x, 'old:1' FROM n;
             INSERT INTO parking SELECT 'park-' || seq, seq, id, reason, 1, 1, 1, 'live', 'old:1' FROM letter;
             PRAGMA application_id = 1145852209; PRAGMA user_version = 1; COMMIT;
             PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
}

// S7: each migration is one transaction, so a kill in its middle leaves the old file, whole
#[test]
fn a_kill_in_a_migration_leaves_the_old_schema() {
    if let Some(path) = child_work() {
        tell("opening");
        drop(SqliteStore::options(path).reserve(false).open().unwrap());
        return;
    }
    let (directory, template) = fresh();
    large_old_file(&template);
    let mut of_schema_1 = 0;
    for round in 0..5 {
        let path = directory.path().join(format!("{round}.db"));
        std::fs::copy(&template, &path).unwrap();
        let work = path.to_str().unwrap();
        let mut migrating = child(&[], "a_kill_in_a_migration_leaves_the_old_schema", work).spawn().unwrap();
        assert_eq!(told(&mut migrating).next().as_deref(), Some("opening"));
        let looking = Connection::open(&path).unwrap();
        looking.busy_timeout(Duration::ZERO).unwrap();
        // Somebody else has the write lock: the migration has begun.
        while looking.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() {
            if let Some(status) = migrating.try_wait().unwrap() {
                assert!(status.success());
                break;
            }
        }
        migrating.kill().unwrap();
        migrating.wait().unwrap();
        drop(looking);
        of_schema_1 += u32::from(version(&path) == 1);
        assert_intact(&path);
        // An old program finds what it left, and a new one goes on.
        assert_eq!(
            block(SqliteStore::options(&path).open_read_only().unwrap().count(Filter::parked())).unwrap(),
            10_000
        );
        let store = open(&path);
        assert!(version(&path) > 1 && !store.is_down());
        assert_eq!(block(store.count(Filter::parked())).unwrap(), 10_000);
    }
    assert!(of_schema_1 > 0, "no kill came in the middle of a migration");
}

// S7: a later schema that says it can be read by this one: written, with the columns known here, and what it added stays
#[test]
fn a_later_file_is_used_and_keeps_what_it_added() {
    let (_directory, path) = fresh();
    drop(open(&path));
    let later = |min_reader: i64| {
        Connection::open(&path)
            .unwrap()
            .execute_batch(&format!(
                "PRAGMA user_version = 3; UPDATE meta SET value = {min_reader} WHERE key = 'min_reader_version'"
            ))
            .unwrap();
    };
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "ALTER TABLE letter ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'; ALTER TABLE payload ADD COLUMN spice REAL;
             ALTER TABLE ledger ADD COLUMN mood TEXT; CREATE TABLE later(x TEXT) STRICT",
        )
        .unwrap();
    later(2);
    let store = open(&path);
    assert!(!store.is_down());
    let Parking::Parked { letter_id } = wait(store.submit(letter("a"))) else { panic!("not parked") };
    Connection::open(&path).unwrap().execute_batch("UPDATE letter SET mood = 'wild'").unwrap();
    assert!(matches!(wait(store.submit(letter("a"))), Parking::Parked { .. }));
    let mut request = ClaimRequest::new(["fetch"], "w");
    request.limit = 10;
    let claimed = block(store.claim(request, me())).unwrap().pop().unwrap();
    block(store.finish(Finish::new(letter_id.clone(), claimed.row.fence, ReplayOutcome::Recovered), me())).unwrap();
    let Begin::Go { token, .. } = answer(store.begin(LedgerKey::new("s", "k"), 3)).unwrap() else { panic!("refused") };
    assert!(answer(store.end(LedgerKey::new("s", "k"), token, End::Ok)).unwrap());
    assert!(answer(store.add("archive", "n", 1)).is_ok());
    let mood = |path: &Path| -> String {
        Connection::open(path).unwrap().query_row("SELECT mood FROM letter", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((mood(&path).as_str(), version(&path)), ("wild", 3), "neither is touched");
    assert_eq!(block(store.get(letter_id)).unwrap().unwrap().row.state, LetterState::Recovered);
    let found = block(store.doctor(Checkup::quick())).unwrap();
    assert!(found.iter().any(|finding| finding.code == "schema_newer"), "{found:#?}");
    assert!(Finding::worst(&found) <= Some(Severity::Info), "{found:#?}");
    drop(store);

    // One that cannot be read by this one: nothing is written, nothing is read wrongly, no letter is lost.
    later(3);
    let before = std::fs::read(&path).unwrap();
    let store = open(&path);
    assert!(store.is_down());
    assert!(matches!(wait(store.submit(letter("b"))), Parking::Spilled { .. }));
    for refused in [
        block(store.count(Filter::all())).unwrap_err(),
        block(store.get("a".to_owned())).unwrap_err(),
        block(store.list(Filter::all(), PageRequest::first(Order::NewestFirst, 5))).unwrap_err(),
    ] {
        assert_eq!(refused.kind(), StoreErrorKind::Unavailable, "{refused}");
        assert!(refused.to_string().contains("schema 3") && refused.to_string().contains("later version"), "{refused}");
    }
    assert_eq!(answer(store.begin(LedgerKey::new("s", "k2"), 3)).unwrap_err().kind(), StoreErrorKind::ReadOnly);
    let found = block(store.doctor(Checkup::quick())).unwrap();
    let down = found.iter().find(|finding| finding.code == "store_down").unwrap();
    assert!(down.advice.contains("later program"), "{down}");
    assert!(SqliteStore::options(&path).open_read_only().is_err());
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let directory = path.parent().unwrap();
    assert_eq!((parkings(&path).len(), spilled(&[directory]).len()), (2, 1));
    // The later program takes it in; here, this one again.
    later(2);
    let store = open(&path);
    answer(store.settle());
    assert_eq!((parkings(&path).len(), spilled(&[directory]).len()), (3, 0));
}

// S7: two versions of the library at work on one file at once
#[test]
fn two_versions_share_a_file() {
    let (_directory, path) = fresh();
    let store = open(&path);
    let now = to_millis(SystemTime::now());
    std::thread::scope(|scope| {
        let path = &path;
        scope.spawn(move || {
            let mut old = OldProgram::open(path);
            old.connection.busy_timeout(Duration::from_secs(30)).unwrap();
            for n in 0..100 {
                old.park(&format!("job-{n}"), &format!("old-{n}"), now);
            }
        });
        for n in 0..100 {
            assert!(matches!(wait(store.submit(letter(&format!("job-{n}")))), Parking::Parked { .. }));
        }
    });
    assert_eq!(block(store.count(Filter::all())).unwrap(), 100, "one letter a job, whoever parked it first");
    assert_eq!(parkings(&path).len(), 200);
    let connection = Connection::open(&path).unwrap();
    let history: i64 = connection.query_row("SELECT count(*) FROM attempt", params![], |row| row.get(0)).unwrap();
    assert_eq!(history, 100 * (3 + 1));
    let rows = block(store.list(Filter::all(), PageRequest::first(Order::NewestFirst, 200))).unwrap().rows;
    assert!(rows.iter().all(|row| row.reason == StopReason::Exhausted));
    assert!(Finding::worst(&block(store.doctor(Checkup::full())).unwrap()) <= Some(Severity::Info));
}
