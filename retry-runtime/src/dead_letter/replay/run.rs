//! One run of a [`Replayer`].
//!
//! The run goes through the list once, page by page, up to the letter that was the last one when it began. A letter that
//! fails again moves behind that one, so the run ends; letters are held one page at a time, so it needs no more memory for
//! a million of them.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::SystemTime;

use super::alarm::{Timer, pause};
use super::handlers::Handler;
use super::heart::Heart;
use super::job::is_without_payload;
use super::under_way::{becomes, look_under_way, reap};
use super::work::{Ended, Lease, Ways, work};
use super::{ReplayReport, Replayer};
use crate::clock;
use crate::dead_letter::{
    ClaimRequest, Cursor, DeadLetterStore, Filter, Finish, LetterRow, LetterState, Order, Pace, PageRequest, Release,
    ReplayOutcome,
};
use crate::error::{StoreError, StoreErrorKind};

pub(super) const PAGE: u32 = 100;

pub(super) struct Run<'a> {
    with: &'a Replayer,
    filter: Filter,
    /// The last letter of the list when the run began.
    last: Option<Cursor>,
    heart: Option<Heart>,
    /// Letters that failed without moving behind `last`: the clock stands still, or was set back.
    seen: HashSet<u64>,
    taken: u64,
    pace: Pace,
    timer: Timer,
    report: ReplayReport,
}

/// The place of the newest letter of the list, however many others have to be looked at.
async fn newest(store: &dyn DeadLetterStore, filter: &Filter) -> Result<Option<Cursor>, StoreError> {
    let mut after = None;
    loop {
        let page = store.list(filter.clone(), PageRequest::first(Order::NewestFirst, 1).after(after)).await?;
        after = page.next;
        if after.is_none() || !page.rows.is_empty() {
            return Ok(page.rows.first().map(Cursor::behind));
        }
    }
}

/// Whether the run goes on.
enum After {
    Next,
    Stop(String),
}

impl<'a> Run<'a> {
    pub(super) async fn start(with: &'a Replayer, timer: Timer) -> Result<Self, StoreError> {
        let mut report = ReplayReport { dry_run: !with.executes, ..ReplayReport::default() };
        let mut states = vec![LetterState::Parked];
        states.extend(with.grant.map(|_| LetterState::Abandoned));
        let mut filter = Filter { states, ..with.filter.clone() };
        if with.executes {
            reap(with, &filter, &mut report).await?;
        }
        let freed = look_under_way(with, &mut report).await?;
        report.matched += freed + with.store.count(filter.clone()).await?;
        if freed > 0 {
            filter.states.push(LetterState::Replaying);
        }
        let last = newest(&*with.store, &filter).await?;
        let needs_heart = with.executes && !with.store.capabilities().heartbeats;
        let heart = needs_heart.then(|| Heart::start(with.lease)).transpose()?;
        let pace = Pace::new(with.rate.filter(|_| with.executes));
        Ok(Self { with, filter, last, heart, seen: HashSet::new(), taken: 0, pace, timer, report })
    }

