//! Groups of failures, notes, trends.

use std::collections::BTreeMap;

use super::agreement::{random_filter, world};
use super::model::Dice;
use super::support::{Bench, Check, checks, demand, done, letter, refused, same, seconds, start};
use crate::dead_letter::{
    Actor, ArrivalKey, Arrivals, Bucket, DeadLetter, FailureGroups, Filter, GroupCounts, GroupOrder, GroupsPage,
    GroupsRequest, LetterRow, ReplayOutcome,
};
use crate::error::StoreErrorKind;

pub(super) fn checks<S: FailureGroups>() -> Vec<Check<Bench<S>>> {
    checks![
        "D66" groups_are_exact_for_any_filter,
        "D66" groups_come_page_by_page_in_either_order,
        "D66" a_group_shows_its_newest_letter,
        "D66" notes_are_kept_and_the_newest_is_shown,
        "D71" a_trend_counts_every_parking_in_its_hour,
        "D71" arrivals_are_counted_by_kind_and_class_zeros_included,
        "D71" an_hour_is_compared_with_those_of_past_days,
        "D71" arrivals_without_sense_are_refused,
    ]
}

fn counted(rows: &[LetterRow]) -> Vec<GroupCounts> {
    let mut groups: BTreeMap<&str, GroupCounts> = BTreeMap::new();
    for row in rows {
        let one = GroupCounts::new(&*row.fingerprint, row.state, 1, row.attempts, (row.first_seen, row.last_seen));
        groups.entry(&row.fingerprint).and_modify(|group| group.add(&one)).or_insert(one);
    }
    groups.into_values().collect()
}

fn sorted(mut groups: Vec<GroupCounts>, order: GroupOrder) -> Vec<GroupCounts> {
    groups.sort_by(|a, b| a.cursor().compare(&b.cursor(), order));
    groups
}

fn page<S: FailureGroups>(bench: &Bench<S>, request: GroupsRequest) -> Result<GroupsPage, String> {
    done(bench.store.groups(request))
}

fn groups_are_exact_for_any_filter<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    let mut dice = Dice(66);
    let rows = world(bench, &mut dice)?;
    for round in 0..24 {
        let filter = if round == 0 { Filter::all() } else { random_filter(&mut dice, &rows) };
        let meant: Vec<_> = rows.iter().filter(|row| filter.matches(row)).cloned().collect();
        let found = page(bench, GroupsRequest::new(filter.clone()).limit(1_000))?;
        demand!(found.next.is_none(), "{filter:?}: there is more behind the last group");
        let newest: Vec<_> = found.groups.iter().map(|group| group.newest.clone()).collect();
        let found = found.groups.into_iter().map(|group| group.counts).collect();
        let wanted = sorted(counted(&meant), GroupOrder::MostLetters);
        same(&format!("groups of {filter:?}"), &found, &wanted)?;
        // `rows` are in the order of the list.
        let last = |group: &GroupCounts| meant.iter().rev().find(|row| row.fingerprint == group.fingerprint).cloned();
        same(&format!("newest of {filter:?}"), newest, found.iter().filter_map(last).collect())?;
    }
    Ok(())
}

fn groups_come_page_by_page_in_either_order<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    let rows = world(bench, &mut Dice(67))?;
    for order in [GroupOrder::MostLetters, GroupOrder::NewestFirst] {
        let wanted = sorted(counted(&rows), order);
        demand!(wanted.len() > 7, "only {} groups", wanted.len());
        for limit in [1, 2, 5, 100] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let request = GroupsRequest::new(Filter::all()).order(order).limit(limit).after(after);
                let page = page(bench, request)?;
                demand!(page.groups.len() <= limit as usize, "a page of {} groups", page.groups.len());
                found.extend(page.groups.into_iter().map(|group| group.counts));
                after = page.next;
                if after.is_none() {
                    break;
                }
                demand!(found.len() <= wanted.len(), "the groups never end");
            }
            same(&format!("pages of {limit} in {order:?}"), &found, &wanted)?;
        }
    }
    Ok(())
}

fn failing(job_id: &str, message: &str, at: u64) -> DeadLetter {
    let mut sent = letter(job_id, start() + seconds(at));
    message.clone_into(&mut sent.error_message);
    sent
}

fn a_group_shows_its_newest_letter<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    bench.time.advance(seconds(100));
    for (job, message, at) in [("a", "row 1 of 7", 10), ("b", "row 2 of 9", 30), ("c", "row 3 of 8", 20)] {
        bench.park(failing(job, message, at))?;
    }
    let found = page(bench, GroupsRequest::new(Filter::parked()))?.groups;
    let [group] = found.as_slice() else { return Err(format!("one failure is {} groups", found.len())) };
    same("letters", group.counts.letters(), 3)?;
    same("seen", (group.counts.first_seen, group.counts.last_seen), (start() + seconds(10), start() + seconds(30)))?;
    same("sample", (&*group.newest.job_id, &*group.newest.error_message), ("b", "row 2 of 9"))
}

fn notes_are_kept_and_the_newest_is_shown<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("a")?;
    let shown = || -> Result<(String, Option<String>), String> {
        let group = page(bench, GroupsRequest::new(Filter::all()))?.groups.pop().ok_or("no group")?;
        Ok((group.counts.fingerprint, group.note.map(|note| note.text)))
    };
    let (fingerprint, none) = shown()?;
    same("a group nobody noted anything about", none, None)?;
    let mut wanted = Vec::new();
    for (actor, text) in [("ann", "the vendor knows"), ("bob", "fixed in 1.2"), ("ann", ""), ("eve", "again")] {
        bench.time.advance(seconds(1));
        let note = done(bench.store.note(fingerprint.clone(), text.to_owned(), Actor::new(actor, "why")))?;
        let is = (note.text.as_str(), note.actor.as_str(), note.at);
        same("what was noted", is, (text, actor, bench.time.now()))?;
        wanted.push(note);
        same("shown", shown()?.1, Some(text.to_owned()).filter(|text| !text.is_empty()))?;
    }
    same("notes", done(bench.store.notes(fingerprint))?, wanted)?;
    same("notes about nothing", done(bench.store.notes("0123456789abcdef".to_owned()))?, vec![])
}

