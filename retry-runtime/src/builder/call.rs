//! The loops of the builder.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use super::Classifier;
use super::limits::{Breaks, Shares};
use crate::__private::{
    At, Class, Classes, Guards, Observed, Recorder, Said, Session, Site, failed, is_nested, mark, nested,
    sleep_blocking, succeeded_sharing, yield_once,
};
use crate::refused::Refused;

/// How a call came to its end.
pub(super) enum Ended<T, E, W, X> {
    Outcome(Result<T, E>),
    Cancelled(W),
    Refused(X),
}

/// One call of a [`Retry`](super::Retry).
pub(super) struct Call<K> {
    pub(super) site: Site,
    pub(super) session: Session,
    pub(super) classes: Vec<Class>,
    pub(super) counts: Vec<Cell<Session>>,
    pub(super) classifier: K,
    /// Whether the attempts of an async call are marked.
    pub(super) marks: bool,
}

impl<K> Call<K> {
    /// Whoever watches the call.
    pub(super) fn watch<'s, B: Breaks>(&self, shares: &'s Shares<'_, B>) -> Observed<'s> {
        Observed::new(shares.observer(), || at(&self.site, &self.classes, &self.counts).facts())
    }

    pub(super) async fn drive<R, T, E, F, Fut, S, Wait, C, X>(
        &mut self,
        record: &mut R,
        guards: Guards<'_>,
        refuse: impl Fn(Refused) -> Option<X>,
        sleep: S,
        mut operation: F,
        mut cancel: Pin<&mut C>,
    ) -> Ended<T, E, C::Output, X>
    where
        R: Recorder,
        K: Classifier<E>,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        S: Fn(Duration) -> Wait,
        Wait: Future<Output = ()>,
        C: Future,
    {
        record.start();
        loop {
            if let Poll::Ready(with) = poll_fn(|cx| Poll::Ready(cancel.as_mut().poll(cx))).await {
                return Ended::Cancelled(with);
            }
            if let Some(refused) = guards.refused(record).and_then(&refuse) {
                return Ended::Refused(refused);
            }
            self.tell_if_nested(self.marks);
            record.attempt_begins();
            let wait = {
                let marked = Marked(self.marks.then_some(&self.site));
                let mut attempt = pin!(marked.run(&mut operation));
                let attempt = pin!(poll_fn(|cx| marked.run(|| attempt.as_mut().poll(cx))));
                let outcome = match first_of(cancel.as_mut(), attempt).await {
                    Ok(outcome) => outcome,
                    Err(with) => return Ended::Cancelled(with),
                };
                match self.next(record, &guards, &outcome) {
                    Some(wait) => wait,
                    None => return Ended::Outcome(outcome),
                }
            };
            let taken = guards.taken();
            let waited = if wait.is_zero() {
                first_of(cancel.as_mut(), pin!(yield_once())).await
            } else {
                first_of(cancel.as_mut(), pin!(sleep(wait))).await
            };
            if let Err(with) = waited {
                return Ended::Cancelled(with);
            }
            guards.waited(taken);
        }
    }

    /// `Err` of a call that was refused.
    pub(super) fn drive_blocking<R, T, E, X>(
        &mut self,
        record: &mut R,
        guards: &Guards<'_>,
        refuse: impl Fn(Refused) -> Option<X>,
        mut operation: impl FnMut() -> Result<T, E>,
    ) -> Result<Result<T, E>, X>
    where
        R: Recorder,
        K: Classifier<E>,
    {
        record.start();
        loop {
            if let Some(refused) = guards.refused(record).and_then(&refuse) {
                return Err(refused);
            }
            self.tell_if_nested(true);
            record.attempt_begins();
            let wait = {
                let outcome = Marked(Some(&self.site)).run(&mut operation);
                match self.next(record, guards, &outcome) {
                    Some(wait) => wait,
                    None => return Ok(outcome),
                }
            };
            let taken = guards.taken();
            sleep_blocking(&self.site, wait);
            guards.waited(taken);
        }
    }

    fn tell_if_nested(&self, asked: bool) {
        if asked && is_nested() {
            nested(&at(&self.site, &self.classes, &self.counts));
        }
    }

    fn next<R, T, E>(&mut self, record: &mut R, guards: &Guards<'_>, outcome: &Result<T, E>) -> Option<Duration>
    where
        R: Recorder,
        K: Classifier<E>,
    {
        let Err(error) = outcome else { return succeeded_sharing(guards, record) };
        let (verdict, text) = (self.classifier.verdict(), self.classifier.text());
        let at = at(&self.site, &self.classes, &self.counts).guards(guards);
        failed(&at, &mut self.session, record, error, verdict, text, Said::Nothing)
    }
}

/// Marks this thread while a part of an attempt runs, where that is asked for.
#[derive(Clone, Copy)]
struct Marked<'a>(Option<&'a Site>);

impl Marked<'_> {
    fn run<T>(self, part: impl FnOnce() -> T) -> T {
        let _until_then = self.0.map(mark);
        part()
    }
}

fn at<'a>(site: &'a Site, classes: &'a [Class], counts: &'a [Cell<Session>]) -> At<'a> {
    let at = At::made(site);
    if classes.is_empty() { at } else { at.classes(Classes::at_run_time(classes, counts)) }
}

/// The work's value, unless `cancel` completes first; that is polled first.
async fn first_of<C: Future, W: Future>(
    mut cancel: Pin<&mut C>,
    mut work: Pin<&mut W>,
) -> Result<W::Output, C::Output> {
    poll_fn(|cx| match cancel.as_mut().poll(cx) {
        Poll::Ready(with) => Poll::Ready(Err(with)),
        Poll::Pending => work.as_mut().poll(cx).map(Ok),
    })
    .await
}
