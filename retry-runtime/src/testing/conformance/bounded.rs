//! Lists and claims that look at a bounded number of letters.

use super::support::{Bench, Check, checks, demand, done, letter, same, seconds, start, usual_claim};
use crate::dead_letter::{ClaimRequest, DeadLetterStore, Filter, LetterRow, Order, PageRequest};

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<Bench<S>>> {
    checks![
        "D22" a_page_says_where_it_stopped_looking,
        "D22" a_page_of_one_list_looks_only_at_what_it_shows,
        "D22" a_page_looks_at_one_letter_at_least,
        "D16" a_claim_that_stopped_goes_on_there,
    ]
}

const LETTERS: u64 = 30;

/// 30 letters of one class; every eleventh has the model `rare`.
fn few_of_many<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    for n in 0..LETTERS {
        let mut sent = letter(&format!("job {n:02}"), start() + seconds(n / 2));
        if n % 11 == 7 {
            sent.model = Some("rare".to_owned());
        }
        if n % 3 == 0 {
            "store".clone_into(&mut sent.kind);
        }
        bench.park(sent)?;
    }
    bench.time.advance(seconds(LETTERS));
    Ok(())
}

/// Letters that are found by their class, and looked at for their model.
fn mix() -> Filter {
    Filter { classes: vec!["rate_limit".to_owned()], models: vec!["rare".to_owned()], ..Filter::parked() }
}

fn jobs(rows: &[LetterRow]) -> Vec<String> {
    rows.iter().map(|row| row.job_id.clone()).collect()
}

fn a_page_says_where_it_stopped_looking<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    few_of_many(bench)?;
    for (order, wanted) in [
        (Order::LongestUnseenFirst, ["job 07", "job 18", "job 29"]),
        (Order::NewestFirst, ["job 29", "job 18", "job 07"]),
    ] {
        for (look_at, limit) in [(1, 2), (4, 1), (5, 10), (7, 3), (30, 2), (31, 3)] {
            let what = format!("{limit} in {order:?}, looking at {look_at}");
            let (mut found, mut after, mut looked_at) = (Vec::new(), None, 0);
            loop {
                let page = PageRequest::first(order, limit).after(after).looking_at(look_at);
                let page = done(bench.store.list(mix(), page))?;
                demand!(page.looked_at <= look_at, "{what}: {} letters looked at", page.looked_at);
                demand!(page.rows.len() as u64 <= page.looked_at, "{what}: fewer letters looked at than shown");
                demand!(page.rows.len() <= limit as usize, "{what}: a page of {} letters", page.rows.len());
                demand!(
                    page.complete || (page.next.is_some() && page.looked_at == look_at),
                    "{what}: stopped after {} letters, to go on at {:?}",
                    page.looked_at,
                    page.next
                );
                demand!(
                    !page.complete || page.rows.len() == limit as usize || page.next.is_none(),
                    "{what}: complete with {} letters, and there is more at {:?}",
                    page.rows.len(),
                    page.next
                );
                found.extend(jobs(&page.rows));
                looked_at += page.looked_at;
                after = page.next;
                if after.is_none() {
                    break;
                }
                demand!(looked_at <= 10 * LETTERS, "{what}: the list never ends");
            }
            same(&what, found, wanted.map(str::to_owned).to_vec())?;
            demand!(looked_at >= LETTERS, "{what}: only {looked_at} letters were looked at, they say");
        }
    }
    Ok(())
}

fn a_page_of_one_list_looks_only_at_what_it_shows<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    few_of_many(bench)?;
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let row = done(bench.store.list(Filter::all(), PageRequest::default()))?.rows.into_iter().next();
    let row = row.ok_or("nothing is listed")?;
    for filter in [
        Filter::all(),
        Filter::parked(),
        Filter::owed(),
        Filter { kinds: texts(&["store"]), ..Filter::all() },
        Filter { kinds: texts(&["store", "fetch", "store"]), ..Filter::parked() },
        Filter { classes: texts(&["rate_limit"]), ..Filter::parked() },
        Filter { models: texts(&["rare"]), ..Filter::all() },
        Filter { error_classes: vec![row.error_class.clone()], ..Filter::all() },
        Filter { fingerprints: vec![row.fingerprint.clone()], ..Filter::parked() },
        Filter { since: Some(start() + seconds(3)), until: Some(start() + seconds(9)), ..Filter::all() },
        Filter { ids: vec![row.letter_id.clone()], ..Filter::all() },
        Filter { job_ids: texts(&["job 03", "job 04"]), ..Filter::parked() },
    ] {
        for order in [Order::LongestUnseenFirst, Order::NewestFirst] {
            let mut after = None;
            loop {
                let page = PageRequest::first(order, 4).after(after).looking_at(5);
                let page = done(bench.store.list(filter.clone(), page))?;
                let shown = page.rows.len() as u64 + u64::from(page.next.is_some());
                demand!(page.complete, "{filter:?}: a page stopped after {} letters", page.looked_at);
                demand!(page.looked_at <= shown, "{filter:?}: {} letters looked at for {shown}", page.looked_at);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn a_page_looks_at_one_letter_at_least<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    bench.park_job("a")?;
    let page = done(bench.store.list(mix(), PageRequest::default().looking_at(0)))?;
    same("a page that may look at nothing", (page.looked_at, page.complete), (1, true))
}

fn a_claim_that_stopped_goes_on_there<S: DeadLetterStore>(bench: &Bench<S>) -> Result<(), String> {
    few_of_many(bench)?;
    let request = ClaimRequest { look_at: 4, limit: 2, filter: mix(), kinds: kinds(), ..usual_claim() };
    let mut found = Vec::new();
    for _ in 0..LETTERS {
        found.extend(bench.claim(request.clone())?.into_iter().map(|claimed| claimed.row.job_id));
    }
    found.sort();
    same("claimed", found, ["job 07", "job 18", "job 29"].map(str::to_owned).to_vec())?;
    // Something that comes before the place where the last claim stopped has its turn as well.
    let mut late = letter("late", start());
    late.model = Some("rare".to_owned());
    bench.park(late)?;
    for _ in 0..LETTERS {
        if let [claimed] = bench.claim(request.clone())?.as_slice() {
            return same("the late one", claimed.row.job_id.as_str(), "late");
        }
    }
    Err("a letter parked later is never handed out".to_owned())
}

fn kinds() -> Vec<String> {
    ["fetch", "store"].map(str::to_owned).to_vec()
}
