//! One letter before the judge: what the store keeps of it against what was told of it.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{Evidence, Told};
use super::report::Report;
use super::work::payload;
use crate::dead_letter::{AttemptOutcome, HistoryEntry, LetterDetail, LetterState, Payload, to_millis};

/// Judges a letter; adds what it counts and what it finds to the report. Gives the parkings in its history.
pub(super) fn letter(detail: &LetterDetail, evidence: &Evidence, ends_by: i64, report: &mut Report) -> Vec<String> {
    let nothing = Told::default();
    let told = evidence.letters.get(&detail.row.letter_id).unwrap_or(&nothing);
    let mut trial = Trial { detail, told, broken: Vec::new() };
    trial.shape();
    if detail.history_cut > 0 {
        return trial.of_a_cut_history(evidence, report);
    }
    trial.parkings(evidence);
    trial.counts(evidence);
    trial.replays(ends_by);
    trial.claims();
    let reopened = trial.successes();
    let id = &detail.row.letter_id;
    report.broken.extend(trial.broken.into_iter().map(|what| format!("{what} (letter {id}, {})", detail.row.state)));
    report.reopened += reopened;
    report.late += detail.history.iter().filter(|entry| entry.late).count() as u64;
    report.crashes += u64::from(detail.row.crashes);
    parkings_of(detail)
}

fn parkings_of(detail: &LetterDetail) -> Vec<String> {
    detail.history.iter().filter_map(|entry| entry.park_id.map(|id| id.to_string())).collect()
}

struct Trial<'a> {
    detail: &'a LetterDetail,
    told: &'a Told,
    broken: Vec<String>,
}

