//! The daily counters.

use std::time::Duration;

use super::support::{Bench, Check, answered, checks, demand, done, same, start};
use crate::counters::{DailyCounters, Day, MAX_COUNT};

pub(super) fn checks<S: DailyCounters>() -> Vec<Check<Bench<S>>> {
    checks![
        "B3.5" counters_are_kept_apart,
        "B3.5" a_day_ends_at_midnight_utc,
        "B3.5" a_series_has_every_day,
        "B3.5" a_crowd_loses_no_count,
        "1.3" a_counter_stops_at_its_largest_value,
        "B3.5" a_count_is_seen_before_it_is_written,
        "B3.5" the_reply_and_its_absence_change_nothing,
        "B3.5" the_last_days_end_today,
    ]
}

const DAY: Duration = Duration::from_secs(86_400);

impl<S: DailyCounters> Bench<S> {
    fn add(&self, operation: &str, counter: &str, n: u64) -> Result<(), String> {
        let reply = self.store.add(operation, counter, n);
        answered(self.store.flush())?.map_err(|error| error.to_string())?;
        answered(reply)?.map_err(|error| error.to_string())
    }

    fn on(&self, operation: &str, day: Day) -> Result<Vec<(String, u64)>, String> {
        Ok(done(self.store.day(operation.to_owned(), day))?.into_iter().collect())
    }
}

fn counters_are_kept_apart<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    let today = Day::of(start());
    same("today", bench.store.today(), today)?;
    same("an empty day", bench.on("fetch", today)?, vec![])?;
    bench.add("fetch", "worker_ok", 1)?;
    bench.add("fetch", "fallback_bytes", 500_001)?;
    bench.add("fetch", "worker_ok", 2)?;
    bench.add("store", "worker_ok", 40)?;
    let wanted = vec![("fallback_bytes".to_owned(), 500_001), ("worker_ok".to_owned(), 3)];
    same("fetch", bench.on("fetch", today)?, wanted)?;
    same("store", bench.on("store", today)?, vec![("worker_ok".to_owned(), 40)])
}

fn a_day_ends_at_midnight_utc<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    let today = Day::of(start());
    let midnight = today.plus(1).start();
    bench.time.set(midnight - Duration::from_millis(1));
    bench.add("fetch", "n", 1)?;
    bench.time.set(midnight);
    bench.add("fetch", "n", 10)?;
    same("before midnight", bench.on("fetch", today)?, vec![("n".to_owned(), 1)])?;
    same("after midnight", bench.on("fetch", today.plus(1))?, vec![("n".to_owned(), 10)])
}

fn a_series_has_every_day<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    let first = Day::of(start());
    bench.add("fetch", "n", 1)?;
    bench.time.advance(DAY * 3);
    bench.add("fetch", "n", 4)?;
    bench.add("fetch", "other", 9)?;
    let series = done(bench.store.series("fetch".to_owned(), "n".to_owned(), first.plus(-1), first.plus(3)))?;
    let wanted: Vec<_> = [(-1, 0), (0, 1), (1, 0), (2, 0), (3, 4)].map(|(day, n)| (first.plus(day), n)).into();
    same("series", series, wanted)
}

fn a_crowd_loses_no_count<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    let crowd = || (0..25).map(|_| bench.store.add("fetch", "n", 2)).collect::<Vec<_>>();
    let replies = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(crowd)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a caller panicked".to_owned()));
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    for reply in replies.into_iter().flatten() {
        answered(reply)?.map_err(|error| error.to_string())?;
    }
    same("count", bench.on("fetch", Day::of(start()))?, vec![("n".to_owned(), 300)])
}

fn a_counter_stops_at_its_largest_value<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    for n in [u64::MAX, 1, u64::MAX] {
        bench.add("fetch", "n", n)?;
    }
    let found = bench.on("fetch", Day::of(start()))?;
    demand!(found == vec![("n".to_owned(), MAX_COUNT)], "found {found:?}, wanted {MAX_COUNT}");
    Ok(())
}

fn a_count_is_seen_before_it_is_written<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    let today = Day::of(start());
    bench.add("fetch", "n", 1)?;
    let reply = bench.store.add("fetch", "n", 2);
    same("at once", bench.on("fetch", today)?, vec![("n".to_owned(), 3)])?;
    let series = done(bench.store.series("fetch".to_owned(), "n".to_owned(), today, today))?;
    same("in the series", series, vec![(today, 3)])?;
    answered(reply)?.map_err(|error| error.to_string())?;
    same("written", bench.on("fetch", today)?, vec![("n".to_owned(), 3)])
}

fn the_reply_and_its_absence_change_nothing<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    for n in 1..=100 {
        drop(bench.store.add("fetch", "n", n));
    }
    answered(bench.store.flush())?.map_err(|error| error.to_string())?;
    answered(bench.store.flush())?.map_err(|error| error.to_string())?;
    same("count", bench.on("fetch", Day::of(start()))?, vec![("n".to_owned(), 5_050)])
}

fn the_last_days_end_today<S: DailyCounters>(bench: &Bench<S>) -> Result<(), String> {
    let first = Day::of(start());
    bench.add("fetch", "n", 1)?;
    bench.time.advance(DAY * 29);
    bench.add("fetch", "n", 4)?;
    let plot = done(bench.store.recent("fetch".to_owned(), "n".to_owned(), 30))?;
    same("days", plot.len(), 30)?;
    same("the first", plot.first().copied(), Some((first, 1)))?;
    same("the last", plot.last().copied(), Some((first.plus(29), 4)))?;
    same("all of them", plot.iter().map(|(_, n)| n).sum(), 5)?;
    same("no days", done(bench.store.recent("fetch".to_owned(), "n".to_owned(), 0))?, vec![])
}
