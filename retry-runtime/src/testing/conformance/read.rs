//! Lists, counts, summaries.

use std::collections::BTreeMap;

use super::support::{Bench, Check, checks, demand, done, failure, letter, same, seconds, start};
use crate::dead_letter::{
    Aggregate, Bucket, DeadLetter, DeadLetterStore, Filter, Group, GroupKey, LetterRow, LetterState, Order,
    PageRequest, ReplayOutcome,
};
use crate::verdict::Disposition;

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "D22" a_filter_means_the_same_everywhere,
        "D22" pages_show_every_letter_once_in_either_order,
        "D22" a_page_of_a_moving_list_skips_nothing,
        "D22" counts_by_group_add_up,
        "D22" slices_of_time_begin_at_the_full_hour_and_day,
        "B1.9" the_summary_counts_what_is_owed,
        "D10" a_store_without_debts_is_clean,
        "B1.6" numbers_of_letters_rise,
    ]
}

/// 24 letters in all states but `replaying`, with some ties in time.
fn varied<S: DeadLetterStore>(bench: &Bench<S>) -> Result<Vec<LetterRow>, String> {
    for n in 0..24_u64 {
        let at = start() + seconds(n / 2 * 1_000);
        let mut sent = letter(&format!("job {n}"), at);
        if n % 3 == 0 {
            "store".clone_into(&mut sent.kind);
        }
        if n % 4 == 0 {
            sent.class = None;
            sent.code = None;
            sent.model = None;
        }
        if n % 5 == 0 {
            sent.code = Some(500 + i64::try_from(n % 2).unwrap_or(0));
        }
        if n % 7 == 0 {
            sent.disposition = Disposition::Unknown;
        }
        bench.park(sent)?;
    }
    bench.time.set(start() + seconds(12_000));
    for (n, outcome) in [(1, ReplayOutcome::Recovered), (2, ReplayOutcome::Gone(failure()))] {
        let id = one(bench, &format!("job {n}"))?;
        bench.replay(&id, outcome)?;
    }
    let id = one(bench, "job 5")?;
    bench.wear_out(&id)?;
    all(bench, &Filter::all(), Order::LongestUnseenFirst, 1_000)
}

fn one<S: DeadLetterStore>(bench: &Bench<S>, job_id: &str) -> Result<String, String> {
    let filter = Filter { job_ids: vec![job_id.to_owned()], ..Filter::default() };
    let page = done(bench.store.list(filter, PageRequest::default()))?;
    page.rows.into_iter().next().map(|row| row.letter_id).ok_or_else(|| format!("{job_id} is not listed"))
}

/// Every letter, page by page.
fn all<S: DeadLetterStore>(
    bench: &Bench<S>,
    filter: &Filter,
    order: Order,
    limit: u32,
) -> Result<Vec<LetterRow>, String> {
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = done(bench.store.list(filter.clone(), PageRequest::first(order, limit).after(after)))?;
        demand!(page.rows.len() <= limit as usize, "a page of {} letters, {limit} were asked for", page.rows.len());
        demand!(
            page.next.is_none() || !page.rows.is_empty() || !page.complete,
            "an empty page is said to be complete and to have a next one"
        );
        demand!(page.complete || page.next.is_some(), "a page that is not complete has no next one");
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return Ok(rows);
        }
        demand!(rows.len() <= 10_000, "the list never ends");
    }
}

