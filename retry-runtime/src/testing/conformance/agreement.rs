//! Random letters, random filters: list, count and groups mean the same letters, also while these come and go.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use super::model::Dice;
use super::support::Check;
use super::support::{Bench, checks, demand, done, failure, letter, same, seconds, start, usual_claim};
use crate::dead_letter::{
    Aggregate, ClaimRequest, Cursor, DeadLetter, DeadLetterStore, Filter, GroupKey, LetterRow, LetterState,
    MAX_REPLAYS, Order, PageRequest, ReplayOutcome,
};
use crate::verdict::Disposition;

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "B23" any_filter_means_the_same_everywhere,
        "B23" what_stays_is_listed_once_while_others_come_and_go,
    ]
}

const LETTERS: u64 = 40;
pub(super) const FILTERS: u32 = 40;

fn any_filter_means_the_same_everywhere<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    filters_agree(bench, 23)
}

/// One world of letters by this seed, and many filters over it.
pub(super) fn filters_agree<S: DeadLetterStore>(bench: &Bench<S>, seed: u64) -> Result<(), String> {
    let mut dice = Dice(seed);
    let rows = world(bench, &mut dice)?;
    for _ in 0..FILTERS {
        let filter = random_filter(&mut dice, &rows);
        agree(bench, &mut dice, &rows, &filter).map_err(|what| format!("seed {seed}, {filter:?}: {what}"))?;
    }
    Ok(())
}

fn agree<S: DeadLetterStore>(
    bench: &Bench<S>,
    dice: &mut Dice,
    rows: &[LetterRow],
    filter: &Filter,
) -> Result<(), String> {
    let wanted: Vec<_> = rows.iter().filter(|row| filter.matches(row)).cloned().collect();
    let (walked, rest) = filter.split();
    let split = rows.iter().filter(|row| walked.matches(row) && rest.matches(row)).count();
    same("letters by the filter's two parts", split, wanted.len())?;
    for order in [Order::LongestUnseenFirst, Order::NewestFirst] {
        let mut wanted = wanted.clone();
        if order == Order::NewestFirst {
            wanted.reverse();
        }
        same(&format!("list in {order:?}"), list(bench, dice, filter, order)?, wanted)?;
    }
    same("count", done(bench.store.count(filter.clone()))?, wanted.len() as u64)?;
    let by = [vec![], vec![GroupKey::State], vec![GroupKey::Kind, GroupKey::Class], vec![GroupKey::Fingerprint]];
    for by in by {
        let groups = done(bench.store.aggregate(Aggregate::new(filter.clone(), by.clone())))?;
        let sum = groups.iter().map(|group| group.letters).sum::<u64>();
        same(&format!("groups by {by:?}"), sum, wanted.len() as u64)?;
    }
    Ok(())
}

/// The whole list, in pages of random size that look at a random number of letters.
pub(super) fn list<S: DeadLetterStore>(
    bench: &Bench<S>,
    dice: &mut Dice,
    filter: &Filter,
    order: Order,
) -> Result<Vec<LetterRow>, String> {
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..10 * LETTERS {
        let page = done(bench.store.list(filter.clone(), random_page(dice, order, after)))?;
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return Ok(rows);
        }
    }
    Err("the list never ends".to_owned())
}

fn random_page(dice: &mut Dice, order: Order, after: Option<Cursor>) -> PageRequest {
    let page = PageRequest::first(order, u32::try_from(1 + dice.roll(9)).unwrap_or(1)).after(after);
    if dice.roll(2) == 0 { page } else { page.looking_at(1 + dice.roll(20)) }
}

/// Letters in all states, of several kinds, classes and labels, at times that are often equal; in the order of the list.
pub(super) fn world<S: DeadLetterStore>(bench: &Bench<S>, dice: &mut Dice) -> Result<Vec<LetterRow>, String> {
    let mut ids = Vec::new();
    for n in 0..LETTERS {
        ids.push(bench.park(random_letter(dice, &format!("job {n}")))?);
    }
    bench.time.set(start() + seconds(50));
    for id in &ids {
        bench.time.advance(Duration::from_millis(dice.roll(3)));
        match dice.roll(12) {
            0 => drop(replay(bench, id, ReplayOutcome::Recovered)?),
            1 => drop(replay(bench, id, ReplayOutcome::Gone(failure()))?),
            2 => (0..MAX_REPLAYS).try_for_each(|_| replay(bench, id, ReplayOutcome::Failed(failure())).map(drop))?,
            3 => drop(replay(bench, id, ReplayOutcome::Failed(failure()))?),
            // Under way for longer than this takes.
            4 => drop(claim(bench, id)?),
            _ => {}
        }
    }
    let mut rows = Vec::new();
    for id in &ids {
        rows.push(bench.row(id)?);
    }
    rows.sort_by_key(|row| (row.last_seen, row.seq));
    Ok(rows)
}

fn random_letter(dice: &mut Dice, job_id: &str) -> DeadLetter {
    let at = start() + Duration::from_millis(dice.roll(30));
    let mut sent = letter(job_id, at);
    sent.kind = format!("kind {}", dice.roll(3));
    sent.class = pick(dice, &[None, Some("timeout"), Some("rate_limit"), Some("o'brien")]).map(str::to_owned);
    sent.code = pick(dice, &[None, Some(429), Some(503)]);
    sent.model = pick(dice, &[None, Some("m1"), Some("m2")]).map(str::to_owned);
    sent.disposition = pick(dice, &[Disposition::Retryable, Disposition::Permanent, Disposition::Unknown]);
    sent.error_message = format!("route {} failed", pick(dice, &["a", "b", "c"]));
    sent
}

