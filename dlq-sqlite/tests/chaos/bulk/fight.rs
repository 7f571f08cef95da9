//! Four runners and an operator, killed at any moment, at places in the library, or stopped for longer than a lease.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dlq_sqlite::failpoints::POINTS;
use retry_runtime::testing::store_chaos::Dice;
use rusqlite::Connection;

use super::lives::{LEASE, Life, OPERATOR};
use crate::support::child;

const RUNNERS: usize = 4;

/// An operation that is not over after so long is stuck.
const PATIENCE: Duration = Duration::from_secs(180);

/// Where runners die, besides anywhere.
pub(super) fn places() -> impl Iterator<Item = &'static str> {
    let of_runners = ["operation.claim.", "claim.", "finish.", "reap."];
    POINTS.iter().copied().filter(move |place| of_runners.iter().any(|name| place.starts_with(name)))
}

/// How lives ended, by place; `anywhere`, `anywhere (operator)`.
pub(super) type Kills = BTreeMap<String, u64>;

pub(super) struct Fight<'a> {
    pub(super) test: &'a str,
    pub(super) place: &'a Path,
    pub(super) op_id: &'a str,
    pub(super) seed: u64,
    /// So many lives are to be killed.
    pub(super) wanted: u64,
    pub(super) kills: &'a mut Kills,
    pub(super) stopped: &'a mut u64,
    pub(super) dice: Dice,
}

struct Running {
    child: Child,
    life: Life,
    since: Instant,
    /// It is killed when it has told so many bytes, or at that age.
    goal: u64,
    age: Duration,
    /// First it is stopped for longer than a lease, and then goes on for a moment.
    stops: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}

impl Fight<'_> {
    fn killed(&self) -> u64 {
        self.kills.values().sum()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.killed() >= self.wanted && places().all(|place| self.kills.contains_key(place))
    }

    /// Until the operation is over.
    pub(super) fn until_over(&mut self) {
        let begin = Instant::now();
        let mut lives = (0..RUNNERS).chain([OPERATOR]).map(|worker| self.start(worker, 0)).collect::<Vec<_>>();
        while !self.is_over() {
            assert!(begin.elapsed() < PATIENCE, "seed {}: not over after {PATIENCE:?}", self.seed);
            for running in &mut lives {
                let ended = match running.child.try_wait().unwrap() {
                    Some(status) => self.ended(&running.life, status),
                    None if !self.is_enough() && running.is_due() => self.end(running),
                    None => false,
                };
                if ended {
                    *running = self.start(running.life.worker, running.life.nth + 1);
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_over(&self) -> bool {
        let connection = Connection::open(self.place.join("jobs.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        let sql = "SELECT status IN ('done', 'cancelled') FROM op WHERE id = ?1";
        connection.query_row(sql, [self.op_id], |row| row.get(0)).unwrap()
    }

    fn start(&mut self, worker: usize, nth: u64) -> Running {
        let (place, op_id) = (self.place.to_owned(), self.op_id.to_owned());
        let life = Life { place, op_id, worker, nth, seed: self.seed };
        let mut command = child(&[], self.test, &life.to_text());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(life.stderr()).unwrap());
        let (mut goal, mut age) = (self.dice.below(1_500), Duration::from_millis(100 + self.dice.below(900)));
        let mut stops = false;
        if worker == OPERATOR {
            goal = u64::MAX;
        } else if !self.is_enough() {
            match self.dice.below(8) {
                0..=3 => {
                    // Where the fewest have died.
                    let fewest =
                        places().min_by_key(|at| (self.kills.get(*at).copied().unwrap_or(0), self.dice.below(100)));
                    let at = fewest.unwrap();
                    // What others left behind is found seldom: the chance is taken.
                    let nth = if at.starts_with("reap.") { 1 } else { 1 + self.dice.below(6) };
                    command.env("DLQ_FAILPOINTS", format!("{at}=kill:{nth}"));
                    (goal, age) = (3 * goal, 2 * age);
                }
                4 => {
                    let at = self.dice.pick(&places().collect::<Vec<_>>()).copied().unwrap();
                    let error = self.dice.pick(&["error", "busy", "full"]).unwrap();
                    command.env("DLQ_FAILPOINTS", format!("{at}={error}:{}", 1 + self.dice.below(6)));
                }
                5 => stops = true,
                _ => {}
            }
        }
        Running { child: command.spawn().unwrap(), life, since: Instant::now(), goal, age, stops }
    }

    /// Kills it, or stops it for a while first: then it lives on for a moment, and finds that others were faster.
    fn end(&mut self, running: &mut Running) -> bool {
        if std::mem::take(&mut running.stops) {
            *self.stopped += 1;
            signal(&running.child, "-STOP");
            let child = running.child.id().to_string();
            thread::spawn(move || {
                thread::sleep(LEASE * 2);
                drop(Command::new("kill").args(["-CONT", &child]).stderr(Stdio::null()).status());
            });
            (running.goal, running.age) = (u64::MAX, running.since.elapsed() + LEASE * 3);
            return false;
        }
        running.child.kill().unwrap();
        let status = running.child.wait().unwrap();
        self.ended(&running.life, status)
    }

    /// Counts how a life ended; `false` where nothing was left to do.
    fn ended(&mut self, life: &Life, status: ExitStatus) -> bool {
        if status.success() {
            return false;
        }
        let said = std::fs::read_to_string(life.stderr()).unwrap_or_default();
        let itself = said.lines().rev().find_map(|line| line.strip_prefix("died at "));
        assert!(itself.is_some() || status.code().is_none(), "seed {}: {status}: {said}", self.seed);
        let anywhere = if life.worker == OPERATOR { "anywhere (operator)" } else { "anywhere" };
        *self.kills.entry(itself.unwrap_or(anywhere).to_owned()).or_default() += 1;
        true
    }
}

impl Running {
    fn is_due(&self) -> bool {
        let told = std::fs::metadata(self.life.witness()).map_or(0, |file| file.len());
        told > self.goal || self.since.elapsed() > self.age
    }
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}