fn filters(rows: &[LetterRow]) -> Vec<Filter> {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let some = |take: fn(&LetterRow) -> String| rows.iter().step_by(5).map(take).collect::<Vec<_>>();
    let none = Filter::default;
    vec![
        none(),
        Filter::parked(),
        Filter::owed(),
        Filter { kinds: texts(&["store"]), ..none() },
        Filter { kinds: texts(&["store", "fetch", "no such kind"]), ..none() },
        Filter { kinds: texts(&["no such kind"]), ..none() },
        Filter { kinds: texts(&["%"]), ..none() },
        Filter { classes: texts(&["rate_limit"]), ..none() },
        Filter { classes: texts(&[""]), ..none() },
        Filter { error_classes: texts(&["exhausted:501", "permanent:403"]), ..none() },
        Filter { models: texts(&["m1"]), ..none() },
        Filter { states: vec![LetterState::Recovered, LetterState::Abandoned], ..none() },
        Filter { since: Some(start() + seconds(3_000)), ..none() },
        Filter { until: Some(start() + seconds(3_000)), ..none() },
        Filter { since: Some(start() + seconds(2_000)), until: Some(start() + seconds(7_000)), ..none() },
        Filter { ids: some(|row| row.letter_id.clone()), ..none() },
        Filter { job_ids: some(|row| row.job_id.clone()), ..none() },
        Filter { fingerprints: some(|row| row.fingerprint.clone()), ..none() },
        Filter { dispositions: vec![Disposition::Permanent], ..none() },
        Filter { dispositions: vec![Disposition::Retryable, Disposition::Unknown], ..Filter::parked() },
        Filter {
            kinds: texts(&["fetch"]),
            classes: texts(&["rate_limit"]),
            since: Some(start() + seconds(1_000)),
            ..Filter::parked()
        },
    ]
}

fn a_filter_means_the_same_everywhere<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let rows = varied(bench)?;
    same("letters", rows.len(), 24)?;
    for filter in filters(&rows) {
        let wanted: Vec<_> = rows.iter().filter(|row| filter.matches(row)).cloned().collect();
        let listed = all(bench, &filter, Order::LongestUnseenFirst, 100)?;
        same(&format!("list of {filter:?}"), &listed, &wanted)?;
        let count = done(bench.store.count(filter.clone()))?;
        same(&format!("count of {filter:?}"), count, wanted.len() as u64)?;
        let groups = done(bench.store.aggregate(Aggregate::new(filter.clone(), [])))?;
        let counted: u64 = groups.iter().map(|group| group.letters).sum();
        same(&format!("aggregate of {filter:?}"), counted, wanted.len() as u64)?;
    }
    Ok(())
}

fn pages_show_every_letter_once_in_either_order<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    varied(bench)?;
    for order in [Order::NewestFirst, Order::LongestUnseenFirst] {
        let whole = all(bench, &Filter::all(), order, 1_000)?;
        let keys: Vec<_> = whole.iter().map(|row| (row.last_seen, row.seq)).collect();
        let mut sorted = keys.clone();
        sorted.sort();
        if order == Order::NewestFirst {
            sorted.reverse();
        }
        same(&format!("order {order:?}"), keys, sorted)?;
        for limit in [1, 2, 5, 24] {
            same(&format!("pages of {limit} in {order:?}"), &all(bench, &Filter::all(), order, limit)?, &whole)?;
        }
    }
    Ok(())
}

fn a_page_of_a_moving_list_skips_nothing<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for n in 0..6 {
        bench.park_job(&format!("job {n}"))?;
        bench.time.advance(seconds(1));
    }
    let first = done(bench.store.list(Filter::parked(), PageRequest::first(Order::LongestUnseenFirst, 2)))?;
    // The letters already shown leave the list; a list by offset would skip two others.
    for row in &first.rows {
        bench.replay(&row.letter_id, ReplayOutcome::Recovered)?;
    }
    let page = PageRequest::first(Order::LongestUnseenFirst, 2).after(first.next);
    let second = done(bench.store.list(Filter::parked(), page))?;
    let jobs: Vec<_> = second.rows.iter().map(|row| row.job_id.as_str()).collect();
    same("the second page", jobs, vec!["job 2", "job 3"])
}