pub(super) fn pick<T: Copy>(dice: &mut Dice, of: &[T]) -> T {
    let at = usize::try_from(dice.roll(of.len() as u64)).unwrap_or(0);
    #[allow(clippy::indexing_slicing, reason = "rolled below the length")]
    of[at]
}

/// A filter of any number of parts, mostly of values that are there.
pub(super) fn random_filter(dice: &mut Dice, rows: &[LetterRow]) -> Filter {
    let mut filter = Filter::all();
    let values = |dice: &mut Dice, of: fn(&LetterRow) -> Option<String>| -> Vec<String> {
        if dice.roll(4) != 0 {
            return Vec::new();
        }
        let mut values = Vec::new();
        for _ in 0..=dice.roll(3) {
            let at = usize::try_from(dice.roll(rows.len() as u64)).unwrap_or(0);
            values.push(rows.get(at).and_then(of).unwrap_or_else(|| "nobody's".to_owned()));
        }
        if dice.roll(8) == 0 {
            // More than one list merges.
            values.extend((0..Filter::WALKS).map(|n| format!("no {n}")));
        }
        values
    };
    filter.kinds = values(dice, |row| Some(row.kind.clone()));
    filter.classes = values(dice, |row| row.class.clone());
    filter.error_classes = values(dice, |row| Some(row.error_class.clone()));
    filter.fingerprints = values(dice, |row| Some(row.fingerprint.clone()));
    filter.models = values(dice, |row| row.model.clone());
    if dice.roll(4) == 0 {
        filter.ids = values(dice, |row| Some(row.letter_id.clone()));
        filter.job_ids = values(dice, |row| Some(row.job_id.clone()));
    }
    if dice.roll(3) == 0 {
        filter.states = (0..=dice.roll(3)).map(|_| pick(dice, LetterState::ALL)).collect();
    }
    if dice.roll(6) == 0 {
        filter.dispositions = vec![pick(dice, &[Disposition::Permanent, Disposition::Retryable, Disposition::Gone])];
    }
    let time = |dice: &mut Dice| -> Option<SystemTime> {
        // Also between two milliseconds.
        (dice.roll(4) == 0).then(|| start() + Duration::from_micros(dice.roll(30_000) / 500 * 500))
    };
    (filter.since, filter.until) = (time(dice), time(dice));
    filter
}

fn claim<S: DeadLetterStore>(bench: &Bench<S>, id: &str) -> Result<Option<u64>, String> {
    let kinds = (0..4).map(|n| format!("kind {n}")).collect();
    let mut request = ClaimRequest { kinds, filter: Filter::id(id), ..usual_claim() };
    (request.ignore_backoff, request.ignore_not_before) = (true, true);
    Ok(bench.claim(request)?.pop().map(|claimed| claimed.row.fence))
}

fn replay<S: DeadLetterStore>(bench: &Bench<S>, id: &str, outcome: ReplayOutcome) -> Result<bool, String> {
    let Some(fence) = claim(bench, id)? else { return Ok(false) };
    bench.finish(id, fence, outcome).map(|_| true)
}

fn what_stays_is_listed_once_while_others_come_and_go<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let mut dice = Dice(24);
    world(bench, &mut dice)?;
    for round in 0..24 {
        let order = pick(&mut dice, &[Order::LongestUnseenFirst, Order::NewestFirst]);
        let before = list(bench, &mut dice, &Filter::all(), order)?;
        let mut filter = random_filter(&mut dice, &before);
        filter.ids.clear();
        let (mut seen, mut moved, mut after) = (Vec::new(), HashSet::new(), None);
        loop {
            let page = done(bench.store.list(filter.clone(), random_page(&mut dice, order, after)))?;
            seen.extend(page.rows.into_iter().map(|row| row.letter_id));
            after = page.next;
            if after.is_none() {
                break;
            }
            demand!(seen.len() < 1_000, "round {round}: the list never ends");
            bench.time.advance(Duration::from_millis(dice.roll(3)));
            let row = pick(&mut dice, &before.iter().collect::<Vec<_>>());
            match dice.roll(4) {
                // Somebody comes, at either end or between.
                0 => {
                    let name = format!("round {round} {}", seen.len());
                    let mut sent = random_letter(&mut dice, &name);
                    sent.failed_at += Duration::from_millis(dice.roll(30));
                    bench.park(sent)?;
                }
                // Somebody leaves, or fails again and moves to the newest.
                1 => {
                    replay(bench, &row.letter_id, ReplayOutcome::Recovered)?;
                    moved.insert(row.letter_id.clone());
                }
                2 => {
                    let mut again = letter(&row.job_id, bench.time.now());
                    again.kind.clone_from(&row.kind);
                    bench.park(again)?;
                    moved.insert(row.letter_id.clone());
                }
                _ => {}
            }
        }
        for row in before.iter().filter(|row| filter.matches(row) && !moved.contains(&row.letter_id)) {
            let times = seen.iter().filter(|seen| **seen == row.letter_id).count();
            same(&format!("round {round}, {filter:?}, {order:?}: times {} is shown", row.letter_id), times, 1)?;
        }
    }
    Ok(())
}