    pub(super) async fn finish_all(mut self) -> Result<ReplayReport, StoreError> {
        let mut after = None;
        let mut reached_limit = false;
        'pages: while let Some(last) = self.last {
            let page = PageRequest::first(Order::LongestUnseenFirst, PAGE).after(after);
            let page = match self.with.store.list(self.filter.clone(), page).await {
                Ok(page) => page,
                Err(error) => {
                    self.report.stopped = Some(error.to_string());
                    break;
                }
            };
            for row in &page.rows {
                if last.precedes(row, Order::LongestUnseenFirst) {
                    break 'pages;
                }
                if self.seen.contains(&row.seq) || !self.is_meant(row) {
                    continue;
                }
                if self.with.limit.is_some_and(|limit| self.taken >= limit) {
                    reached_limit = true;
                    break 'pages;
                }
                if !self.keep_pace().await {
                    self.report.stopped = Some("asked to stop".to_owned());
                    break 'pages;
                }
                self.report.scanned += 1;
                if let After::Stop(why) = self.look_at(row).await {
                    self.report.stopped = Some(why);
                    break 'pages;
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.report.close(reached_limit);
        Ok(self.report)
    }

    /// A dry run's list also has the letters whose replay died; those that are under way are not its own.
    fn is_meant(&self, row: &LetterRow) -> bool {
        row.state != LetterState::Replaying || becomes(row, SystemTime::now()).is_some_and(|state| self.takes(state))
    }

    fn takes(&self, state: LetterState) -> bool {
        state == LetterState::Parked || (state == LetterState::Abandoned && self.with.grant.is_some())
    }

    async fn look_at(&mut self, row: &LetterRow) -> After {
        let with = self.with;
        let Some(handler) = with.handlers.get(&row.kind) else {
            self.report.block(&row.kind);
            return After::Next;
        };
        if row.payload_altered && !with.is_forced {
            self.report.skipped.altered += 1;
            return After::Next;
        }
        if with.executes {
            return match self.replay(row, handler).await {
                Ok(after) => after,
                Err(error) => {
                    // Whether it was written is not known; the lease decides.
                    self.report.skipped.not_reached += 1;
                    After::Stop(error.to_string())
                }
            };
        }
        // Dry: this machine's clock has to do.
        match row.not_before {
            Some(at) if at > SystemTime::now() && !with.is_forced => self.report.not_due(Some(at)),
            _ => {
                self.taken += 1;
                self.report.would_replay += 1;
                let abandoned = becomes(row, SystemTime::now()).unwrap_or(row.state) == LetterState::Abandoned;
                self.report.restored += u64::from(abandoned);
            }
        }
        After::Next
    }

    async fn replay(&mut self, row: &LetterRow, handler: &Handler) -> Result<After, StoreError> {
        let with = self.with;
        if row.state == LetterState::Abandoned && !self.restore(row).await? {
            return Ok(After::Next);
        }
        let mut request = ClaimRequest::new([row.kind.as_str()], with.owner.clone());
        request.filter = Filter::id(row.letter_id.clone());
        request.lease = with.lease;
        request.ignore_backoff = true;
        request.ignore_not_before = with.is_forced;
        request.keep_alive = self.heart.is_none();
        let Some(claimed) = with.store.claim(request, with.actor.clone()).await?.pop() else {
            self.passed_over(row).await?;
            return Ok(After::Next);
        };
        let mut lease = Lease::new(Arc::clone(&with.store), &claimed);
        if is_without_payload(&claimed.payload) {
            self.report.skipped.without_payload += 1;
            self.release(&mut lease).await?;
            return Ok(After::Next);
        }
        self.taken += 1;
        self.pace.started(clock::monotonic());
        let ways = Ways { heart: self.heart.as_ref(), lease: with.lease, threads: false };
        match work(handler, claimed, &mut lease, &ways).await {
            Ended::Lost => self.report.skipped.late += 1,
            Ended::Result(result) => self.finish(lease, result).await?,
            Ended::NotStarted { why, stops } => {
                self.report.skipped.not_started += 1;
                // It did not even begin: it does not count against the limit either.
                self.taken -= 1;
                self.release(&mut lease).await?;
                return Ok(if stops { After::Stop(why) } else { After::Next });
            }
        }
        Ok(After::Next)
    }

    /// Waits for the pace; `false` when the run was asked to stop meanwhile.
    async fn keep_pace(&self) -> bool {
        let wait = self.pace.wait(clock::monotonic());
        if !wait.is_zero() {
            let mut alarm = pause(wait, self.timer);
            poll_fn(|cx| {
                let is_asked = self.with.stop.poll_set(cx).is_ready();
                if is_asked { Poll::Ready(()) } else { alarm.as_mut().poll(cx) }
            })
            .await;
        }
        !self.with.stop.is_set()
    }

    /// Brings an abandoned letter back with its grant, if it can be replayed now; counts it otherwise.
    async fn restore(&mut self, row: &LetterRow) -> Result<bool, StoreError> {
        let with = self.with;
        let Some(detail) = with.store.get(row.letter_id.clone()).await? else {
            self.report.skipped.changed += 1;
            return Ok(false);
        };
        if is_without_payload(&detail.payload) {
            self.report.skipped.without_payload += 1;
            return Ok(false);
        }
        // This machine's clock has to do: the store's own is asked by the claim.
        if let Some(at) = detail.row.not_before.filter(|at| *at > SystemTime::now() && !with.is_forced) {
            self.report.not_due(Some(at));
            return Ok(false);
        }
        let more_replays = with.grant.unwrap_or(1);
        match with.store.restore(row.letter_id.clone(), more_replays, with.actor.clone()).await {
            Ok(_) => {
                self.report.restored += 1;
                Ok(true)
            }
            Err(error) if matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Invalid) => {
                self.report.skipped.changed += 1;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn finish(&mut self, mut lease: Lease, result: Finish) -> Result<(), StoreError> {
        let is_gone = matches!(result.outcome, ReplayOutcome::Gone(_));
        let row = match self.with.store.finish(result, self.with.actor.clone()).await {
            Ok(row) => row,
            Err(error) if error.kind() == StoreErrorKind::StaleLease => {
                lease.is_over();
                self.report.skipped.late += 1;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        lease.is_over();
        match row.state {
            LetterState::Recovered => self.report.recovered += 1,
            LetterState::Abandoned => self.report.abandoned += 1,
            LetterState::Discarded if is_gone => self.report.gone += 1,
            _ => self.report.still_failing += 1,
        }
        if self.takes(row.state) && self.last.is_some_and(|last| !last.precedes(&row, Order::LongestUnseenFirst)) {
            self.seen.insert(row.seq);
        }
        Ok(())
    }

    async fn release(&self, lease: &mut Lease) -> Result<(), StoreError> {
        let release = Release::Held { fence: lease.fence };
        self.with.store.release(lease.letter_id.clone(), release, self.with.actor.clone()).await?;
        lease.is_over();
        Ok(())
    }

    /// Why the store did not hand it out.
    async fn passed_over(&mut self, row: &LetterRow) -> Result<(), StoreError> {
        let now = self.with.store.get(row.letter_id.clone()).await?.map(|detail| detail.row);
        match now {
            Some(row) if row.state == LetterState::Parked && row.not_before.is_some() => {
                self.report.not_due(row.not_before);
            }
            _ => self.report.skipped.changed += 1,
        }
        Ok(())
    }
}
