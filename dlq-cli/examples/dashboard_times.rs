//! How long each page of the dashboard takes over a large store: `cargo run --release --example dashboard_times -- 1000000`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)] // a measurement fails by panicking

use std::time::{Duration, Instant, SystemTime};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use dlq_cli::serve::{Dashboard, Identity, Role};
use dlq_sqlite::{Durability, SqliteStore};
use futures_util::future::join_all;
use retry_runtime::dead_letter::{
    DeadLetter, DeadLetterSink as _, DeadLetterStore as _, FailureGroups as _, Filter, GroupsRequest, Order,
    PageRequest, Payload,
};
use retry_runtime::{Disposition, StopReason};
use tower::ServiceExt as _;

const CLASSES: &[&str] = &["timeout", "rate_limit", "dns", "connect", "reset", "server", "parse", "quota"];

fn letter(n: u64, now: SystemTime) -> DeadLetter {
    let class = CLASSES[(n % 8) as usize];
    // Spread over forty days, and a tenth of them today.
    let ago = Duration::from_secs(if n.is_multiple_of(10) { n % 80_000 } else { n * 7_919 % (40 * 86_400) });
    let mut letter =
        DeadLetter::new(["fetch", "store", "summarise"][(n % 3) as usize], StopReason::Exhausted, now - ago);
    letter.job_id = Some(format!("job-{n}"));
    letter.class = Some(class.to_owned());
    letter.disposition = Disposition::Retryable;
    letter.error_type = "shop::FetchError".into();
    letter.error_message =
        format!("{class}: no answer of host {} in time", ["a", "b", "c", "d", "e"][(n % 5) as usize]);
    letter.payload = Payload::Json(format!(r#"{{"page":{n},"text":"{}"}}"#, "x".repeat(200)));
    letter.attempts = 3;
    letter
}

#[tokio::main]
async fn main() {
    let letters: u64 = std::env::args().nth(1).map_or(100_000, |n| n.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).durability(Durability::Normal).open().unwrap();
    let (now, begun) = (SystemTime::now(), Instant::now());
    for from in (0..letters).step_by(4_096) {
        let parked = join_all((from..letters.min(from + 4_096)).map(|n| store.submit(letter(n, now)))).await;
        assert!(parked.iter().all(retry_runtime::dead_letter::Parking::is_kept));
    }
    println!("{letters} letters parked in {:.0?}", begun.elapsed());

    let group = store.groups(GroupsRequest::new(Filter::owed())).await.unwrap().groups[0].counts.fingerprint.clone();
    let row =
        store.list(Filter::parked(), PageRequest::first(Order::LongestUnseenFirst, 1)).await.unwrap().rows.remove(0);
    let middle = now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() - 20 * 86_400_000;
    let reader = SqliteStore::options(&path).open_read_only().unwrap();
    let dashboard =
        Dashboard::new(store.clone()).numbers_by(reader).allow_actions(true).open_to(Identity::new("ann", Role::Admin));
    let router = dashboard.router();
    let mut worst = Duration::ZERO;
    for (name, path) in [
        ("first page, cold", "/".to_owned()),
        ("first page", "/".to_owned()),
        ("groups", "/groups".to_owned()),
        ("list, all", "/letters".to_owned()),
        ("list, owed", "/letters?q=owed".to_owned()),
        ("list, in the middle", format!("/letters?q=owed&after={middle}.500000")),
        ("list, one class", "/letters?q=class:timeout".to_owned()),
        ("list, one group", format!("/letters?q=owed+group:{group}")),
        ("list, since a day", "/letters?q=owed+since:1d".to_owned()),
        ("list, class and kind", "/letters?q=class:timeout+kind:store".to_owned()),
        ("list, rare", "/letters?q=kind:none+class:timeout+model:x".to_owned()),
        ("list, one job", "/letters?q=job-77".to_owned()),
        ("letter", format!("/letters/{}", row.letter_id)),
        ("plan, one group", format!("/operations/new?verb=replay&q=group:{group}")),
        ("plan, all", "/operations/new?verb=replay&all=1".to_owned()),
        ("operations", "/operations".to_owned()),
        ("ledger", "/ledger".to_owned()),
        ("counters", "/counters".to_owned()),
        ("audit", "/audit".to_owned()),
    ] {
        let mut times = Vec::new();
        let mut size = 0;
        for _ in 0..if name.ends_with("cold") { 1 } else { 7 } {
            let request = Request::builder().uri(&path).header("host", "localhost").body(Body::empty()).unwrap();
            let begun = Instant::now();
            let response = router.clone().oneshot(request).await.unwrap();
            let status = response.status();
            size = to_bytes(response.into_body(), 8 << 20).await.unwrap().len();
            times.push(begun.elapsed());
            assert_eq!(status, 200, "{path}");
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        times.sort();
        worst = worst.max(times[times.len() - 1]);
        println!(
            "{name:<24} median {:>8.1?}  worst {:>8.1?}  {size:>7} bytes",
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
    println!("the worst: {worst:.1?}");
    store.close(Duration::from_secs(10));
}
