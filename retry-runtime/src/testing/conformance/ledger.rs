//! The attempt ledger.

use super::support::{Bench, Check, actor, answered, checks, demand, done, same, seconds, start};
use crate::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerStatus, LedgerToken, Refusal};

pub(super) fn checks<S: AttemptLedger>() -> Vec<Check<Bench<S>>> {
    checks![
        "B3.3" an_unknown_key_is_tried,
        "B3.3" ok_is_never_tried_again,
        "B3.3" gone_is_never_tried_again,
        "B3.3" a_failed_key_is_tried_up_to_the_cap,
        "11.7" a_call_is_counted_before_it_ends,
        "11.7" a_refusal_counts_nothing,
        "11.7" a_cap_raised_later_opens_the_key,
        "D17" ok_beats_gone_beats_open,
        "D17" a_failure_changes_open_keys_only,
        "D17" a_hint_too_long_is_kept,
        "D17" a_crowd_never_passes_the_cap,
        "D17" scopes_are_apart,
        "D17" a_reset_opens_the_key,
        "D17" an_end_from_before_a_reset_changes_nothing,
        "D17" an_end_of_an_unknown_key_changes_nothing,
        "D17" entries_are_listed_in_order,
        "B3.3" odd_keys_are_kept,
    ]
}

fn key(name: &str) -> LedgerKey {
    LedgerKey::new("fetch", name)
}

impl<S: AttemptLedger> Bench<S> {
    fn begin(&self, name: &str, cap: u32) -> Result<Begin, String> {
        answered(self.store.begin(key(name), cap))?.map_err(|error| error.to_string())
    }

    fn go(&self, name: &str) -> Result<LedgerToken, String> {
        match self.begin(name, 1_000)? {
            Begin::Go { token, .. } => Ok(token),
            other => Err(format!("{name} is not tried: {other:?}")),
        }
    }

    fn end(&self, name: &str, token: LedgerToken, end: End) -> Result<bool, String> {
        answered(self.store.end(key(name), token, end))?.map_err(|error| error.to_string())
    }

    fn entry(&self, name: &str) -> Result<LedgerEntry, String> {
        done(self.store.entry(key(name)))?.ok_or_else(|| format!("no entry for {name}"))
    }
}

const FAILED: End = End::Failed { next_at: None };

fn attempt_of(begin: Begin) -> Option<u32> {
    match begin {
        Begin::Go { attempt, .. } => Some(attempt),
        Begin::Refused(_) => None,
    }
}

fn an_unknown_key_is_tried<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    same("entry", done(bench.store.entry(key("a")))?, None)?;
    same("attempt", attempt_of(bench.begin("a", 3)?), Some(1))?;
    let entry = bench.entry("a")?;
    same("status", entry.status, LedgerStatus::Open)?;
    same("attempts", entry.attempts, 1)?;
    same("key", entry.key, key("a"))?;
    same("seen", (entry.first_seen, entry.last_seen), (start(), start()))
}

fn ok_is_never_tried_again<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let token = bench.go("a")?;
    same("changed", bench.end("a", token, End::Ok)?, true)?;
    bench.time.advance(seconds(86_400 * 400));
    same("begin", bench.begin("a", 1_000)?, Begin::Refused(Refusal::AlreadyOk))?;
    same("status", bench.entry("a")?.status, LedgerStatus::Ok)
}

fn gone_is_never_tried_again<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let token = bench.go("a")?;
    same("changed", bench.end("a", token, End::Gone)?, true)?;
    bench.time.advance(seconds(86_400 * 400));
    same("begin", bench.begin("a", 1_000)?, Begin::Refused(Refusal::Gone))?;
    same("status", bench.entry("a")?.status, LedgerStatus::Gone)
}

fn a_failed_key_is_tried_up_to_the_cap<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    for attempt in 1..=3 {
        let begin = bench.begin("a", 3)?;
        same("attempt", attempt_of(begin), Some(attempt))?;
        if let Begin::Go { token, .. } = begin {
            bench.end("a", token, FAILED)?;
        }
        bench.time.advance(seconds(3_600));
    }
    same("begin", bench.begin("a", 3)?, Begin::Refused(Refusal::CapReached { attempts: 3 }))
}

fn a_call_is_counted_before_it_ends<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    // No end ever comes: the process died.
    for attempt in 1..=3 {
        same("attempt", attempt_of(bench.begin("a", 3)?), Some(attempt))?;
        same("attempts", bench.entry("a")?.attempts, attempt)?;
    }
    same("begin", bench.begin("a", 3)?, Begin::Refused(Refusal::CapReached { attempts: 3 }))
}

fn a_refusal_counts_nothing<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    bench.begin("a", 1)?;
    bench.time.advance(seconds(1));
    let before = bench.entry("a")?;
    for _ in 0..3 {
        same("begin", bench.begin("a", 1)?, Begin::Refused(Refusal::CapReached { attempts: 1 }))?;
    }
    same("entry", bench.entry("a")?, before)
}

fn a_cap_raised_later_opens_the_key<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    bench.begin("a", 1)?;
    same("at the cap", attempt_of(bench.begin("a", 1)?), None)?;
    same("with a higher cap", attempt_of(bench.begin("a", 2)?), Some(2))?;
    same("with a cap of 0", attempt_of(bench.begin("new", 0)?), None)
}

