//! Summaries and lists of a large file.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Cursor, DeadLetterStore, FailureGroups, Filter, GroupsRequest, LOOK_AT, LetterState, Order, PageRequest,
};
use tokio::runtime::{Builder, Runtime};

use super::report::Report;

pub(crate) fn measure(path: &Path, letters: u32, report: &mut Report) {
    let large = Large {
        store: SqliteStore::options(path).open_read_only().unwrap(),
        runtime: Builder::new_current_thread().build().unwrap(),
        letters,
    };
    let (owed, took) = large.timed(|| large.store.summary());
    assert_eq!(owed.owed(), u64::from(letters));
    report.at_most("summary of all open letters", millis(took), 50.0, "");
    for (name, filter) in listed() {
        large.page(name, &filter, report);
    }
    large.mixes(report);
    let (page, took) = large.timed(|| large.store.groups(GroupsRequest::new(Filter::owed())));
    assert_eq!(page.groups.len(), 20);
    report.at_most("20 of 200 failure groups, counted", millis(took), 2_000.0, "");
}

/// Every single filter, and the pairs with a status.
fn listed() -> Vec<(&'static str, Filter)> {
    let with = |set: fn(&mut Filter)| {
        let mut filter = Filter::all();
        set(&mut filter);
        filter
    };
    vec![
        ("all", Filter::all()),
        ("status", Filter::parked()),
        ("two statuses", Filter::owed()),
        ("kind", with(|f| f.kinds = texts(&["kind1"]))),
        ("class", with(|f| f.classes = texts(&["class3"]))),
        ("error class", with(|f| f.error_classes = texts(&["exhausted:class3"]))),
        ("group", with(|f| f.fingerprints = texts(&["0000000000000007"]))),
        ("label", with(|f| f.models = texts(&["model3"]))),
        ("since", with(|f| f.since = Some(at(1_000)))),
        ("until", with(|f| f.until = Some(at(999_000_000)))),
        ("kind + status", with(|f| (f.kinds, f.states) = (texts(&["kind1"]), vec![LetterState::Parked]))),
        ("class + status", with(|f| (f.classes, f.states) = (texts(&["class3"]), vec![LetterState::Parked]))),
        ("two kinds", with(|f| f.kinds = texts(&["kind1", "kind2"]))),
        ("id", with(|f| f.ids = vec![format!("{:032}", 777)])),
        ("job id", with(|f| f.job_ids = texts(&["job777"]))),
    ]
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn at(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

struct Large {
    store: SqliteStore,
    runtime: Runtime,
    letters: u32,
}

impl Large {
    /// The fastest of five: what the store needs, not what the machine does beside it.
    fn timed<T, E, F>(&self, ask: impl Fn() -> F) -> (T, Duration)
    where
        E: std::fmt::Debug,
        F: Future<Output = Result<T, E>>,
    {
        let once = || {
            let start = Instant::now();
            let answer = self.runtime.block_on(ask()).unwrap();
            (answer, start.elapsed())
        };
        (0..5).map(|_| once()).min_by_key(|(_, took)| *took).unwrap()
    }

    /// Pages at the start, in the middle and at the end, in both orders.
    fn page(&self, name: &str, filter: &Filter, report: &mut Report) {
        let mut worst = Duration::ZERO;
        for order in [Order::NewestFirst, Order::LongestUnseenFirst] {
            let last = u64::from(self.letters);
            for depth in [None, Some(last / 2), Some(last - 300), Some(300)] {
                let cursor = depth.map(|depth| Cursor { last_seen: at(depth), seq: depth });
                let page = PageRequest::first(order, 50).after(cursor);
                let (page, took) = self.timed(|| self.store.list(filter.clone(), page.clone()));
                assert!(page.complete && page.looked_at <= 51, "{name}: {} looked at", page.looked_at);
                worst = worst.max(took);
            }
        }
        report.at_most(&format!("page by {name}, at any depth"), millis(worst), 10.0, "");
    }

    /// Classes and labels that have no letter in common.
    fn mixes(&self, report: &mut Report) {
        let mut filter = Filter::parked();
        (filter.classes, filter.models) = (texts(&["class3"]), texts(&["model4"]));
        let (mut page, mut looked_at, mut pages) = (PageRequest::default(), 0, 0_u32);
        let (first, took) = self.timed(|| self.store.list(filter.clone(), page.clone()));
        let of_class = self.runtime.block_on(self.store.count({
            let mut filter = filter.clone();
            filter.models.clear();
            filter
        }));
        let detail = format!("{:.0} ms, {} letters looked at", millis(took), first.looked_at);
        let bounded = first.looked_at <= LOOK_AT && (first.complete || first.next.is_some());
        report.is("a page of a mix is bounded and says where it stopped", bounded, &detail);
        loop {
            let found = self.runtime.block_on(self.store.list(filter.clone(), page.clone())).unwrap();
            assert!(found.rows.is_empty());
            looked_at += found.looked_at;
            pages += 1;
            page.after = found.next;
            if page.after.is_none() {
                break;
            }
        }
        let detail = format!("{looked_at} letters in {pages} pages");
        report.is("going on looks at every letter once", looked_at == of_class.unwrap(), &detail);
    }
}
