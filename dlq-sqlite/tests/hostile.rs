//! What nobody should do to a store, done to it: names, clocks and export lines that are out of the ordinary, and two who
//! want the same place.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, EventQuery, ExportRequest, Exporter, Filter,
    Finish, ImportReport, Importer, ManualClock, MemoryStore, PageRequest, Parking, Payload, PruneRequest,
    ReplayOutcome, StoreAdmin,
};
use retry_runtime::error::StoreErrorKind;
use support::{assert_intact, letter, wait};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn ann() -> Actor {
    Actor::new("ann\0", "'; --\u{202e}")
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::options(path).reserve(false).open().unwrap()
}

fn export(store: &SqliteStore) -> String {
    let mut exporter = Exporter::new(store, Filter::all());
    let mut lines = String::new();
    while let Some(some) = block_on(exporter.next()).unwrap() {
        lines.push_str(&some);
    }
    lines
}

/// Letters, payloads and parkings are counted as they are.
fn assert_sums_agree(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT (SELECT count(*) FROM (SELECT 1 FROM
                 (SELECT scope, state, kind, error_class, -n AS n FROM tally
                  UNION ALL SELECT scope, state, kind, error_class, 1 FROM letter)
                 GROUP BY scope, state, kind, error_class HAVING sum(n) <> 0))
               + (SELECT count(*) FROM letter l WHERE parkings <> (SELECT count(*) FROM parking p WHERE p.seq = l.seq))";
    let wrong: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(wrong, 0, "tally and parkings are those of the rows");
}

// A name is data: in a filter, in SQL, in JSON and in the name of a part of the file.
#[test]
fn any_text_may_be_a_name() {
    let names = [
        "",
        "\0",
        "a\0b",
        "a\0c",
        "\n",
        "'; DROP TABLE letter; --",
        "\u{202e}ab\u{202c}",
        "../../x",
        "%",
        "_",
        "*",
        "a",
        "A",
        "a\u{308}",
        "ä",
        "\\u0000",
        "\"",
        "NULL",
        "1",
        "1.0",
        "[]",
        " ",
        "a ",
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a'b\n%.db");
    for scope in ["../x\0", "'; DROP TABLE letter; --"] {
        let store = SqliteStore::options(&path).scope(scope).reserve(false).open().unwrap();
        let mut ids = Vec::new();
        for name in names {
            let mut one = DeadLetter::new(name, StopReason::Exhausted, SystemTime::now());
            one.job_id = Some(name.to_owned());
            (one.model, one.class) = (Some(name.to_owned()), Some(name.to_owned()));
            one.payload = Payload::Json(serde_json::Value::from(name).to_string());
            let Parking::Parked { letter_id } = wait(store.submit(one)) else { panic!("{name:?}") };
            ids.push(letter_id);
        }
        for (name, id) in names.into_iter().zip(&ids) {
            let lists: [fn(&mut Filter) -> &mut Vec<String>; 4] =
                [|f| &mut f.kinds, |f| &mut f.job_ids, |f| &mut f.models, |f| &mut f.classes];
            // One value, and a list of them, are compiled in two ways.
            for (list, more) in lists.iter().flat_map(|list| [(list, vec![]), (list, vec!["none".to_owned()])]) {
                let mut filter = Filter::all();
                list(&mut filter).push(name.to_owned());
                list(&mut filter).extend(more);
                let found = block_on(store.list(filter.clone(), PageRequest::default()));
                let found: Vec<_> = found.unwrap().rows.into_iter().map(|row| row.letter_id).collect();
                assert_eq!((&found, block_on(store.count(filter)).unwrap()), (&vec![id.clone()], 1), "{name:?}");
            }
        }
        let lines = export(&store);
        let mut request = ClaimRequest::new(names, "w\0");
        request.limit = u32::MAX;
        let claimed = block_on(store.claim(request, ann())).unwrap();
        assert_eq!(claimed.len(), names.len());
        for one in claimed {
            let done = Finish::new(one.row.letter_id, one.row.fence, ReplayOutcome::Recovered);
            block_on(store.finish(done, ann())).unwrap();
        }
        let other = open(&directory.path().join(format!("other-{}.db", scope.len())));
        let report = block_on(Importer::new(&other, ann()).read(lines.as_bytes())).unwrap();
        assert_eq!((report.new, report.is_whole), (names.len() as u64, true), "{:?}", report.refused);
        assert!(export(&other) == lines);
        let mut request = PruneRequest::older_than(Duration::ZERO);
        request.kinds = vec!["a\0b".to_owned(), "%".to_owned(), "none".to_owned()];
        assert_eq!(block_on(store.prune(request, ann())).unwrap().total(), 2);
        store.close(Duration::from_secs(10));
    }
    assert_sums_agree(&path);
}

// 0 stands for "at any time", also before the epoch.
#[test]
fn a_clock_before_the_epoch_keeps_no_letter_back() {
    let directory = tempfile::tempdir().unwrap();
    let time = ManualClock::new(UNIX_EPOCH - Duration::from_secs(3_600));
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).clock(time.clock()).reserve(false).open().unwrap();
    let one = DeadLetter::new("fetch", StopReason::Exhausted, time.now());
    assert!(wait(store.submit(one)).is_kept());
    assert_eq!(block_on(store.claim(ClaimRequest::new(["fetch"], "w"), ann())).unwrap().len(), 1);
}

