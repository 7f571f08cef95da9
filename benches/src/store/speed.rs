//! Parking, claiming and finishing beside bare SQLite. The two take turns, so that a busy machine slows both.

use std::path::Path;
use std::time::{Duration, Instant};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Finish, ReplayOutcome,
};
use tokio::runtime::{Builder, Runtime};

use super::letters::letter;
use super::raw::Raw;
use super::report::Report;
use crate::table::median;

pub(crate) fn measure(directory: &Path, rounds: usize, report: &mut Report) {
    let runtime = Builder::new_current_thread().build().unwrap();
    for (callers, count) in [(64, 1_920), (1, 200)] {
        let pair = Pair::open(directory, &format!("park{callers}"));
        let (ratios, speeds) = pair.park(&runtime, rounds, callers, count);
        let (what, goal) = match callers {
            1 => ("a lone park: raw time by store time", 1.0 / 1.3),
            _ => ("park with 64 callers: raw time by store time", 0.8),
        };
        report.at_least(what, median(ratios), goal, &speeds);
    }
    let pair = Pair::open(directory, "replay");
    let (ratios, speeds) = pair.replay(&runtime, rounds);
    report.at_least("claim and finish by 50: raw time by store time", median(ratios), 0.7, &speeds);
}

struct Pair {
    raw: Raw,
    store: SqliteStore,
}

impl Pair {
    fn open(directory: &Path, name: &str) -> Self {
        let raw = Raw::open(&directory.join(format!("{name}-raw.db")));
        let store = SqliteStore::options(directory.join(format!("{name}.db"))).reserve(false).open().unwrap();
        Self { raw, store }
    }

    fn park(&self, runtime: &Runtime, rounds: usize, callers: usize, count: usize) -> (Vec<f64>, String) {
        let mut both = Both::default();
        for round in 0..=rounds {
            let letters = letters(round, count);
            let bare = timed(|| letters.chunks(callers).for_each(|batch| self.raw.park(batch)));
            let ours = through_the_store(runtime, &self.store, callers, letters);
            both.add(round, bare, ours);
        }
        both.done(rounds * count)
    }

    fn replay(&self, runtime: &Runtime, rounds: usize) -> (Vec<f64>, String) {
        const BATCH: usize = 50;
        const BATCHES: usize = 10;
        let all = letters(0, (rounds + 1) * BATCH * BATCHES);
        all.chunks(512).for_each(|batch| self.raw.park(batch));
        through_the_store(runtime, &self.store, 512, all);
        let mut both = Both::default();
        for round in 0..=rounds {
            let (mut bare, mut ours) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..BATCHES {
                bare += timed(|| self.raw.replay(BATCH));
                ours += timed(|| runtime.block_on(replay(&self.store, BATCH)));
            }
            both.add(round, bare, ours);
        }
        both.done(rounds * BATCH * BATCHES)
    }
}

/// Times of the two, round by round; the first round only warms up.
#[derive(Default)]
struct Both {
    ratios: Vec<f64>,
    raw: f64,
    store: f64,
}

impl Both {
    fn add(&mut self, round: usize, raw: Duration, store: Duration) {
        if round > 0 {
            self.ratios.push(raw.as_secs_f64() / store.as_secs_f64());
            self.raw += raw.as_secs_f64();
            self.store += store.as_secs_f64();
        }
    }

    fn done(self, letters: usize) -> (Vec<f64>, String) {
        let letters = f64::from(u32::try_from(letters).unwrap());
        let speeds = format!("store {:.0}/s, raw {:.0}/s", letters / self.store, letters / self.raw);
        (self.ratios, speeds)
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn letters(round: usize, count: usize) -> Vec<DeadLetter> {
    (0..count).map(|n| letter(&format!("{round}-{n}"))).collect()
}

/// Callers as a program has them: tasks that each wait for their own answer.
fn through_the_store(runtime: &Runtime, store: &SqliteStore, callers: usize, letters: Vec<DeadLetter>) -> Duration {
    let mut shares: Vec<Vec<DeadLetter>> = (0..callers).map(|_| Vec::new()).collect();
    for (n, letter) in letters.into_iter().enumerate() {
        shares[n % callers].push(letter);
    }
    runtime.block_on(async {
        let start = Instant::now();
        let tasks: Vec<_> = shares
            .into_iter()
            .map(|share| {
                let store = store.clone();
                tokio::spawn(async move {
                    for letter in share {
                        assert!(store.submit(letter).await.is_kept());
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        start.elapsed()
    })
}

/// Claims so many letters at once and finishes each of them by itself, all at the same time.
async fn replay(store: &SqliteStore, count: usize) {
    let mut request = ClaimRequest::new(["fetch"], "bench");
    request.limit = u32::try_from(count).unwrap();
    let claimed = store.claim(request, Actor::new("bench", "")).await.unwrap();
    assert_eq!(claimed.len(), count);
    let tasks: Vec<_> = claimed
        .into_iter()
        .map(|claimed| {
            let store = store.clone();
            let result = Finish::new(claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered);
            tokio::spawn(async move { store.finish(result, Actor::new("bench", "")).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}
