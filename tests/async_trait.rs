//! Methods under `#[async_trait]`, which expands first: every receiver, `mut` and pattern arguments, each with a dead letter,
//! a fallback and a context. (An unknown shape is refused: tests/ui/retry/unsupported.)
#![allow(clippy::unwrap_used)] // a test fails by panicking, in its helpers too

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use async_trait::async_trait;
use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, Parking, Payload, Ticket};
use retry_runtime::reply::Reply;
use retry_runtime::{Classify, GaveUp, RetryContext, StopReason, retry};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
#[error("busy")]
#[classify(retryable)]
struct Busy;

#[derive(Default)]
struct Kept(std::sync::Mutex<Vec<DeadLetter>>);

impl Kept {
    fn taken(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl DeadLetterSink for Kept {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let letter_id = letter.park_id.to_string();
        self.0.lock().unwrap().push(letter);
        Reply::ready(Parking::Parked { letter_id })
    }
}

/// How one call ended: its value, and what its context saw.
type Seen = Result<u32, GaveUp<Busy>>;

#[async_trait]
trait Service: Send + Sync {
    async fn by_ref(&self, job: &str) -> Result<u32, Busy>;
    async fn by_mut(&mut self, job: String) -> Result<u32, Busy>;
    async fn by_arc(self: Arc<Self>, job: &str) -> Result<u32, Busy>;
    async fn with_mut(&self, count: u32, log: Vec<u32>) -> Result<u32, Busy>;
    async fn with_pattern(&self, pair: (u32, String)) -> Result<u32, Busy>;
    async fn context_by_mut(&mut self, ctx: &mut RetryContext) -> Result<u32, Busy>;
    async fn new_context(self: Arc<Self>, pair: (u32, u32)) -> Seen;
    async fn fallback_by_mut(&mut self, job: &str, extra: u32) -> Result<u32, Busy>;
    async fn fallback_by_arc(self: Arc<Self>, pair: (u32, u32)) -> Result<u32, Busy>;
    async fn limited(&self) -> Seen;
}

#[derive(Default)]
struct Api {
    calls: AtomicU32,
    changed: u32,
    kept: Arc<Kept>,
}

impl Api {
    fn call(&self) -> u32 {
        self.calls.fetch_add(1, SeqCst) + 1
    }
}

#[async_trait]
impl Service for Api {
    #[retry(name = "api.by_ref", dead_letter(sink = &self.kept, job_id = job, payload = job))]
    async fn by_ref(&self, job: &str) -> Result<u32, Busy> {
        self.call();
        Err(Busy)
    }

    #[retry(clone(job), name = "api.by_mut", dead_letter(sink = self.kept.clone(), job_id = job.len(), payload = job))]
    async fn by_mut(&mut self, job: String) -> Result<u32, Busy> {
        self.changed += u32::try_from(job.into_bytes().len()).unwrap();
        Err(Busy)?;
        Ok(1)
    }

    #[retry(name = "api.by_arc", dead_letter(sink = self.kept.clone(), job_id = job))]
    async fn by_arc(self: Arc<Self>, job: &str) -> Result<u32, Busy> {
        if self.call() < 9 {
            return Err(Busy);
        }
        Ok(u32::try_from(job.len()).unwrap())
    }

    #[retry(share(log), name = "api.with_mut", dead_letter(sink = &self.kept, job_id = count))]
    async fn with_mut(&self, mut count: u32, mut log: Vec<u32>) -> Result<u32, Busy> {
        count += 1;
        log.push(count);
        assert_eq!(count, 6, "each attempt starts from the caller's value");
        if log.len() < 3 { Err(Busy) } else { Ok(count) }
    }

    #[retry(clone(text), max_retries = number, name = "api.with_pattern", dead_letter(sink = &self.kept, job_id = text))]
    async fn with_pattern(&self, (mut number, text): (u32, String)) -> Result<u32, Busy> {
        number += 1;
        self.call();
        drop(text);
        if number == 0 { Ok(number) } else { Err(Busy) }
    }

    #[retry(context = ctx)]
    async fn context_by_mut(&mut self, ctx: &mut RetryContext) -> Result<u32, Busy> {
        self.changed += 1;
        if ctx.attempts() < 3 { Err(Busy) } else { Ok(self.changed) }
    }

