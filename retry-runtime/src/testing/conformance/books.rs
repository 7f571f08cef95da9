//! Looking through a ledger.

use super::support::{Bench, Check, answered, checks, done, same, seconds};
use crate::ledger::{Begin, End, LedgerBooks, LedgerKey, LedgerQuery, LedgerStatus};

pub(super) fn checks<S: LedgerBooks>() -> Vec<Check<Bench<S>>> {
    checks![
        "D17" pages_of_a_status_show_each_key_once,
        "D17" keys_at_their_cap_are_found,
        "F97" counts_add_up_to_all_keys,
        "D17" scopes_are_listed,
        "D17" the_empty_key_is_on_the_first_page,
    ]
}

impl<S: LedgerBooks> Bench<S> {
    fn call(&self, scope: &str, key: &str, end: Option<End>) -> Result<(), String> {
        let key = LedgerKey::new(scope, key);
        let begun = answered(self.store.begin(key.clone(), 99))?.map_err(|error| error.to_string())?;
        let Begin::Go { token, .. } = begun else { return Err(format!("{key} was refused: {begun:?}")) };
        // Without an end it goes on, or died.
        if let Some(end) = end {
            answered(self.store.end(key, token, end))?.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Every key a query means, page by page.
    fn keys(&self, mut query: LedgerQuery) -> Result<Vec<String>, String> {
        let mut keys = Vec::new();
        for _ in 0..100 {
            let page = done(self.store.page(query.clone()))?;
            if page.entries.len() > query.limit as usize {
                return Err(format!("{} entries on a page of {}", page.entries.len(), query.limit));
            }
            keys.extend(page.entries.into_iter().map(|entry| entry.key.key));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(keys),
            }
        }
        Err("the pages never end".to_owned())
    }
}

fn pages_of_a_status_show_each_key_once<S: LedgerBooks>(bench: &Bench<S>) -> Result<(), String> {
    let failed = End::Failed { next_at: Some(bench.time.now() + seconds(60)) };
    for (n, end) in [End::Ok, failed, End::Gone].into_iter().cycle().take(21).enumerate() {
        bench.call("fetch", &format!("{n:02}"), Some(end))?;
    }
    bench.call("store", "99", Some(End::Ok))?;
    let of = |offset: usize| (0..7).map(|n| format!("{:02}", n * 3 + offset)).collect::<Vec<_>>();
    for limit in [1, 3, 7, 100] {
        let query = LedgerQuery::of("fetch").limit(limit);
        same("all", bench.keys(query.clone())?, (0..21).map(|n| format!("{n:02}")).collect())?;
        for (status, keys) in [(LedgerStatus::Ok, of(0)), (LedgerStatus::Open, of(1)), (LedgerStatus::Gone, of(2))] {
            same(status.as_str(), bench.keys(query.clone().status(status))?, keys)?;
        }
    }
    let whole = done(bench.store.page(LedgerQuery::of("fetch").limit(21)))?;
    same("behind the last key", whole.next, None)?;
    let page = done(bench.store.page(LedgerQuery::of("fetch").status(LedgerStatus::Open).limit(1)))?;
    same(
        "what the page shows",
        page.entries.first().and_then(|entry| entry.next_at),
        Some(bench.time.now() + seconds(60)),
    )
}

fn keys_at_their_cap_are_found<S: LedgerBooks>(bench: &Bench<S>) -> Result<(), String> {
    for (key, calls) in [("a", 1), ("b", 3), ("c", 2), ("d", 4)] {
        for _ in 0..calls {
            bench.call("fetch", key, None)?;
        }
    }
    bench.call("fetch", "d", Some(End::Ok))?;
    let query = LedgerQuery::of("fetch").attempts_at_least(3);
    same("often tried", bench.keys(query.clone())?, vec!["b".to_owned(), "d".to_owned()])?;
    same("and open", bench.keys(query.status(LedgerStatus::Open).limit(1))?, vec!["b".to_owned()])
}

fn counts_add_up_to_all_keys<S: LedgerBooks>(bench: &Bench<S>) -> Result<(), String> {
    same("nothing", done(bench.store.counts("fetch".to_owned()))?.total(), 0)?;
    for (key, end) in [("a", Some(End::Ok)), ("b", Some(End::Gone)), ("c", None), ("d", None), ("e", Some(End::Ok))] {
        bench.call("fetch", key, end)?;
    }
    bench.call("store", "a", None)?;
    let counts = done(bench.store.counts("fetch".to_owned()))?;
    same("counts", (counts.open, counts.ok, counts.gone), (2, 2, 1))
}

fn scopes_are_listed<S: LedgerBooks>(bench: &Bench<S>) -> Result<(), String> {
    for scope in ["store", "fetch", "store", ""] {
        bench.call(scope, "a", None)?;
    }
    same("scopes", done(bench.store.scopes())?, ["", "fetch", "store"].map(str::to_owned).to_vec())
}

fn the_empty_key_is_on_the_first_page<S: LedgerBooks>(bench: &Bench<S>) -> Result<(), String> {
    for key in ["", "a"] {
        bench.call("fetch", key, None)?;
    }
    same("keys", bench.keys(LedgerQuery::of("fetch").limit(1))?, vec![String::new(), "a".to_owned()])
}
