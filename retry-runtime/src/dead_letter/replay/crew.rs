//! Several futures at once, on one task.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Futures that run side by side, driven by whoever waits for anything beside them.
pub(super) struct Crew<'a, T> {
    at_work: Vec<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    ended: Vec<T>,
}

impl<'a, T> Crew<'a, T> {
    pub(super) fn new() -> Self {
        Self { at_work: Vec::new(), ended: Vec::new() }
    }

    pub(super) fn add(&mut self, work: impl Future<Output = T> + Send + 'a) {
        self.at_work.push(Box::pin(work));
    }

    /// How many are at work.
    pub(super) fn len(&self) -> usize {
        self.at_work.len()
    }

    /// What has ended since the last time.
    pub(super) fn take_ended(&mut self) -> Vec<T> {
        std::mem::take(&mut self.ended)
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        let mut at = 0;
        while let Some(work) = self.at_work.get_mut(at) {
            match work.as_mut().poll(cx) {
                Poll::Ready(value) => {
                    self.ended.push(value);
                    drop(self.at_work.swap_remove(at));
                }
                Poll::Pending => at += 1,
            }
        }
    }

    /// The value of a future; meanwhile all work goes on.
    pub(super) async fn beside<V>(&mut self, future: impl Future<Output = V>) -> V {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let value = future.as_mut().poll(cx);
            if value.is_pending() {
                self.drive(cx);
            }
            value
        })
        .await
    }

    /// Until any work has ended, or something else happens.
    pub(super) async fn until(&mut self, mut else_: impl FnMut(&mut Context<'_>) -> Poll<()>) {
        poll_fn(|cx| {
            self.drive(cx);
            if self.ended.is_empty() { else_(cx) } else { Poll::Ready(()) }
        })
        .await;
    }
}