    #[retry(context = ctx)]
    async fn new_context(self: Arc<Self>, (a, mut b): (u32, u32)) -> Seen {
        b += ctx.attempts();
        if ctx.history().is_empty() { Err(Busy) } else { Ok(a + b) }
    }

    #[retry(max_retries = self.changed + 1, fallback = { self.changed += extra; Ok(self.changed) })]
    async fn fallback_by_mut(&mut self, job: &str, mut extra: u32) -> Result<u32, Busy> {
        extra += 100;
        self.changed += 1;
        if extra == 0 || job.is_empty() { Ok(0) } else { Err(Busy) }
    }

    #[retry(fallback = self.second(a, error).await)]
    async fn fallback_by_arc(self: Arc<Self>, (a, _): (u32, u32)) -> Result<u32, Busy> {
        self.call();
        Err(Busy)
    }

    #[retry(attempt_timeout = "1s", max_retries = 1)]
    async fn limited(&self) -> Seen {
        self.call();
        std::future::pending().await
    }
}

impl Api {
    async fn second(&self, a: u32, error: Busy) -> Result<u32, Busy> {
        tokio::task::yield_now().await;
        assert_eq!(error, Busy);
        Ok(a + self.calls.load(SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn every_receiver_parks_its_job_after_all_attempts() {
    let mut api = Api::default();
    let kept = api.kept.clone();
    assert_eq!(api.by_ref("j1").await, Err(Busy));
    assert_eq!(api.by_mut("four".into()).await, Err(Busy));
    assert_eq!(api.changed, 12);
    let letters = kept.taken();
    let seen: Vec<_> = letters.iter().map(|l| (&*l.kind, l.job_id.as_deref(), l.attempts)).collect();
    assert_eq!(seen, [("api.by_ref", Some("j1"), 3), ("api.by_mut", Some("4"), 3)]);
    assert_eq!(letters[1].payload, Payload::Json(r#""four""#.into()));
    let api = Arc::new(Api::default());
    assert_eq!(Arc::clone(&api).by_arc("j2").await, Err(Busy));
    assert_eq!(api.calls.load(SeqCst), 3);
    assert_eq!(api.kept.taken()[0].job_id.as_deref(), Some("j2"));
}

#[tokio::test(start_paused = true)]
async fn mut_and_pattern_arguments_are_fresh_shared_or_cloned() {
    let api = Api::default();
    assert_eq!(api.with_mut(5, Vec::new()).await, Ok(6));
    assert!(api.kept.taken().is_empty());
    assert_eq!(api.with_pattern((1, "text".into())).await, Err(Busy));
    assert_eq!(api.calls.load(SeqCst), 2);
    assert_eq!(api.kept.taken()[0].job_id.as_deref(), Some("text"));
}

#[tokio::test(start_paused = true)]
async fn contexts_are_arguments_or_new_names() {
    let (mut api, mut ctx) = (Api::default(), RetryContext::new());
    assert_eq!(api.context_by_mut(&mut ctx).await, Ok(3));
    assert_eq!((ctx.retry_count(), ctx.stop_reason()), (2, Some(StopReason::Succeeded)));
    assert_eq!(Arc::new(Api::default()).new_context((1, 2)).await.unwrap(), 1 + 2 + 2);
}

#[tokio::test(start_paused = true)]
async fn fallbacks_see_self_and_the_arguments_as_the_caller_gave_them() {
    let mut api = Api::default();
    // two attempts add one each, the fallback adds the caller's 7
    assert_eq!(api.fallback_by_mut("j", 7).await, Ok(9));
    assert_eq!(Arc::new(Api::default()).fallback_by_arc((10, 0)).await, Ok(13));
}

#[tokio::test(start_paused = true)]
async fn futures_are_send_and_limited_and_dyn() {
    let api: Arc<dyn Service> = Arc::new(Api::default());
    let other = Arc::clone(&api);
    let ended = tokio::spawn(async move { other.limited().await }).await.unwrap().unwrap_err();
    assert_eq!((ended.reason(), ended.attempts(), ended.last()), (StopReason::Exhausted, 2, None));
    assert_eq!(api.by_arc("x").await, Err(Busy));
}