fn a_trend_counts_every_parking_in_its_hour<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    // start() is 3 h 4 min past midnight.
    for hours_ago in [800, 690, 30, 23, 2, 2, 0] {
        bench.time.set(start() - seconds(hours_ago * 3_600));
        bench.park_job("a")?;
    }
    bench.time.set(start());
    let sent = letter("b", start());
    bench.park(sent.clone())?;
    // The same parking again is none.
    let id = bench.park(sent)?;
    // What became of a letter does not matter.
    bench.replay(&id, ReplayOutcome::Recovered)?;
    let group = page(bench, GroupsRequest::new(Filter::parked()))?.groups.pop().ok_or("no group")?;
    let mut hours = vec![0; 24];
    let mut days = vec![0; 30];
    for (n, count) in [(0, 2_u64), (2, 2), (23, 1)] {
        hours.iter_mut().rev().skip(n).take(1).for_each(|hour| *hour = count);
    }
    // Today began 3 h ago; 23 h and 30 h ago were yesterday and the day before, 690 h ago was the 29th day before.
    for (n, count) in [(0, 4_u64), (1, 1), (2, 1), (29, 1)] {
        days.iter_mut().rev().skip(n).take(1).for_each(|day| *day = count);
    }
    same("per hour", group.trend.per_hour, hours)?;
    same("per day", group.trend.per_day, days)
}

fn arrivals_are_counted_by_kind_and_class_zeros_included<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    let hour = 3_600;
    for (n, (kind, code, after)) in [
        ("fetch", 429, 0),
        ("fetch", 503, 0),
        ("store", 429, 1),
        ("store", 429, 3),
        ("fetch", 429, 3),
        ("fetch", 429, 27),
    ]
    .into_iter()
    .enumerate()
    {
        bench.time.set(start() + seconds(after * hour));
        let mut sent = letter(&format!("job {n}"), start());
        kind.clone_into(&mut sent.kind);
        sent.code = Some(code);
        bench.park(sent)?;
    }
    let ask = |by, bucket, to: u64| -> Result<Vec<(String, Vec<u64>)>, String> {
        let series = done(bench.store.arrivals(Arrivals::new(by, start(), start() + seconds(to * hour), bucket)))?;
        for one in &series {
            demand!(one.counts.first().is_some_and(|(at, _)| *at == bucket.start(start())), "the first slice: {one:?}");
        }
        Ok(series.into_iter().map(|one| (one.key, one.counts.into_iter().map(|(_, n)| n).collect())).collect())
    };
    let owned = |wanted: &[(&str, &[u64])]| -> Vec<(String, Vec<u64>)> {
        wanted.iter().map(|(key, counts)| ((*key).to_owned(), counts.to_vec())).collect()
    };
    same("all", ask(ArrivalKey::All, Bucket::Hour, 3)?, owned(&[("", &[2, 1, 0, 2])]))?;
    let kinds = owned(&[("fetch", &[2, 0, 0, 1]), ("store", &[0, 1, 0, 1])]);
    same("by kind", ask(ArrivalKey::Kind, Bucket::Hour, 3)?, kinds)?;
    let classes = owned(&[("exhausted:429", &[1, 1, 0, 2]), ("exhausted:503", &[1, 0, 0, 0])]);
    same("by class", ask(ArrivalKey::ErrorClass, Bucket::Hour, 3)?, classes)?;
    same("by day", ask(ArrivalKey::Kind, Bucket::Day, 27)?, owned(&[("fetch", &[3, 1]), ("store", &[2, 0])]))?;
    bench.time.set(start());
    let earlier =
        Arrivals::new(ArrivalKey::All, start() - seconds(9 * hour), start() - seconds(8 * hour), Bucket::Hour);
    let nothing = done(bench.store.arrivals(earlier))?;
    same("series of nothing", nothing.iter().map(|one| (one.total(), one.counts.len())).collect(), vec![(0, 2)])
}

fn an_hour_is_compared_with_those_of_past_days<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    let day = 86_400;
    for (n, days_ago) in [7, 3, 3, 1, 0, 0, 0].into_iter().enumerate() {
        bench.time.set(start() - seconds(days_ago * day));
        bench.park_job(&format!("job {n}"))?;
    }
    let question = Arrivals::new(ArrivalKey::Kind, start() - seconds(7 * day), start(), Bucket::Hour);
    let series = done(bench.store.arrivals(question))?;
    let found = series.first().ok_or("no series")?.against_past_days(7);
    same("this hour and the same one of the days before", found, (3, vec![1, 0, 2, 0, 0, 0, 1]))
}

fn arrivals_without_sense_are_refused<S: FailureGroups>(bench: &Bench<S>) -> Result<(), String> {
    let ask = |from, to| Arrivals::new(ArrivalKey::All, from, to, Bucket::Hour);
    for (what, question) in [
        ("the wrong way round", ask(start(), start() - seconds(7_200))),
        ("too many", ask(start() - seconds(11_000 * 3_600), start())),
    ] {
        let answer = super::support::attempt(bench.store.arrivals(question))?;
        refused(what, answer, StoreErrorKind::Invalid)?;
    }
    Ok(())
}
