//! Random letters, random filters: plan, frozen members, list and count mean the same letters.

use super::agreement::{FILTERS, list, pick, random_filter, world};
use super::model::Dice;
use super::support::{Bench, Check, actor, attempt, checks, demand, done, refused, same};
use crate::dead_letter::{BulkOperations, Filter, LetterRow, OperationRequest, Order, Verb};
use crate::error::StoreErrorKind;

pub(super) fn checks<S: BulkOperations>() -> Vec<Check<Bench<S>>> {
    checks!["B23" plan_members_list_and_count_agree_about_any_filter]
}

fn plan_members_list_and_count_agree_about_any_filter<S: BulkOperations>(bench: &Bench<S>) -> Result<(), String> {
    filters_agree(bench, 25)
}

/// One world of letters by this seed, and many operations over it that never run: the letters stay as they are.
pub(super) fn filters_agree<S: BulkOperations>(bench: &Bench<S>, seed: u64) -> Result<(), String> {
    let mut dice = Dice(seed);
    let rows = world(bench, &mut dice)?;
    for _ in 0..FILTERS {
        let filter = random_filter(&mut dice, &rows);
        let verb = pick(&mut dice, &[Verb::Replay, Verb::Replay, Verb::Discard, Verb::Restore { more_replays: 1 }]);
        let mut request = OperationRequest::new(verb, filter);
        request.options.exclude_permanent = dice.roll(3) == 0;
        let what = format!("seed {seed}, {request:?}");
        agree(bench, &mut dice, &rows, request).map_err(|differs| format!("{what}: {differs}"))?;
    }
    Ok(())
}

fn agree<S: BulkOperations>(
    bench: &Bench<S>,
    dice: &mut Dice,
    rows: &[LetterRow],
    request: OperationRequest,
) -> Result<(), String> {
    let Ok(filter) = request.members() else {
        refused("a plan without sense", attempt(bench.store.plan(request.clone()))?, StoreErrorKind::Invalid)?;
        let started = attempt(bench.store.start(request, actor()))?;
        return refused("an operation without sense", started, StoreErrorKind::Invalid);
    };
    let wanted = seqs(rows, &filter);
    let listed = list(bench, dice, &filter, Order::LongestUnseenFirst)?;
    let mut listed: Vec<_> = listed.iter().map(|row| row.seq).collect();
    listed.sort_unstable();
    same("list", &listed, &wanted)?;
    same("count", done(bench.store.count(filter))?, wanted.len() as u64)?;
    let plan = done(bench.store.plan(request.clone()))?;
    same("the plan", plan.matched, wanted.len() as u64)?;
    same("the plan's groups", plan.groups.iter().map(|group| group.n).sum(), plan.matched)?;
    let operation = bench.start(request)?;
    same("the operation's members", operation.counts.total(), wanted.len() as u64)?;
    let items = bench.all_items(&operation.id)?;
    let mut frozen: Vec<_> = items.iter().map(|item| item.seq).collect();
    demand!(frozen.is_sorted(), "members are not in the order of their numbers: {frozen:?}");
    frozen.dedup();
    same("frozen members", &frozen, &wanted)?;
    same("frozen members, each once", items.len(), wanted.len())
}

fn seqs(rows: &[LetterRow], filter: &Filter) -> Vec<u64> {
    let mut seqs: Vec<_> = rows.iter().filter(|row| filter.matches(row)).map(|row| row.seq).collect();
    seqs.sort_unstable();
    seqs
}
