//! The conformance suite: the store in memory passes it, and stores with one fault each do not.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use retry_runtime::counters::{DailyCounters, Day};
use retry_runtime::dead_letter::{
    Actor, Aggregate, BoxFuture, Capabilities, ClaimRequest, Claimed, Cursor, DeadLetter, DeadLetterSink,
    DeadLetterStore, Edit, Edited, EventPage, EventQuery, Filter, Finish, Group, LetterDetail, LetterRow, LetterState,
    MemoryStore, Order, Page, PageRequest, Parking, Payload, Release, ReplayOutcome, Revision, StoreClock, Summary,
    Ticket,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::id::Id;
use retry_runtime::ledger::LedgerStatus::Gone;
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerToken};
use retry_runtime::reply::Reply;
use retry_runtime::testing::conformance::{self, Report};

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[test]
fn the_store_in_memory_passes() {
    conformance::store(MemoryStore::with_clock).assert_passed();
    conformance::audit(MemoryStore::with_clock).assert_passed();
    conformance::ledger(MemoryStore::with_clock).assert_passed();
    conformance::counters(MemoryStore::with_clock).assert_passed();
}

// B23
#[test]
fn the_store_in_memory_agrees_with_itself_about_any_filter() {
    let seeds = if std::env::var_os("SOAK").is_some() { 5_000 } else { 60 };
    for seed in 0..seeds {
        conformance::filters(MemoryStore::with_clock, seed).unwrap();
    }
}

#[test]
fn a_sink_alone_passes_without_a_count() {
    let mut made = 0;
    let fresh = || {
        made += 1;
        MemoryStore::new()
    };
    conformance::sink(fresh).assert_passed();
    assert!(made > 1, "each check gets a sink of its own");
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    ParkIdIgnored,
    JobIdIgnored,
    OlderParkingWins,
    ClosedLetterStaysClosed,
    PayloadWriteOnce,
    PayloadErrorHidden,
    Spills,
    FenceIgnored,
    LateResultUnrecorded,
    KindsIgnored,
    HintIgnored,
    AlteredHandedOut,
    NotStartedHandedOutAtOnce,
    ClaimUnheardIsHeld,
    FailedAgainForgotten,
    CrashesUncounted,
    ReleaseCountsAsCrash,
    LeaseNeverEnds,
    GiveBackForgotten,
    GrantIgnored,
    OffsetPages,
    StopsUnsaid,
    GoesOnBehindTheShown,
    LooksAtEverything,
    ClaimsStartOver,
    FilterOfCountForgotten,
    RecoveredIsOwed,
    AttemptsOfReplayForgotten,
    LedgerCountsAfterTheCall,
    LedgerGoneBeatsOk,
    LedgerForgetsTheHint,
    LedgerResetKeepsTokens,
    CountersOfLocalDays,
    CountersOverwrite,
}

/// The store in memory with one fault.
struct Faulty {
    inner: MemoryStore,
    fault: Fault,
    clock: StoreClock,
    begun: Mutex<BTreeMap<LedgerKey, u32>>,
}

impl Faulty {
    fn new(fault: Fault, clock: StoreClock) -> Self {
        Self { inner: MemoryStore::with_clock(clock.clone()), fault, clock, begun: Mutex::default() }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    async fn rows(&self) -> Result<Vec<LetterRow>> {
        Ok(self.inner.list(Filter::all(), PageRequest::first(Order::LongestUnseenFirst, 100_000)).await?.rows)
    }
}

impl DeadLetterSink for Faulty {
    fn submit(&self, mut letter: DeadLetter) -> Ticket {
        match self.fault {
            Fault::ParkIdIgnored => letter.park_id = Id::new(SystemTime::now()),
            Fault::JobIdIgnored => letter.job_id = None,
            Fault::OlderParkingWins => letter.failed_at = self.clock.now() + Duration::from_secs(1),
            Fault::PayloadWriteOnce => letter.payload = Payload::Json("1".into()),
            Fault::ClosedLetterStaysClosed => {
                let rows = poll_now(self.rows()).unwrap();
                let closed = |row: &&LetterRow| Some(&row.job_id) == letter.job_id.as_ref() && !row.state.is_owed();
                if let Some(row) = rows.iter().find(closed) {
                    return Reply::ready(Parking::Parked { letter_id: row.letter_id.clone() });
                }
            }
            Fault::Spills => {
                let because = StoreError::new(StoreErrorKind::Full, "no space");
                return Reply::ready(Parking::Spilled { path: "spill".into(), because });
            }
            _ => {}
        }
        self.inner.submit(letter)
    }
}

/// The value of a future of the store in memory, which is ready when first polled.
fn poll_now<T>(future: impl Future<Output = T>) -> T {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut cx) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the store in memory waited"),
    }
}

