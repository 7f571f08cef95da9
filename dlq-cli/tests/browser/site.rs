//! A dashboard over a file, on a port, with a day's failures in it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use dlq_cli::serve::{Dashboard, Identity, Role, Tokens, listen};
use dlq_sqlite::SqliteStore;
use retry_runtime::attempt::AttemptRecord;
use retry_runtime::counters::{DailyCounters as _, Thresholds as _};
use retry_runtime::dead_letter::{
    Actor, DeadLetter, DeadLetterSink as _, DeadLetterStore as _, FailureGroups as _, Filter, GroupsRequest, LetterRow,
    PageRequest, Payload,
};
use retry_runtime::ledger::{AttemptLedger as _, Begin, End, LedgerKey};
use retry_runtime::{Disposition, StopReason};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "dlq_0123456789";

pub(crate) struct Site {
    pub(crate) runtime: Runtime,
    pub(crate) store: SqliteStore,
    pub(crate) address: SocketAddr,
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    _directory: tempfile::TempDir,
}

impl Site {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path().join("jobs.db")).unwrap();
        runtime.block_on(fill(&store));
        let mut site =
            Self { runtime, store, address: "127.0.0.1:0".parse().unwrap(), serving: None, _directory: directory };
        site.serve();
        site
    }

    /// Serves, on the same port as before.
    pub(crate) fn serve(&mut self) {
        let tokens = Tokens::new().with(Identity::new("ada", Role::Admin), TOKEN);
        let dashboard =
            Dashboard::new(self.store.clone()).named("/var/lib/shop/jobs.db").tokens(tokens).allow_actions(true);
        let listening = self.runtime.block_on(listen(dashboard, self.address)).unwrap();
        self.address = listening.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = self.runtime.spawn(listening.run(async { drop(stopped.await) }));
        self.serving = Some((stop, served));
    }

    /// The server goes away.
    pub(crate) fn go(&mut self) {
        if let Some((stop, served)) = self.serving.take() {
            drop(stop);
            self.runtime.block_on(served).unwrap();
        }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn letter(&self, job: &str) -> LetterRow {
        let mut filter = Filter::all();
        filter.job_ids.push(job.to_owned());
        let page = self.runtime.block_on(self.store.list(filter, PageRequest::default())).unwrap();
        page.rows.into_iter().next().unwrap()
    }

    pub(crate) fn park(&self, letter: DeadLetter) {
        assert!(self.runtime.block_on(self.store.submit(letter)).is_kept());
    }
}

pub(crate) fn letter(kind: &str, job: &str, class: &str, message: &str) -> DeadLetter {
    let now = SystemTime::now();
    let mut letter = DeadLetter::new(kind, StopReason::Exhausted, now);
    letter.job_id = Some(job.to_owned());
    letter.class = Some(class.to_owned());
    letter.disposition = Disposition::Retryable;
    letter.error_type = "shop::client::FetchError".into();
    letter.error_message = message.into();
    letter.payload = Payload::Json(format!(r#"{{"page": "{job}", "model": "small", "api_key": "sk-123"}}"#));
    letter.attempts = 3;
    for attempt in 1..=3 {
        let mut record =
            AttemptRecord::new(attempt, now, Duration::from_millis(1_204), class.to_owned(), None, message);
        record.wait = (attempt < 3).then(|| Duration::from_millis(400 << attempt));
        letter.history.push(record);
    }
    letter
}

async fn fill(store: &SqliteStore) {
    for n in 0..64 {
        let message = format!("no answer from https://api.example.org/pages/{n} after 30.0 s: operation timed out");
        assert!(store.submit(letter("fetch_page", &format!("page-{n}"), "timeout", &message)).await.is_kept());
    }
    for n in 0..17 {
        let mut limited = letter(
            "summarise",
            &format!("text-{n}"),
            "rate_limit",
            "429 Too Many Requests: quota of the day is used up",
        );
        limited.code = Some(429);
        assert!(store.submit(limited).await.is_kept());
    }
    let mut forbidden = letter("fetch_page", "page-private", "forbidden", "403 Forbidden: this page is private");
    (forbidden.reason, forbidden.disposition, forbidden.code) =
        (StopReason::Permanent, Disposition::Permanent, Some(403));
    assert!(store.submit(forbidden).await.is_kept());
    let groups = store.groups(GroupsRequest::new(Filter::owed())).await.unwrap().groups;
    let ada = || Actor::new("ada", "");
    store.note(groups[0].counts.fingerprint.clone(), "the provider is at it, until noon".into(), ada()).await.unwrap();
    for (counter, n) in [("worker_ok", 812), ("fallback_bytes", 700_000), ("worker_refused", 3)] {
        store.add("image_archive", counter, n).await.unwrap();
    }
    store.set_threshold("image_archive".into(), "fallback_bytes".into(), 500_000, ada()).await.unwrap();
    for n in 0..8 {
        let key = LedgerKey::new("image_archive", format!("https://example.org/{n}.png"));
        let Begin::Go { token, .. } = store.begin(key.clone(), 5).await.unwrap() else { panic!("refused") };
        let end = if n < 6 { End::Ok } else { End::Failed { next_at: None } };
        store.end(key, token, end).await.unwrap();
    }
}