// Of several backups to one name one is made, and none takes anything of it away.
#[test]
fn backups_to_one_name_do_not_harm_each_other() {
    const LETTERS: u64 = 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).payload_file_above(0).reserve(false).open().unwrap();
    for n in 0..LETTERS {
        let mut one = letter(&n.to_string());
        one.payload = Payload::Json(format!("\"{}\"", format!("{n:02}").repeat(40_000)));
        assert!(wait(store.submit(one)).is_kept());
    }
    for round in 0..25 {
        let target = directory.path().join(format!("copy-{round}.db"));
        let started: Vec<_> = (0..4).map(|_| store.backup(&target)).collect();
        let ended: Vec<_> = started.into_iter().map(block_on).collect();
        assert_eq!(ended.iter().filter(|ended| ended.is_ok()).count(), 1, "{ended:?}");
        for refused in ended.into_iter().filter_map(Result::err) {
            assert_eq!(refused.kind(), StoreErrorKind::Conflict, "{refused}");
        }
        let copy = SqliteStore::options(&target).open_read_only().unwrap();
        let page = block_on(copy.export(ExportRequest::new(Filter::all()))).unwrap();
        assert_eq!(page.records.len() as u64, LETTERS);
        let whole = |payload: &Payload| matches!(payload, Payload::Json(_));
        assert!(page.records.iter().all(|record| whole(&record.revisions[0].payload)));
    }
}

/// An exported line with something else in it, and the checksum of that.
fn edited(line: &str, from: &str, to: &str) -> String {
    assert!(line.contains(from), "{from} in {line}");
    let line = line.replacen(from, to, 1);
    let at = line.find("\"crc\":\"").unwrap() + 7;
    let (head, tail) = (&line[..at], &line[at + 8..]);
    let crc = format!("{head}00000000{tail}").bytes().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
    });
    format!("{head}{:08x}{tail}", !crc)
}

/// What both kinds of store say to these lines; they must agree.
fn import(path: &Path, lines: &str) -> ImportReport {
    let (store, memory) = (open(path), MemoryStore::new());
    let report = block_on(Importer::new(&store, ann()).read(lines.as_bytes())).unwrap();
    assert_eq!(block_on(Importer::new(&memory, ann()).read(lines.as_bytes())).unwrap(), report);
    store.close(Duration::from_secs(10));
    assert_intact(path);
    assert_sums_agree(path);
    report
}

