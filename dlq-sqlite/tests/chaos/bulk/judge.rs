//! Holds what the processes told against what the file says, by a connection that knows nothing of this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;

/// What all lives told.
#[derive(Default)]
pub(super) struct Told {
    /// By letter and fence: how often a handler began, and how it ended.
    begun: BTreeMap<(String, i64), u32>,
    ended: BTreeMap<(String, i64), String>,
    discarding: BTreeSet<String>,
    again: BTreeSet<String>,
    later: BTreeSet<String>,
}

impl Told {
    pub(super) fn read(place: &Path) -> Self {
        let mut told = Self::default();
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if !path.file_name().unwrap().to_string_lossy().starts_with("witness-") {
                continue;
            }
            // A last line that is not whole was not told.
            let text = std::fs::read_to_string(path).unwrap();
            for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
                told.hear(&line.split(' ').collect::<Vec<_>>());
            }
        }
        told
    }

    fn hear(&mut self, words: &[&str]) {
        let at = |id: &str, fence: &str| (id.to_owned(), fence.parse().unwrap());
        match words {
            ["begin", id, fence, _job] => *self.begun.entry(at(id, fence)).or_default() += 1,
            ["end", id, fence, word] => drop(self.ended.insert(at(id, fence), (*word).to_owned())),
            ["discarding", id] => drop(self.discarding.insert((*id).to_owned())),
            ["again", id] => drop(self.again.insert((*id).to_owned())),
            ["later", job] => drop(self.later.insert((*job).to_owned())),
            ["refused", ..] => {}
            other => panic!("a witness says {other:?}"),
        }
    }

    fn is_ended(&self, id: &str, fence: i64, word: &str) -> bool {
        self.ended.get(&(id.to_owned(), fence)).is_some_and(|ended| ended == word)
    }
}

/// A letter as the file says.
struct Letter {
    id: String,
    job: String,
    state: String,
    fence: i64,
    replays: i64,
    crashes: i64,
    /// Its outcome as a member; `None` for no member.
    outcome: Option<String>,
    /// Its events by name, `recovered` apart from other results.
    events: BTreeMap<String, i64>,
    /// Recorded results that are not late, by outcome.
    results: BTreeMap<String, i64>,
}

