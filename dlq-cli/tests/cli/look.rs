//! Commands that only look.

use super::support::{Bench, bytes, until, usual};

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use retry_runtime::counters::{DailyCounters as _, Thresholds as _};
use retry_runtime::dead_letter::{Actor, DeadLetterStore as _, Filter, JobJournal as _, PageRequest};
use retry_runtime::ledger::{AttemptLedger as _, LedgerKey};

// B1.9, D10
#[test]
fn the_summary_is_what_programs_print() {
    let bench = Bench::with(7);
    let ran = bench.dlq(&["summary"]).exits(0).warns(&format!("store: sqlite:{}", bench.db().display()));
    assert_eq!(ran.out, "dead-letter: 7 parked\n     5  exhausted:timeout\n     2  permanent:403\n");
    let clean = Bench::with(0).dlq(&["summary"]).exits(0);
    assert_eq!(clean.out, "dead-letter: clean (0 parked)\n");
}

// The questions of three in the morning
#[test]
fn the_first_page_answers_what_is_asked_at_night() {
    let bench = Bench::with(7);
    bench.fill(|store, bench| {
        let mut hinted = usual(100);
        hinted.not_before = Some(SystemTime::now() + Duration::from_secs(7_200));
        bench.park(store, hinted);
        bench.wait(store.enter(usual(200))).unwrap();
        let row = bench.wait(store.list(Filter::all(), PageRequest::default())).unwrap().rows.pop().unwrap();
        bench.wait(store.discard(row.letter_id, Actor::new("eve", "not worth it"))).unwrap();
    });
    std::fs::write(bench.path("jobs.db.corrupt-17"), "x".repeat(5_000)).unwrap();
    let page = bench.dlq(&[]).exits(0);
    for said in [
        &format!("store: sqlite:{}", bench.db().display()),
        "7 parked",
        "of processes that died",
        "5  exhausted:timeout",
        "longest unseen: page-",
        "8 parkings in the last 24 hours, 0 in the 24 before",
        "letters, first ",
        "has jobs under way, last heartbeat",
        "due in 1 h 59 min",
        "would give up 7 letters",
        "eve discarded letter",
        "not worth it",
        "database ",
        "free on the disk",
        "set aside as corrupt (4.8 KiB)",
        "0.1.0 (8)",
        "dlq groups",
        "dlq replay --all",
    ] {
        assert!(page.out.contains(said), "no `{said}` in\n{}", page.out);
    }
    assert!(!page.out.contains('\x1b'), "colour where nobody sees it");
    let empty = Bench::with(0).dlq(&[]).exits(0).says("nothing is owed");
    assert!(empty.out.contains("dlq check --max-parked 0"), "{empty:?}");
}

// Colour off where it goes to no terminal, unless somebody insists; NO_COLOR has the last word.
#[test]
fn colour_is_forced_and_forbidden_by_the_environment() {
    let bench = Bench::with(3);
    let coloured = |force: &str, never: &str| {
        let output = bench.command(&[]).env("CLICOLOR_FORCE", force).env("NO_COLOR", never).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().contains('\x1b')
    };
    assert_eq!([coloured("1", ""), coloured("", ""), coloured("1", "1")], [true, false, false]);
}

// Reading commands open read-only
#[test]
fn looking_changes_no_byte() {
    let bench = Bench::with(5);
    let before = bytes(&bench.db());
    let letter = bench.json(&["list"])["letters"][0]["letter_id"].as_str().unwrap().to_owned();
    for arguments in [
        &[][..],
        &["summary"],
        &["list", "--all"],
        &["groups"],
        &["show", &letter],
        &["stats"],
        &["ops"],
        &["audit"],
        &["ledger"],
        &["doctor", "--full"],
        &["replay", "--all"],
        &["export"],
        &["prune", "--older-than", "1d", "--dry-run"],
        &["tail", "--limit", "3"],
        &["backup", "copy.db"],
    ] {
        bench.dlq(arguments).exits(0);
    }
    bench.dlq(&["check", "--max-parked", "1"]).exits(3);
    assert_eq!(bytes(&bench.db()), before);
    assert!(!bench.path("jobs.db.spill").exists());
}

#[test]
fn filters_mean_the_same_everywhere() {
    let bench = Bench::with(30);
    bench.dlq(&["list"]).exits(0).says("20 of 30 matching");
    bench.dlq(&["list", "--class", "timeout", "--limit", "5"]).exits(0).says("5 of 20 matching");
    bench.dlq(&["list", "--error-class", "permanent:403"]).exits(0).says("10 of 10 matching");
    bench.dlq(&["list", "--kind", "other"]).exits(1).warns("there are: summarise");
    bench.dlq(&["list", "--since", "30m"]).exits(0).says("0 of 0 matching");
    bench.dlq(&["list", "--until", "30m", "--limit", "1"]).exits(0).says("1 of 30 matching");
    bench.dlq(&["list", "--status", "recovered,discarded"]).exits(0).says("0 of 0 matching");
    bench.dlq(&["list", "--id", "page-7"]).exits(0).says("1 of 1 matching");
    bench.dlq(&["groups", "--class", "timeout"]).exits(0).says("20 of 20 matching");
    bench.dlq(&["replay", "--class", "timeout", "--limit", "4"]).exits(0).says("4 of 20 matching");
    let group = bench.json(&["groups", "--limit", "1"])["groups"][0]["group"].as_str().unwrap().to_owned();
    bench.dlq(&["list", "--group", &group]).exits(0).says("20 of 20 matching");
    bench.dlq(&["list", "--status", "lost"]).exits(2).warns("accepted are parked");
    bench.dlq(&["list", "--since", "yesterday"]).exits(2).warns("accepted are how long ago");
}