impl Trial<'_> {
    fn demand(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(what());
        }
    }

    /// What was cut out of a history cannot be held against what was told: only the number of parkings is.
    fn of_a_cut_history(self, evidence: &Evidence, report: &mut Report) -> Vec<String> {
        let row = &self.detail.row;
        let answered = evidence.parked.iter().filter(|(_, letter)| **letter == row.letter_id).map(|(id, _)| id.clone());
        let mut known: BTreeSet<String> = answered.collect();
        known.extend(parkings_of(self.detail));
        if row.parkings < known.len() as u64 {
            report.broken.push(format!(
                "D1: {} parkings counted, {} known (letter {})",
                row.parkings,
                known.len(),
                row.letter_id
            ));
        }
        report.broken.extend(self.broken);
        report.cut += 1;
        known.into_iter().collect()
    }

    /// The replay's entries that count: with their fences, in the order of recording.
    fn effective(&self) -> impl Iterator<Item = (u64, &HistoryEntry)> {
        self.detail.history.iter().filter(|entry| !entry.late).filter_map(|entry| Some((entry.fence?, entry)))
    }

    /// S1: what belongs together is there together.
    fn shape(&mut self) {
        let row = self.detail.row.clone();
        self.demand(row.state.is_closed() == row.closed_at.is_some(), || {
            "S1: closed without a time, or open with one".into()
        });
        let replaying = row.state == LetterState::Replaying;
        self.demand(replaying == row.lease_until.is_some(), || {
            "S1: a lease without a replay, or a replay without".into()
        });
        self.demand(replaying == row.owner.is_some(), || "S1: an owner without a replay, or a replay without".into());
        let worn = row.replays >= row.max_replays || row.crashes >= row.max_crashes;
        let abandoned = row.state == LetterState::Abandoned;
        self.demand(!abandoned || worn, || "D13: abandoned with an allowance left".into());
    }

    /// D1, D2: every parking is of this job, was sent, and counts once.
    fn parkings(&mut self, evidence: &Evidence) {
        let row = self.detail.row.clone();
        let name = format!("{}/{}", row.kind, row.job_id);
        let mut known = BTreeSet::new();
        for id in parkings_of(self.detail) {
            let sent = evidence.sent.get(&id);
            self.demand(sent.is_some_and(|sent| sent.name == name), || format!("D2: parking {id} is of another job"));
            self.demand(known.insert(id.clone()), || format!("D1: parking {id} counts twice"));
        }
        let counted = row.parkings;
        self.demand(counted == known.len() as u64, || format!("D1: {counted} parkings counted, {} known", known.len()));
        if let Payload::Json(json) = &self.detail.payload {
            let sent = json.split("\"sent\":\"").nth(1).and_then(|rest| rest.get(..36)).unwrap_or_default();
            let whole = (known.contains(sent) || self.told.edits.contains(sent)) && *json == payload(&row.job_id, sent);
            self.demand(whole, || format!("D3: the payload is not one that was sent: {json:.100}"));
        } else {
            self.broken.push("D3: the payload is gone".to_owned());
        }
    }

    /// D13, D20: replays, crashes and attempts are what was reported.
    fn counts(&mut self, evidence: &Evidence) {
        let row = self.detail.row.clone();
        let of = |crashed: bool| {
            self.effective().filter(move |(_, entry)| (entry.outcome == AttemptOutcome::Crashed) == crashed)
        };
        let (results, crashes) = (of(false).count(), of(true).count());
        let sent: BTreeSet<String> = parkings_of(self.detail).into_iter().collect();
        let parked: u64 = sent.iter().filter_map(|id| evidence.sent.get(id)).map(|sent| sent.attempts).sum();
        let reported = |fence: &u64| self.told.replays.get(fence).and_then(|replay| replay.result.as_ref());
        let replayed: u64 = of(false).filter_map(|(fence, _)| reported(&fence)).map(|(_, attempts)| attempts).sum();
        let attempts = parked + replayed + crashes as u64;
        self.demand(row.replays as usize == results, || {
            format!("D13: {} replays counted, {results} recorded", row.replays)
        });
        self.demand(row.crashes as usize == crashes, || {
            format!("D13: {} crashes counted, {crashes} recorded", row.crashes)
        });
        self.demand(row.attempts == attempts, || {
            format!("D20: {} attempts counted, {attempts} reported", row.attempts)
        });
    }

    /// S1: each fence ends once, by the result that was told of it, or by a crash after its lease.
    fn replays(&mut self, ends_by: i64) {
        let mut ended: BTreeMap<u64, AttemptOutcome> = BTreeMap::new();
        let mut found = Vec::new();
        for (fence, entry) in self.effective() {
            let (outcome, at) = (entry.outcome, to_millis(entry.at));
            let told = self.told.replays.get(&fence);
            if let Some(before) = ended.insert(fence, outcome) {
                found.push(format!("S1: fence {fence} ended twice: {} and {}", before.as_str(), outcome.as_str()));
            }
            if at > ends_by {
                found.push(format!("fence {fence} ended later than any clock ever said"));
            }
            if outcome == AttemptOutcome::Crashed {
                if told.and_then(|told| told.until).is_some_and(|until| at <= until) {
                    found.push(format!("D15: fence {fence} was taken back while its lease ran"));
                }
                if told.is_some_and(|told| told.taken > 0) {
                    found.push(format!("S1: the result of fence {fence} was taken, and it crashed"));
                }
            } else if told.and_then(|told| told.result.as_ref()).is_none_or(|(told, _)| told != outcome.as_str()) {
                found.push(format!("S1: fence {fence} has a result that nobody sent: {}", outcome.as_str()));
            }
        }
        for (fence, replay) in &self.told.replays {
            let has = |late: bool| {
                let entries = self.detail.history.iter().filter(|entry| entry.fence == Some(*fence));
                entries.filter(|entry| entry.late == late && entry.outcome != AttemptOutcome::Crashed).count() as u64
            };
            if replay.taken > has(false) {
                found.push(format!(
                    "S1: {} results of fence {fence} were taken, {} recorded",
                    replay.taken,
                    has(false)
                ));
            }
            if replay.stale > has(true) {
                found.push(format!("S1: {} late results of fence {fence}, {} recorded", replay.stale, has(true)));
            }
        }
        self.broken.extend(found);
    }

    /// S1, D11: each fence is handed out once, runs under the letter's key, and comes to an end.
    fn claims(&mut self) {
        let row = self.detail.row.clone();
        let ended: BTreeSet<u64> = self.effective().map(|(fence, _)| fence).collect();
        let keys: BTreeSet<String> =
            (1..=self.detail.revisions).map(|revision| format!("{}.{revision}", row.letter_id)).collect();
        let mut found = Vec::new();
        let mut open = 0;
        for (fence, replay) in &self.told.replays {
            if replay.claims > 1 {
                found.push(format!("S1: fence {fence} was handed out {} times", replay.claims));
            }
            if *fence > row.fence {
                found.push(format!("S1: fence {fence} was handed out, the letter has fence {}", row.fence));
            }
            if !replay.keys.is_subset(&keys) || replay.keys.len() > 1 {
                found.push(format!("D11: fence {fence} ran under {:?}", replay.keys));
            }
            if !ended.contains(fence) && !replay.released {
                open += 1;
            }
        }
        if open > self.told.forced {
            let forced = self.told.forced;
            found.push(format!(
                "D13: {open} replays have no end, {forced} were taken away by hand: crashes not counted"
            ));
        }
        self.broken.extend(found);
    }

    /// B1.8: a success closes the letter until the job fails again; then the fence is raised. Gives how often it was opened
    /// again.
    fn successes(&mut self) -> u64 {
        // A parking that came during the replay that succeeded leaves the letter open. The history does not say when the
        // replay began: only the parking without which it could not have begun surely came before. Where there are more,
        // nothing is said.
        let mut reopened = 0;
        let mut closed_at: Option<u64> = None;
        let mut parked_since = false;
        let mut parked = 0_u32;
        let mut needed = 1;
        let mut found = Vec::new();
        for entry in &self.detail.history {
            let Some(fence) = entry.fence else {
                parked += 1;
                if closed_at.is_some() && !parked_since {
                    reopened += 1;
                }
                parked_since = true;
                continue;
            };
            if entry.late {
                continue;
            }
            if let Some(success) = closed_at.take() {
                needed = 1;
                if !parked_since {
                    found.push(format!(
                        "B1.8: recovered by fence {success}, and replayed by fence {fence} without a new failure"
                    ));
                } else if fence < success + 2 {
                    found
                        .push(format!("D2: recovered by fence {success}, opened again, and replayed by fence {fence}"));
                }
            }
            if entry.outcome == AttemptOutcome::Succeeded && parked <= needed {
                closed_at = Some(fence);
            }
            (parked, needed) = (0, 0);
            parked_since = false;
        }
        let last = self.effective().last().map(|(_, entry)| entry.outcome);
        let state = self.detail.row.state;
        let (resolved, discarded) = (self.told.resolved > 0, self.told.discarded > 0);
        if state == LetterState::Recovered && last != Some(AttemptOutcome::Succeeded) && !resolved {
            found.push("S1: recovered without a success at the end".to_owned());
        }
        if state == LetterState::Discarded && last != Some(AttemptOutcome::Gone) && !discarded {
            found.push("S1: discarded without an answer that says so".to_owned());
        }
        if closed_at.is_some() && !parked_since && state != LetterState::Recovered {
            found.push("B1.8: recovered, and open again without a new failure".to_owned());
        }
        if self.told.restored > 0 {
            // By hand a closed letter is opened again at any time.
            found.retain(|found| !found.starts_with("B1.8"));
        }
        self.broken.extend(found);
        reopened
    }
}
