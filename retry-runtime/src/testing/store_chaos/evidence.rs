//! The witnesses' lines, sorted by what they are about.

use std::collections::{BTreeMap, BTreeSet};

use super::witness::{Event, Line};

/// A letter that was handed over.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) attempts: u64,
    /// `kind/job`
    pub(super) name: String,
}

/// What was told of one replay: a letter under one fence.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// How often the store handed it out.
    pub(super) claims: u64,
    /// The end of its lease; `None` where it was extended, which a clock that was set back may have made shorter.
    pub(super) until: Option<i64>,
    /// The result that was to be written, and its attempts.
    pub(super) result: Option<(String, u64)>,
    /// How often the store took a result.
    pub(super) taken: u64,
    pub(super) stale: u64,
    pub(super) released: bool,
    pub(super) keys: BTreeSet<String>,
}

/// What was told of one letter.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) replays: BTreeMap<u64, Replay>,
    /// How often an operator was about to take its lease away.
    pub(super) forced: u64,
    pub(super) restored: u64,
    pub(super) discarded: u64,
    pub(super) resolved: u64,
    /// The marks of edits.
    pub(super) edits: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) sent: BTreeMap<String, Sent>,
    /// Park id and the letter id it was answered with.
    pub(super) parked: BTreeMap<String, String>,
    pub(super) spilled: BTreeSet<String>,
    pub(super) lost: BTreeSet<String>,
    pub(super) letters: BTreeMap<String, Told>,
    pub(super) outlived: u64,
    pub(super) jumps: u64,
    /// Verbs that failed, and how often.
    pub(super) refused: BTreeMap<String, u64>,
    /// Contradictions that need no store to be seen.
    pub(super) contradictions: Vec<String>,
}

impl Evidence {
    pub(super) fn of(lines: Vec<Line>) -> Self {
        let mut evidence = Self::default();
        for line in lines {
            evidence.take(line);
        }
        evidence
    }

    fn take(&mut self, line: Line) {
        let Line { event, id, number, text } = line;
        match event {
            Event::Sent => drop(self.sent.insert(id, Sent { attempts: number, name: text })),
            Event::Parked => {
                let before = self.parked.insert(id.clone(), text.clone());
                if before.is_some_and(|before| before != text) {
                    self.contradictions.push(format!("D1: parking {id} was answered with two letters"));
                }
            }
            Event::Spilled => drop(self.spilled.insert(id)),
            Event::Lost => drop(self.lost.insert(format!("{id} {text}"))),
            Event::Met if id == "clock" => self.jumps += 1,
            Event::Met => self.outlived += 1,
            Event::Refused => *self.refused.entry(id).or_default() += 1,
            Event::Wrong => self.contradictions.push(format!("letter {id}, fence {number}: {text}")),
            Event::Forcing => self.letters.entry(id).or_default().forced += 1,
            Event::Restoring => self.letters.entry(id).or_default().restored += 1,
            Event::Discarding => self.letters.entry(id).or_default().discarded += 1,
            Event::Resolving => self.letters.entry(id).or_default().resolved += 1,
            Event::Editing => drop(self.letters.entry(id).or_default().edits.insert(text)),
            Event::Claimed
            | Event::Extending
            | Event::Ran
            | Event::Finishing
            | Event::Finished
            | Event::Stale
            | Event::Unknown
            | Event::Releasing => {
                let replay = self.letters.entry(id).or_default().replays.entry(number).or_default();
                replay.take(event, text);
            }
        }
    }
}

impl Replay {
    fn take(&mut self, event: Event, text: String) {
        match event {
            Event::Claimed => {
                self.claims += 1;
                self.until = text.parse().ok();
            }
            Event::Extending => self.until = None,
            Event::Ran => drop(self.keys.insert(text)),
            Event::Finishing => {
                let result = text.split_once(' ').map(|(outcome, n)| (outcome.to_owned(), n.parse().unwrap_or(0)));
                self.result = result;
            }
            Event::Finished => self.taken += 1,
            Event::Stale => self.stale += 1,
            Event::Releasing => self.released = true,
            _ => {}
        }
    }
}