fn one_exported(directory: &Path) -> Vec<String> {
    let store = open(&directory.join("first.db"));
    assert!(wait(store.submit(letter("job"))).is_kept());
    export(&store).lines().map(str::to_owned).collect()
}

// A fence that cannot rise would never hold, and sums over such counts have no room.
#[test]
fn counts_that_no_letter_reaches_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let lines = one_exported(directory.path());
    assert_eq!(edited(&lines[1], "fetch", "fetch"), lines[1]);
    for (n, (from, name)) in [
        ("\"fence\":0", "fence"),
        ("\"attempts\":3,\"class\"", "attempts"),
        ("\"parkings\":1", "parkings"),
        ("\"history_cut\":0", "history_cut"),
        ("\"history_cut_at\":0", "history_cut_at"),
    ]
    .into_iter()
    .enumerate()
    {
        let to = from.replacen([':'], ":18446744073709551615,\"x\":", 1);
        let line = edited(&lines[1], from, &to);
        let report = import(&directory.path().join(format!("{n}.db")), &line);
        let why = format!("`{name}` is 18446744073709551615: accepted are 0 to 281474976710656");
        assert_eq!(report.refused, [(1, why)]);
    }
}

// D1
#[test]
fn a_parking_that_stands_twice_on_a_line_is_not_counted_twice() {
    let directory = tempfile::tempdir().unwrap();
    let lines = one_exported(directory.path());
    let at = lines[1].find("\"parked\":[").unwrap() + 10;
    let end = at + lines[1][at..].find(']').unwrap();
    let parking = &lines[1][at..end];
    let fresh = parking.replacen("\"park_id\":\"0", "\"park_id\":\"1", 1);
    let twice = edited(&lines[1], parking, &format!("{fresh},{fresh}"));
    let report = import(&directory.path().join("second.db"), &format!("{}\n{twice}\n", lines[1]));
    assert_eq!((report.new, report.merged, report.refused_lines), (1, 0, 1));
    assert!(report.refused[0].1.contains("stands in it twice"), "{:?}", report.refused);
}

// An export that went through a system with other ends of lines is the same export.
#[test]
fn an_export_with_carriage_returns_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let lines = one_exported(directory.path());
    let report = import(&directory.path().join("second.db"), &(lines.join("\r\n") + "\r\n"));
    assert_eq!((report.new, report.refused_lines, report.is_whole), (1, 0, true), "{:?}", report.refused);
}

// S4: a row that is damaged is one row; the others are listed, claimed and exported
#[test]
fn a_text_that_is_none_keeps_nobody_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    for job in ["a", "b", "c"] {
        assert!(matches!(wait(store.submit(letter(job))), Parking::Parked { .. }));
    }
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(
            "UPDATE letter SET error_message = CAST(x'62ff64' AS TEXT) WHERE job_id = 'a';
             UPDATE attempt SET message = CAST(x'ff' AS TEXT);
             UPDATE event SET reason = CAST(x'ff' AS TEXT);
             UPDATE payload SET sha256 = x'00' WHERE seq = (SELECT seq FROM letter WHERE job_id = 'c');",
        )
        .unwrap();
    let rows = block_on(store.list(Filter::all(), PageRequest::default())).unwrap().rows;
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().any(|row| row.error_message == "b\u{fffd}d"), "{rows:?}");
    for row in &rows {
        assert!(block_on(store.get(row.letter_id.clone())).unwrap().is_some());
        assert!(!block_on(store.revisions(row.letter_id.clone())).unwrap().is_empty());
    }
    assert_eq!(block_on(store.events(EventQuery::all())).unwrap().events.len(), 3);
    assert_eq!(export(&store).lines().count(), 5);
    let mut request = ClaimRequest::new(["fetch"], "w");
    request.limit = 10;
    request.ignore_backoff = true;
    assert_eq!(block_on(store.claim(request, ann())).unwrap().len(), 3);
}