fn ok_beats_gone_beats_open<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    // Two calls of one key at once: the ledger counts, it does not lock.
    let order = [
        ("ok, gone", End::Ok, End::Gone, LedgerStatus::Ok),
        ("gone, ok", End::Gone, End::Ok, LedgerStatus::Ok),
        ("ok, failed", End::Ok, FAILED, LedgerStatus::Ok),
        ("failed, ok", FAILED, End::Ok, LedgerStatus::Ok),
        ("gone, failed", End::Gone, FAILED, LedgerStatus::Gone),
        ("failed, gone", FAILED, End::Gone, LedgerStatus::Gone),
        ("failed, failed", FAILED, FAILED, LedgerStatus::Open),
    ];
    for (name, first, second, wanted) in order {
        let (one, other) = (bench.go(name)?, bench.go(name)?);
        bench.end(name, one, first)?;
        bench.end(name, other, second)?;
        same(name, bench.entry(name)?.status, wanted)?;
    }
    Ok(())
}

fn a_failure_changes_open_keys_only<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    for end in [End::Ok, End::Gone] {
        let (one, other) = (bench.go("a")?, bench.go("a")?);
        bench.end("a", one, end)?;
        let before = bench.entry("a")?;
        bench.time.advance(seconds(1));
        let late = End::Failed { next_at: Some(start() + seconds(9_999)) };
        same("changed", bench.end("a", other, late)?, false)?;
        same("entry", bench.entry("a")?, before)?;
        done(bench.store.reset(key("a"), actor()))?;
    }
    Ok(())
}

fn a_hint_too_long_is_kept<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let due = start() + seconds(600);
    let token = bench.go("a")?;
    bench.end("a", token, End::Failed { next_at: Some(due) })?;
    same("begin", bench.begin("a", 9)?, Begin::Refused(Refusal::NotBefore(due)))?;
    same("attempts", bench.entry("a")?.attempts, 1)?;
    bench.time.advance(seconds(600));
    same("once due", attempt_of(bench.begin("a", 9)?), Some(2))
}

fn a_crowd_never_passes_the_cap<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let crowd = || (0..10).map(|_| bench.begin("a", 17)).collect::<Result<Vec<_>, _>>();
    let begins = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(crowd)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a caller panicked".to_owned())?);
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let mut numbers: Vec<_> = begins.into_iter().flatten().filter_map(attempt_of).collect();
    numbers.sort_unstable();
    same("attempts let through", numbers, (1..=17).collect())?;
    same("attempts", bench.entry("a")?.attempts, 17)
}

fn scopes_are_apart<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let token = bench.go("a")?;
    bench.end("a", token, End::Ok)?;
    let other = answered(bench.store.begin(LedgerKey::new("store", "a"), 3))?.map_err(|error| error.to_string())?;
    same("the same key in another scope", attempt_of(other), Some(1))
}

fn a_reset_opens_the_key<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let token = bench.go("a")?;
    bench.end("a", token, End::Failed { next_at: Some(start() + seconds(600)) })?;
    let token = bench.go("b")?;
    bench.end("b", token, End::Gone)?;
    for name in ["a", "b"] {
        let entry = done(bench.store.reset(key(name), actor()))?.ok_or("reset found no entry")?;
        same("status", entry.status, LedgerStatus::Open)?;
        same("attempts", entry.attempts, 0)?;
        same("next_at", entry.next_at, None)?;
        same("attempt", attempt_of(bench.begin(name, 1)?), Some(1))?;
    }
    same("an unknown key", done(bench.store.reset(key("c"), actor()))?, None)
}

fn an_end_from_before_a_reset_changes_nothing<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    let old = bench.go("a")?;
    done(bench.store.reset(key("a"), actor()))?;
    same("changed", bench.end("a", old, End::Gone)?, false)?;
    same("status", bench.entry("a")?.status, LedgerStatus::Open)?;
    let new = bench.go("a")?;
    demand!(new != old, "the token did not change with the reset");
    same("changed", bench.end("a", new, End::Gone)?, true)
}

fn an_end_of_an_unknown_key_changes_nothing<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    same("changed", bench.end("a", LedgerToken(0), End::Ok)?, false)?;
    same("entry", done(bench.store.entry(key("a")))?, None)
}

fn entries_are_listed_in_order<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    for name in ["c", "a", "b", "d"] {
        bench.go(name)?;
    }
    answered(bench.store.begin(LedgerKey::new("store", "b2"), 3))?.map_err(|error| error.to_string())?;
    let names = |after: Option<&str>, limit| {
        let entries = done(bench.store.entries("fetch".to_owned(), after.map(str::to_owned), limit))?;
        Ok::<_, String>(entries.into_iter().map(|entry| entry.key.key).collect::<Vec<_>>())
    };
    same("the first page", names(None, 3)?, vec!["a".to_owned(), "b".to_owned(), "c".to_owned()])?;
    same("the second page", names(Some("c"), 3)?, vec!["d".to_owned()])
}

fn odd_keys_are_kept<S: AttemptLedger>(bench: &Bench<S>) -> Result<(), String> {
    for name in ["", "https://example.org/?q=%27&x=\u{1F980}", "a\u{0}b", "A", "a", " a"] {
        same(name, attempt_of(bench.begin(name, 3)?), Some(1))?;
        same(name, bench.entry(name)?.key, key(name))?;
    }
    Ok(())
}