#[test]
fn a_letter_is_found_by_its_id_its_job_or_a_beginning() {
    let bench = Bench::with(12);
    let ran = bench
        .dlq(&["show", "page-3"])
        .exits(0)
        .says("no answer for page 3")
        .says("{\"page\":3,\"token\":\"[redacted]\"}");
    assert!(!ran.out.contains("s3cret"), "{ran:?}");
    bench.dlq(&["show", "page-3", "--raw"]).exits(0).says("s3cret-3");
    let id = bench.json(&["show", "page-3"])["letter"]["letter_id"].as_str().unwrap().to_owned();
    bench.dlq(&["show", &id]).exits(0).says("page-3");
    bench.dlq(&["show", &id[..id.len() - 1]]).exits(0).says("page-3");
    bench.dlq(&["show", "page-1"]).exits(0).says("job        page-1 ");
    bench.dlq(&["show", "page-"]).exits(1).warns("means several letters").warns("and more");
    bench.dlq(&["show", "page-99"]).exits(1).warns("no letter `page-99`").warns(&bench.db().display().to_string());
}

#[test]
fn new_letters_are_followed() {
    let bench = Bench::with(2);
    let mut child = bench
        .command(&["tail", "-n", "1", "--interval", "10ms", "--limit", "3", "--kind", "summarise"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("page-1"));
    bench.fill(|store, bench| {
        let mut other = usual(50);
        other.kind = "other".to_owned();
        bench.park(store, other);
        bench.park(store, usual(51));
        // The same job again is news too.
        bench.park(store, usual(0));
        assert!(lines.next().unwrap().contains("page-51"));
        assert!(lines.next().unwrap().contains("page-0"));
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

// B3.5
#[test]
fn degraded_days_are_marked() {
    let bench = Bench::empty();
    bench.fill(|store, bench| {
        for (counter, n) in [("worker_ok", 12), ("fallback_bytes", 600_000)] {
            bench.wait(store.add("image_archive", counter, n)).unwrap();
        }
        let actor = Actor::new("ada", "paid by the byte");
        let set = store.set_threshold("image_archive".into(), "fallback_bytes".into(), 500_000, actor);
        bench.wait(set).unwrap();
    });
    let today = retry_runtime::counters::Day::of(SystemTime::now());
    bench
        .dlq(&["stats"])
        .exits(0)
        .says("image_archive")
        .says("today 12, most 12")
        .says(&format!("degraded, above 500000: {today} (600000)"));
    let stats = bench.json(&["stats", "--days", "7"]);
    let days = &stats["counters"][0]["days"];
    assert_eq!(
        (days.as_array().unwrap().len(), &days[6]["degraded"], &days[5]["degraded"]),
        (7, &true.into(), &false.into())
    );
}

// B3.3
#[test]
fn the_ledger_is_looked_through_and_a_key_opened_again() {
    let bench = Bench::empty();
    bench.fill(|store, bench| {
        for key in ["a", "b"] {
            bench.wait(store.begin(LedgerKey::new("archive", key), 3)).unwrap();
        }
    });
    bench.dlq(&["ledger"]).exits(0).says("archive").says("   2   0     0");
    bench.dlq(&["ledger", "--scope", "archive", "--limit", "1"]).exits(0).says("1 of 2 matching");
    bench.dlq(&["ledger", "--key", "a"]).exits(0).says("open").says("1 of 1 matching");
    bench.dlq(&["ledger", "reset", "a"]).exits(2).warns("--reason");
    bench.dlq(&["ledger", "reset", "nobody", "--reason", "x"]).exits(1).warns("no key `nobody`");
    bench.dlq(&["ledger", "reset", "a", "--reason", "is back"]).exits(0).says("open again");
    assert_eq!(bench.json(&["ledger", "--key", "a"])["entries"][0]["attempts"], 0);
    bench.dlq(&["audit", "--by-hand"]).exits(0).says("ledger_reset").says("ada@").says("is back");
}

// A closed pipe is nobody's fault.
#[test]
fn whoever_reads_a_little_of_it_disturbs_nothing() {
    let bench = Bench::with(200);
    let mut child = bench.command(&["export"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    until("the end", || child.try_wait().unwrap().is_some());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr).unwrap().contains("panicked")), (Some(0), false));
}