fn pairs(connection: &Connection, sql: &str, seq: i64) -> BTreeMap<String, i64> {
    let mut statement = connection.prepare_cached(sql).unwrap();
    statement.query_map([seq], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn letters(connection: &Connection, op_id: &str) -> Vec<Letter> {
    let sql = "SELECT l.seq, l.id, l.job_id, l.state, l.fence, l.replays, l.crashes, i.outcome
               FROM letter l LEFT JOIN op_item i ON i.seq = l.seq AND i.op_id = ?1 ORDER BY l.seq";
    let events = "SELECT CASE WHEN what = 'replayed' AND after = 'recovered' THEN 'recovered' ELSE what END, count(*)
                  FROM event WHERE seq = ?1 GROUP BY 1";
    let results = "SELECT outcome, count(*) FROM attempt WHERE seq = ?1 AND late = 0 AND fence IS NOT NULL GROUP BY 1";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([op_id], |row| {
        let seq = row.get(0)?;
        Ok(Letter {
            id: row.get(1)?,
            job: row.get(2)?,
            state: row.get(3)?,
            fence: row.get(4)?,
            replays: row.get(5)?,
            crashes: row.get(6)?,
            outcome: row.get(7)?,
            events: pairs(connection, events, seq),
            results: pairs(connection, results, seq),
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Every rule that was broken, and the members by outcome.
pub(super) fn judge(place: &Path, op_id: &str, frozen: &BTreeSet<String>) -> (Vec<String>, BTreeMap<String, i64>) {
    let told = Told::read(place);
    let connection = Connection::open(place.join("jobs.db")).unwrap();
    let letters = letters(&connection, op_id);
    let mut broken = Vec::new();
    for letter in &letters {
        broken.extend(letter.wrong(&told).into_iter().map(|what| format!("letter {}: {what}", letter.describe())));
    }
    let members: BTreeSet<_> =
        letters.iter().filter(|letter| letter.outcome.is_some()).map(|letter| letter.job.clone()).collect();
    if &members != frozen {
        broken.push(format!("D21: {} are members, {} were frozen", members.len(), frozen.len()));
    }
    let jobs: BTreeSet<_> = letters.iter().map(|letter| &letter.job).collect();
    broken.extend(told.begun.iter().filter(|(_, n)| **n > 1).map(|(at, n)| format!("S2: {at:?} was begun {n} times")));
    let known: BTreeSet<_> = letters.iter().map(|letter| letter.id.as_str()).collect();
    let strange = told.begun.keys().filter(|(id, _)| !known.contains(id.as_str()));
    broken.extend(strange.map(|(id, _)| format!("S2: {id} was begun and is nowhere")));
    // The last one of a life may have been killed before it was handed over.
    let missing = told.later.iter().filter(|job| !jobs.contains(job)).count() as u64;
    let lives = std::fs::read_dir(place).unwrap().filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("witness-operator"))
    });
    if missing > lives.count() as u64 {
        broken.push(format!("11.1: {missing} later letters are missing"));
    }
    let counted = outcomes(&connection, "SELECT outcome, count(*) FROM op_item WHERE op_id = ?1 GROUP BY 1", op_id);
    let kept = outcomes(&connection, "SELECT outcome, n FROM op_count WHERE op_id = ?1 AND n <> 0", op_id);
    if counted != kept || counted.values().sum::<i64>() != i64::try_from(frozen.len()).unwrap() {
        broken.push(format!("D21: {counted:?} counted, {kept:?} kept, {} frozen", frozen.len()));
    }
    broken.extend(one_runner(&connection, op_id));
    (broken, counted)
}

fn outcomes(connection: &Connection, sql: &str, op_id: &str) -> BTreeMap<String, i64> {
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map([op_id], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

impl Letter {
    fn describe(&self) -> String {
        let Self { job, state, fence, outcome, events, results, .. } = self;
        format!("{job} ({state}, fence {fence}, {outcome:?}, {events:?}, {results:?})")
    }

    fn event(&self, name: &str) -> i64 {
        self.events.get(name).copied().unwrap_or(0)
    }

    fn wrong(&self, told: &Told) -> Vec<&'static str> {
        let mut wrong = Vec::new();
        let mut holds = |holds: bool, rule| {
            if !holds {
                wrong.push(rule);
            }
        };
        holds(self.state != "replaying", "D15: it is stuck");
        let recovered = self.event("recovered");
        let ended = self.event("lease_expired") + self.event("released") + self.event("replayed") + recovered;
        holds(self.event("claimed") == ended, "S1: each replay ends once");
        holds(self.event("lease_expired") >= self.crashes, "D13: a crash is a lease that ran out");
        let reopened = self.event("reopened");
        holds(self.fence == self.event("claimed") + reopened, "S1: the fence rises with each claim and each reopening");
        let begun = told.begun.keys().filter(|(id, _)| *id == self.id);
        holds(begun.clone().all(|(_, fence)| *fence <= self.fence), "S1: no handler has a fence that was not given");
        holds(i64::try_from(begun.count()).unwrap() <= self.event("claimed"), "S2: no handler without a claim");
        holds(self.results.get("succeeded").copied().unwrap_or(0) == recovered, "S1: a recovery is recorded once");
        holds(reopened == 0 || told.again.contains(&self.id), "D2: who reopened it?");
        let Some(outcome) = &self.outcome else {
            // B18: what was parked after the freeze is left alone.
            holds(self.job.starts_with("later-") && told.later.contains(&self.job), "B18: no member, and not later");
            holds(self.fence == 0 && self.event("claimed") == 0 && self.state == "parked", "B18: it was taken");
            return wrong;
        };
        // The fence of the replay that ended it.
        let last = self.fence - reopened;
        let is_open = reopened > 0 && self.state == "parked";
        // The operator gives up what it saw pending; a replay may have come first, and its outcome stays.
        let is_given_up =
            self.state == "discarded" && self.event("discarded") == 1 && told.discarding.contains(&self.id);
        match outcome.as_str() {
            "recovered" => {
                holds(recovered == 1, "B27: recovered once");
                holds(self.state == "recovered" || is_open || (reopened > 0 && is_given_up), "S1: it is recovered");
                holds(told.is_ended(&self.id, last, "ok"), "S1: a handler said so, with that fence");
            }
            "gone" => {
                holds(self.state == "discarded" && recovered == 0, "S1: it is discarded");
                holds(told.is_ended(&self.id, last, "gone"), "S1: a handler said so, with that fence");
            }
            "still_failing" => {
                holds(self.state == "parked" || is_given_up, "D12: it is parked again");
                holds(recovered == 0 && self.replays == 1, "D12: it failed once");
                holds(told.is_ended(&self.id, last, "failed"), "S1: a handler said so, with that fence");
            }
            "abandoned" => {
                holds((self.state == "abandoned" || is_given_up) && self.crashes >= 3, "D13: three crashes");
            }
            "changed" => {
                holds(recovered == 0 && self.event("discarded") == 1, "D21: changed is what somebody else was at");
                holds(told.discarding.contains(&self.id), "D21: the operator discarded it");
            }
            _ => holds(false, "D21: that is no final outcome"),
        }
        wrong
    }
}

/// D21: what is claimed for the operation is claimed by the runner that has it.
fn one_runner(connection: &Connection, op_id: &str) -> Vec<String> {
    let sql = "SELECT what, coalesce(detail, '') FROM event WHERE op_id = ?1 ORDER BY id";
    let mut statement = connection.prepare(sql).unwrap();
    let events = statement.query_map([op_id], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let (mut has, mut broken) = (None, Vec::new());
    for (what, detail) in events.map(Result::<(String, String), _>::unwrap) {
        match what.as_str() {
            "operation_running" => has = Some(detail),
            "operation_paused" | "operation_pending" | "operation_done" => has = None,
            "claimed" if has.as_ref() != Some(&detail) => {
                broken.push(format!("D21: {detail} claimed a member, {has:?} has the operation"));
            }
            _ => {}
        }
    }
    broken
}