fn counts_by_group_add_up<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let rows = varied(bench)?;
    let questions: [&[GroupKey]; 7] = [
        &[GroupKey::Kind],
        &[GroupKey::Class],
        &[GroupKey::ErrorClass],
        &[GroupKey::Fingerprint],
        &[GroupKey::State],
        &[GroupKey::Model],
        &[GroupKey::Kind, GroupKey::State],
    ];
    for by in questions {
        for bucket in [None, Some(Bucket::Hour), Some(Bucket::Day)] {
            let mut question = Aggregate::new(Filter::all(), by);
            question.bucket = bucket;
            let mut wanted: BTreeMap<_, Group> = BTreeMap::new();
            for row in &rows {
                let keys: Vec<_> = by.iter().map(|key| key.of(row)).collect();
                let bucket = bucket.map(|bucket| bucket.start(row.last_seen));
                let seen = (row.first_seen, row.last_seen);
                let fresh = || Group::new(keys.clone(), bucket, 0, 0, seen);
                let group = wanted.entry((bucket, keys.clone())).or_insert_with(fresh);
                group.letters += 1;
                group.attempts += row.attempts;
                group.first_seen = group.first_seen.min(row.first_seen);
                group.last_seen = group.last_seen.max(row.last_seen);
            }
            let mut wanted: Vec<_> = wanted.into_values().collect();
            Group::sort(&mut wanted);
            same(&format!("groups by {by:?} {bucket:?}"), done(bench.store.aggregate(question))?, wanted)?;
        }
    }
    Ok(())
}

fn slices_of_time_begin_at_the_full_hour_and_day<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("a")?;
    // start() is 3 h 4 min 5.006 s past midnight.
    let midnight = start() - seconds(3 * 3_600 + 4 * 60 + 5) - std::time::Duration::from_millis(6);
    for (bucket, start) in [(Bucket::Hour, midnight + seconds(3 * 3_600)), (Bucket::Day, midnight)] {
        let groups = done(bench.store.aggregate(Aggregate::new(Filter::all(), []).per(bucket)))?;
        same("slices", groups.iter().map(|group| group.bucket).collect(), vec![Some(start)])?;
    }
    Ok(())
}

fn the_summary_counts_what_is_owed<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for n in 0..3 {
        bench.park_job(&format!("limited {n}"))?;
    }
    for n in 0..5 {
        bench.park(DeadLetter { code: None, ..letter(&format!("slow {n}"), start()) })?;
    }
    for n in 0..3 {
        bench.park(DeadLetter { code: Some(403), ..letter(&format!("forbidden {n}"), start()) })?;
    }
    let gone = bench.park_job("gone")?;
    bench.replay(&gone, ReplayOutcome::Gone(failure()))?;
    let recovered = bench.park_job("recovered")?;
    bench.replay(&recovered, ReplayOutcome::Recovered)?;
    let worn = bench.park_job("worn")?;
    bench.wear_out(&worn)?;
    let running = bench.park_job("running")?;
    bench.claim_id(&running)?;
    let summary = done(bench.store.summary())?;
    same("owed", summary.owed(), 13)?;
    let lines = "dead-letter: 11 parked\n     5  exhausted:rate_limit\n     3  exhausted:403\n     3  exhausted:429\n     1  replaying\n     1  abandoned";
    same("summary", summary.to_string().as_str(), lines)
}

fn a_store_without_debts_is_clean<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let clean = "dead-letter: clean (0 parked)";
    same("an empty store", done(bench.store.summary())?.to_string().as_str(), clean)?;
    let id = bench.park_job("a")?;
    demand!(!done(bench.store.summary())?.is_clean(), "clean with a parked letter");
    bench.replay(&id, ReplayOutcome::Recovered)?;
    same("after the recovery", done(bench.store.summary())?.to_string().as_str(), clean)
}

fn numbers_of_letters_rise<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    let mut before = None;
    for n in 0..5 {
        let seq = Some(bench.row(&bench.park_job(&format!("job {n}"))?)?.seq);
        demand!(seq > before, "number {seq:?} after {before:?}");
        before = seq;
    }
    Ok(())
}
