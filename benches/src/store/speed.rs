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
        let both = pair.park(&runtime, rounds, callers, count);
        match callers {
            1 => both.tell("a lone park", (1.0 / 1.3, "a park in 1.3 raw commits"), report),
            _ => both.tell("park with 64 callers", (0.8, ""), report),
        }
    }
    let pair = Pair::open(directory, "replay");
    pair.replay(&runtime, rounds).tell("claim and finish by 50", (0.7, ""), report);
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

    fn park(&self, runtime: &Runtime, rounds: usize, callers: usize, count: usize) -> Both {
        let mut both = Both::default();
        for round in 0..=rounds {
            let letters = letters(round, count);
            let bare = timed(|| letters.chunks(callers).for_each(|batch| self.raw.park(batch)));
            let ours = through_the_store(runtime, &self.store, callers, letters);
            both.add((round, count), bare, ours);
        }
        both
    }

    fn replay(&self, runtime: &Runtime, rounds: usize) -> Both {
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
            both.add((round, BATCH * BATCHES), bare, ours);
        }
        both
    }
}

/// Times of the two, round by round; the first round only warms up.
#[derive(Default)]
struct Both {
    ratios: Vec<f64>,
    raw: f64,
    store: f64,
    letters: usize,
}

impl Both {
    fn add(&mut self, (round, letters): (usize, usize), raw: Duration, store: Duration) {
        if round > 0 {
            self.ratios.push(raw.as_secs_f64() / store.as_secs_f64());
            self.raw += raw.as_secs_f64();
            self.store += store.as_secs_f64();
            self.letters += letters;
        }
    }

    fn tell(self, what: &str, goal: (f64, &str), report: &mut Report) {
        let letters = f64::from(u32::try_from(self.letters).unwrap());
        let (ours, bare) = (letters / self.store, letters / self.raw);
        report.at_least(what, median(self.ratios), goal, &format!("store {ours:.0}/s, raw {bare:.0}/s"));
        report.beside(what, "the store, letters a second", ours.round());
        report.beside(what, "bare, letters a second", bare.round());
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
