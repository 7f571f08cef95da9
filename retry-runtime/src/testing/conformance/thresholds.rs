//! Thresholds of daily counters.

use std::time::Duration;

use super::support::{Bench, Check, actor, answered, attempt, checks, demand, done, refused, same, start};
use crate::counters::{Day, Degraded, MAX_COUNT, Thresholds};
use crate::error::StoreErrorKind;

pub(super) fn checks<S: Thresholds>() -> Vec<Check<Bench<S>>> {
    checks![
        "B3.5" only_more_than_the_threshold_is_degraded,
        "B3.5" each_day_is_judged_by_itself,
        "B3.5" a_threshold_is_moved_and_taken_away,
        "B3.5" counters_that_are_known_are_listed,
        "D22" a_threshold_that_is_never_passed_is_refused,
    ]
}

impl<S: Thresholds> Bench<S> {
    fn set(&self, operation: &str, counter: &str, above: u64) -> Result<(), String> {
        let set = done(self.store.set_threshold(operation.to_owned(), counter.to_owned(), above, actor()))?;
        same("what was set", (set.operation.as_str(), set.counter.as_str(), set.above), (operation, counter, above))?;
        same("by whom", set.set_by, actor().name)?;
        same("when", set.set_at, self.time.now())
    }

    fn tally(&self, operation: &str, counter: &str, n: u64) -> Result<(), String> {
        let reply = self.store.add(operation, counter, n);
        answered(self.store.flush())?.map_err(|error| error.to_string())?;
        answered(reply)?.map_err(|error| error.to_string())
    }

    fn degraded(&self, day: Day) -> Result<Vec<(String, String, u64, u64)>, String> {
        let found = done(self.store.degraded(day))?;
        let of_day = |Degraded { operation, counter, day: on, value, above }| {
            (on == day).then_some((operation, counter, value, above)).ok_or_else(|| format!("{on} instead of {day}"))
        };
        found.into_iter().map(of_day).collect()
    }
}

fn only_more_than_the_threshold_is_degraded<S: Thresholds>(bench: &Bench<S>) -> Result<(), String> {
    let today = Day::of(start());
    bench.set("archive", "fallback_bytes", 500_000)?;
    same("without a count", bench.degraded(today)?, vec![])?;
    bench.tally("archive", "fallback_bytes", 500_000)?;
    bench.tally("archive", "worker_ok", 9_999_999)?;
    bench.tally("other", "fallback_bytes", 9_999_999)?;
    same("at the threshold", bench.degraded(today)?, vec![])?;
    // Not yet written counts too.
    drop(bench.store.add("archive", "fallback_bytes", 1));
    let wanted = vec![("archive".to_owned(), "fallback_bytes".to_owned(), 500_001, 500_000)];
    same("above it", bench.degraded(today)?, wanted)
}

fn each_day_is_judged_by_itself<S: Thresholds>(bench: &Bench<S>) -> Result<(), String> {
    let today = Day::of(start());
    bench.set("archive", "failed", 10)?;
    bench.tally("archive", "failed", 9)?;
    bench.time.advance(Duration::from_secs(86_400));
    bench.tally("archive", "failed", 11)?;
    same("the first day", bench.degraded(today)?.len(), 0)?;
    same("the second day", bench.degraded(today.plus(1))?.len(), 1)
}

fn a_threshold_is_moved_and_taken_away<S: Thresholds>(bench: &Bench<S>) -> Result<(), String> {
    let today = Day::of(start());
    bench.set("b", "n", 5)?;
    bench.set("a", "z", 0)?;
    bench.set("a", "n", 1)?;
    bench.tally("b", "n", 6)?;
    same("degraded", bench.degraded(today)?.len(), 1)?;
    bench.time.advance(Duration::from_secs(1));
    bench.set("b", "n", 6)?;
    same("degraded after the move", bench.degraded(today)?.len(), 0)?;
    let known = done(bench.store.thresholds())?;
    let names: Vec<_> = known.iter().map(|at| (at.operation.as_str(), at.counter.as_str(), at.above)).collect();
    same("thresholds", names, vec![("a", "n", 1), ("a", "z", 0), ("b", "n", 6)])?;
    let gone = done(bench.store.remove_threshold("a".to_owned(), "n".to_owned(), actor()))?;
    same("the one taken away", gone.map(|gone| gone.above), Some(1))?;
    same("once more", done(bench.store.remove_threshold("a".to_owned(), "n".to_owned(), actor()))?, None)?;
    same("what is left", done(bench.store.thresholds())?.len(), 2)
}

fn counters_that_are_known_are_listed<S: Thresholds>(bench: &Bench<S>) -> Result<(), String> {
    let today = Day::of(start());
    bench.tally("b", "n", 1)?;
    bench.time.advance(Duration::from_secs(86_400));
    bench.tally("a", "z", 1)?;
    bench.tally("a", "n", 1)?;
    bench.tally("b", "n", 1)?;
    drop(bench.store.add("c", "unwritten", 1));
    let names = |from: Day, to: Day| done(bench.store.counters(from, to));
    let pairs = |of: &[(&str, &str)]| of.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    same("the first day", names(today, today)?, pairs(&[("b", "n")]))?;
    let all = pairs(&[("a", "n"), ("a", "z"), ("b", "n"), ("c", "unwritten")]);
    same("both days", names(today, today.plus(1))?, all)?;
    demand!(names(today.plus(2), today.plus(9))?.is_empty(), "counters of days that are not there yet");
    Ok(())
}

fn a_threshold_that_is_never_passed_is_refused<S: Thresholds>(bench: &Bench<S>) -> Result<(), String> {
    for above in [MAX_COUNT, u64::MAX] {
        let set = attempt(bench.store.set_threshold("a".to_owned(), "n".to_owned(), above, actor()))?;
        refused("a threshold", set, StoreErrorKind::Invalid)?;
    }
    same("thresholds", done(bench.store.thresholds())?.len(), 0)
}
