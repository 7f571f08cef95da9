//! Letters that somebody else replays, or did until the process died.

use std::time::SystemTime;

use super::run::PAGE;
use super::{ReplayReport, Replayer};
use crate::dead_letter::{Actor, Filter, LetterRow, LetterState, Order, PageRequest};
use crate::error::StoreError;

/// Takes back the leases that have ended (D15). Letters that were abandoned by that are reported as such, unless this run
/// takes abandoned ones.
pub(super) async fn reap(with: &Replayer, filter: &Filter, report: &mut ReplayReport) -> Result<(), StoreError> {
    let taken_back = with.store.reap(with.actor.clone()).await?;
    let of_filter = Filter { states: vec![LetterState::Abandoned], ..with.filter.clone() };
    if !filter.states.contains(&LetterState::Abandoned) {
        let lost = taken_back.iter().filter(|row| of_filter.matches(row)).count() as u64;
        report.abandoned += lost;
        report.matched += lost;
    }
    Ok(())
}

/// Counts what is under way elsewhere. Returns how many letters this run would take if it were real: their lease has ended.
pub(super) async fn look_under_way(with: &Replayer, report: &mut ReplayReport) -> Result<u64, StoreError> {
    let filter = Filter { states: vec![LetterState::Replaying], ..with.filter.clone() };
    let (mut after, mut freed) = (None, 0);
    loop {
        let page = PageRequest::first(Order::LongestUnseenFirst, PAGE).after(after);
        let page = with.store.list(filter.clone(), page).await?;
        // A real run has taken back what it could, by the store's own clock. Dry, this machine's clock has to do.
        let now = SystemTime::now();
        for row in &page.rows {
            match becomes(row, now).filter(|_| !with.executes) {
                None => report.count_under_way(row.lease_until),
                Some(LetterState::Abandoned) if with.grant.is_none() => {
                    report.abandoned += 1;
                    report.matched += 1;
                }
                Some(_) => freed += 1,
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(freed);
        }
    }
}

/// The state that a letter under way has once its lease is taken back; `None` while the lease lasts.
pub(super) fn becomes(row: &LetterRow, now: SystemTime) -> Option<LetterState> {
    row.is_expired(now).then(|| {
        let mut row = row.clone();
        // Who takes it back does not matter to its state.
        row.reap(&Actor::new("", ""), now);
        row.state
    })
}