impl DeadLetterStore for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>>> {
        Box::pin(async move {
            let mut detail = self.inner.get(letter_id).await?;
            if let (Fault::LateResultUnrecorded, Some(detail)) = (self.fault, &mut detail) {
                detail.history.retain(|entry| !entry.late);
            }
            if let (Fault::PayloadErrorHidden, Some(detail)) = (self.fault, &mut detail) {
                detail.row.payload_error = None;
            }
            Ok(detail)
        })
    }

    fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page>> {
        Box::pin(async move {
            if self.is(Fault::LooksAtEverything) {
                return self.inner.list(filter, page.looking_at(u64::MAX)).await;
            }
            let (Fault::OffsetPages, Some(cursor)) = (self.fault, page.after) else {
                let after = page.after;
                let mut page = self.inner.list(filter, page).await?;
                match self.fault {
                    Fault::StopsUnsaid if !page.complete => (page.complete, page.next) = (true, None),
                    Fault::GoesOnBehindTheShown if !page.complete => {
                        page.next = page.rows.last().map(Cursor::behind).or(after).or(page.next);
                    }
                    _ => {}
                }
                return Ok(page);
            };
            let whole = self.inner.list(Filter::all(), PageRequest::first(page.order, 100_000)).await?.rows;
            let shown = whole.iter().position(|row| row.seq == cursor.seq).map_or(0, |at| at + 1);
            let rows = whole.into_iter().filter(|row| filter.matches(row)).skip(shown).collect();
            Ok(Page::of(rows, page.limit))
        })
    }

    fn count(&self, mut filter: Filter) -> BoxFuture<'_, Result<u64>> {
        if self.is(Fault::FilterOfCountForgotten) {
            filter.until = None;
        }
        self.inner.count(filter)
    }

    fn summary(&self) -> BoxFuture<'_, Result<Summary>> {
        Box::pin(async move {
            let mut summary = self.inner.summary().await?;
            if self.is(Fault::RecoveredIsOwed) {
                for row in self.rows().await?.iter().filter(|row| row.state == LetterState::Recovered) {
                    summary.add(LetterState::Parked, &row.error_class, 1);
                }
            }
            Ok(summary)
        })
    }

    fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>>> {
        self.inner.aggregate(question)
    }

    fn claim(&self, mut request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>>> {
        Box::pin(async move {
            match self.fault {
                Fault::KindsIgnored if !request.kinds.is_empty() => {
                    request.kinds = self.rows().await?.into_iter().map(|row| row.kind).collect();
                    request.kinds.push("fetch".into());
                }
                Fault::HintIgnored => request.ignore_not_before = true,
                Fault::AlteredHandedOut => request.replayable_only = false,
                Fault::ClaimUnheardIsHeld => {
                    let claimed = self.inner.claim(request, actor).await?;
                    let mut polled = false;
                    std::future::poll_fn(|cx| {
                        cx.waker().wake_by_ref();
                        if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                    return Ok(claimed);
                }
                Fault::ClaimsStartOver => {
                    let page = PageRequest::first(Order::LongestUnseenFirst, 100_000);
                    let first = self.inner.list(Filter::parked(), page).await?.rows;
                    let looked_at = first.into_iter().take(usize::try_from(request.look_at).unwrap());
                    let ids = looked_at.filter(|row| request.filter.matches(row)).map(|row| row.letter_id);
                    request.filter.ids = ids.chain(["none".into()]).collect();
                }
                Fault::LeaseNeverEnds => request.keep_alive = true,
                Fault::CrashesUncounted => {
                    for row in self.rows().await?.into_iter().filter(|row| row.is_expired(self.clock.now())) {
                        self.inner.release(row.letter_id, Release::Held { fence: row.fence }, actor.clone()).await?;
                    }
                }
                _ => {}
            }
            self.inner.claim(request, actor).await
        })
    }

    fn finish(&self, mut result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        Box::pin(async move {
            if self.is(Fault::FenceIgnored) {
                if let Some(detail) = self.inner.get(result.letter_id.clone()).await? {
                    result.fence = detail.row.fence;
                }
            }
            if self.is(Fault::AttemptsOfReplayForgotten) {
                result.attempts = 0;
            }
            let row = self.inner.finish(result.clone(), actor.clone()).await?;
            if self.is(Fault::FailedAgainForgotten)
                && result.outcome == ReplayOutcome::Recovered
                && row.state == LetterState::Parked
            {
                let mut request = ClaimRequest::new([row.kind], "fault");
                request.filter = Filter::id(row.letter_id.clone());
                let claimed = self.inner.claim(request, actor.clone()).await?;
                let again = Finish::new(row.letter_id, claimed[0].row.fence, ReplayOutcome::Recovered);
                return self.inner.finish(again, actor).await;
            }
            Ok(row)
        })
    }

    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime>> {
        self.inner.extend(letter_id, fence, lease)
    }

    fn release(&self, letter_id: String, release: Release, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        Box::pin(async move {
            if let (Fault::ReleaseCountsAsCrash, Release::Held { fence }) = (self.fault, release) {
                let failure = retry_runtime::dead_letter::Failure::new(
                    retry_runtime::StopReason::Crashed,
                    retry_runtime::Disposition::Unknown,
                    "released",
                );
                let result = Finish::new(letter_id, fence, ReplayOutcome::Failed(failure));
                return self.inner.finish(result, actor).await;
            }
            match (self.fault, release) {
                (Fault::NotStartedHandedOutAtOnce, Release::Later { fence, .. }) => {
                    self.inner.release(letter_id, Release::Held { fence }, actor).await
                }
                _ => self.inner.release(letter_id, release, actor).await,
            }
        })
    }

    fn restore(&self, letter_id: String, more_replays: u32, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        let more_replays = if self.is(Fault::GrantIgnored) { 5 } else { more_replays };
        self.inner.restore(letter_id, more_replays, actor)
    }

    fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.discard(letter_id, actor)
    }

    fn resolve(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.resolve(letter_id, actor)
    }

    fn edit(&self, edit: Edit, actor: Actor) -> BoxFuture<'_, Result<Edited>> {
        self.inner.edit(edit, actor)
    }

    fn revisions(&self, letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>>> {
        self.inner.revisions(letter_id)
    }

    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage>> {
        self.inner.events(query)
    }

    fn reap(&self, actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>>> {
        self.inner.reap(actor)
    }

    fn give_back(&self, letter_id: &str, fence: u64) {
        // As the trait's default.
        if !self.is(Fault::GiveBackForgotten) {
            self.inner.give_back(letter_id, fence);
        }
    }
}

impl AttemptLedger for Faulty {
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin>> {
        if self.is(Fault::LedgerCountsAfterTheCall) {
            let entry = poll_now(self.inner.entry(key.clone())).unwrap();
            let mut entry = entry.unwrap_or_else(|| LedgerEntry::new(key.clone(), self.clock.now()));
            self.begun.lock().unwrap().insert(key, max_attempts);
            return Reply::ready(Ok(entry.begin(max_attempts, self.clock.now())));
        }
        self.inner.begin(key, max_attempts)
    }

    fn end(&self, key: LedgerKey, token: LedgerToken, mut end: End) -> Reply<Result<bool>> {
        let entry = poll_now(self.inner.entry(key.clone())).unwrap();
        match (self.fault, end) {
            (Fault::LedgerCountsAfterTheCall, _) => {
                if let Some(cap) = self.begun.lock().unwrap().remove(&key) {
                    drop(self.inner.begin(key.clone(), cap));
                }
            }
            (Fault::LedgerGoneBeatsOk, End::Ok) if entry.as_ref().is_some_and(|entry| entry.status == Gone) => {
                return Reply::ready(Ok(false));
            }
            (Fault::LedgerForgetsTheHint, End::Failed { .. }) => end = End::Failed { next_at: None },
            (Fault::LedgerResetKeepsTokens, _) => {
                let token = LedgerToken(entry.map_or(0, |entry| entry.generation));
                return self.inner.end(key, token, end);
            }
            _ => {}
        }
        self.inner.end(key, token, end)
    }

    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>>> {
        self.inner.entry(key)
    }

    fn entries(&self, scope: String, after: Option<String>, limit: u32) -> BoxFuture<'_, Result<Vec<LedgerEntry>>> {
        self.inner.entries(scope, after, limit)
    }

    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>>> {
        self.inner.reset(key, actor)
    }
}

impl DailyCounters for Faulty {
    fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<()>> {
        if self.is(Fault::CountersOverwrite) {
            let today = poll_now(self.inner.day(operation.into(), self.today())).unwrap();
            let n = n.saturating_sub(today.get(counter).copied().unwrap_or(0));
            return self.inner.add(operation, counter, n);
        }
        self.inner.add(operation, counter, n)
    }

    fn today(&self) -> Day {
        self.inner.today()
    }

    fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>>> {
        self.inner.day(operation, day)
    }

    fn series(&self, operation: String, counter: String, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(Day, u64)>>> {
        self.inner.series(operation, counter, from, to)
    }
}

fn all(fault: Fault) -> Report {
    if fault == Fault::CountersOfLocalDays {
        // Two hours east of Greenwich.
        return conformance::counters(|clock| {
            let east = retry_runtime::dead_letter::ManualClock::new(clock.now() + Duration::from_secs(7_200));
            EastOf { here: clock, east: east.clone(), inner: MemoryStore::with_clock(east.clock()) }
        });
    }
    match format!("{fault:?}") {
        name if name.starts_with("Ledger") => conformance::ledger(|clock| Faulty::new(fault, clock)),
        name if name.starts_with("Counters") => conformance::counters(|clock| Faulty::new(fault, clock)),
        _ => conformance::store(|clock| Faulty::new(fault, clock)),
    }
}

struct EastOf {
    here: StoreClock,
    east: retry_runtime::dead_letter::ManualClock,
    inner: MemoryStore,
}

impl DailyCounters for EastOf {
    fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<()>> {
        self.east.set(self.here.now() + Duration::from_secs(7_200));
        self.inner.add(operation, counter, n)
    }

    fn today(&self) -> Day {
        self.inner.today()
    }

    fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>>> {
        self.inner.day(operation, day)
    }

    fn series(&self, operation: String, counter: String, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(Day, u64)>>> {
        self.inner.series(operation, counter, from, to)
    }
}

/// Every check can fail: each fault is found by the checks it offends, by name.
#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn each_fault_is_found() {
    let found_by: &[(Fault, &[&str])] = &[
        (
            Fault::ParkIdIgnored,
            &[
                "sent_twice_at_once_is_one_letter",
                "a_known_park_id_changes_no_count",
                "a_known_park_id_reopens_nothing",
                "a_random_walk_goes_where_the_rules_lead",
            ],
        ),
        (Fault::JobIdIgnored, &["a_job_parked_again_is_one_letter", "a_parked_letter_keeps_everything"]),
        (Fault::OlderParkingWins, &["an_older_parking_only_counts", "an_older_parking_reopens_nothing"]),
        (
            Fault::ClosedLetterStaysClosed,
            &[
                "a_recovered_letter_opens_again",
                "a_discarded_letter_opens_again",
                "a_random_walk_goes_where_the_rules_lead",
            ],
        ),
        (Fault::PayloadWriteOnce, &["another_payload_is_another_revision", "a_letter_says_why_it_has_no_payload"]),
        (
            Fault::PayloadErrorHidden,
            &[
                "a_letter_says_why_it_has_no_payload",
                "a_letter_says_whether_its_newest_payload_could_be_serialised",
                "a_random_walk_goes_where_the_rules_lead",
            ],
        ),
        (Fault::Spills, &["a_letter_is_kept_and_the_ticket_says_where"]),
        (
            Fault::FenceIgnored,
            &["a_late_result_is_recorded_and_changes_nothing", "a_random_walk_goes_where_the_rules_lead"],
        ),
        (
            Fault::LateResultUnrecorded,
            &["a_late_result_is_recorded_and_changes_nothing", "a_random_walk_goes_where_the_rules_lead"],
        ),
        (Fault::KindsIgnored, &["a_claim_takes_its_kinds_only"]),
        (Fault::AlteredHandedOut, &["a_claim_leaves_out_what_cannot_be_replayed_where_asked"]),
        (Fault::NotStartedHandedOutAtOnce, &["what_could_not_be_started_waits_and_counts_nothing"]),
        (Fault::ClaimUnheardIsHeld, &["a_claim_that_nobody_hears_leaves_no_lease"]),
        (
            Fault::HintIgnored,
            &[
                "a_server_hint_is_obeyed_unless_forced",
                "a_hint_of_a_replay_is_kept",
                "a_random_walk_goes_where_the_rules_lead",
            ],
        ),
        (Fault::FailedAgainForgotten, &["a_live_failure_during_a_replay_stays_owed"]),
        (
            Fault::CrashesUncounted,
            &["a_claim_takes_expired_leases_back_first", "a_random_walk_goes_where_the_rules_lead"],
        ),
        (
            Fault::ReleaseCountsAsCrash,
            &["an_orderly_release_counts_nothing", "a_random_walk_goes_where_the_rules_lead"],
        ),
        (
            Fault::LeaseNeverEnds,
            &["a_lease_that_ran_out_is_taken_back", "three_crashes_abandon", "a_random_walk_goes_where_the_rules_lead"],
        ),
        (Fault::GiveBackForgotten, &["a_lease_given_back_is_free_again"]),
        (
            Fault::GrantIgnored,
            &[
                "a_restored_letter_has_what_was_granted",
                "only_a_closed_letter_is_restored",
                "a_random_walk_goes_where_the_rules_lead",
            ],
        ),
        (
            Fault::OffsetPages,
            &["a_page_of_a_moving_list_skips_nothing", "what_stays_is_listed_once_while_others_come_and_go"],
        ),
        (Fault::StopsUnsaid, &["a_page_says_where_it_stopped_looking"]),
        (Fault::GoesOnBehindTheShown, &["a_page_says_where_it_stopped_looking"]),
        (Fault::LooksAtEverything, &["a_page_says_where_it_stopped_looking"]),
        (Fault::ClaimsStartOver, &["a_claim_that_stopped_goes_on_there"]),
        (
            Fault::FilterOfCountForgotten,
            &["a_filter_means_the_same_everywhere", "any_filter_means_the_same_everywhere"],
        ),
        (Fault::RecoveredIsOwed, &["the_summary_counts_what_is_owed", "a_store_without_debts_is_clean"]),
        (
            Fault::AttemptsOfReplayForgotten,
            &["a_replay_reports_its_body_runs", "attempts_add_up", "a_random_walk_goes_where_the_rules_lead"],
        ),
        (Fault::LedgerCountsAfterTheCall, &["a_call_is_counted_before_it_ends", "a_crowd_never_passes_the_cap"]),
        (Fault::LedgerGoneBeatsOk, &["ok_beats_gone_beats_open"]),
        (Fault::LedgerForgetsTheHint, &["a_hint_too_long_is_kept"]),
        (Fault::LedgerResetKeepsTokens, &["an_end_from_before_a_reset_changes_nothing"]),
        (Fault::CountersOfLocalDays, &["a_day_ends_at_midnight_utc"]),
        (Fault::CountersOverwrite, &["counters_are_kept_apart", "a_crowd_loses_no_count"]),
    ];
    for (fault, wanted) in found_by {
        let report = all(*fault);
        let failed: Vec<_> = report.failures().map(|outcome| outcome.name).collect();
        for name in *wanted {
            assert!(failed.contains(name), "{fault:?} is not found by {name}, only by {failed:?}");
        }
    }
}

/// Whoever keeps the trait's default reads which function is missing.
#[test]
fn a_store_without_give_back_is_told_its_name() {
    let report = all(Fault::GiveBackForgotten);
    let failed: Vec<_> = report.failures().collect();
    assert!(failed.iter().all(|outcome| outcome.name == "a_lease_given_back_is_free_again"), "{report}");
    let said = failed.first().and_then(|outcome| outcome.failure.as_deref());
    assert!(said.is_some_and(|said| said.contains("`give_back`")), "{said:?}");
}

#[test]
fn a_report_names_rule_check_and_values() {
    let report = all(Fault::LedgerForgetsTheHint);
    let text = report.to_string();
    assert!(text.contains("FAIL  D17    a_hint_too_long_is_kept: begin: found Go"), "{text}");
    assert!(text.ends_with("17 checks, 1 failed"), "{text}");
    let failed = std::panic::catch_unwind(|| report.assert_passed());
    assert!(failed.is_err());
}
