//! What the author of a store provides.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::dice::Dice;
use super::plan::Fault;
use crate::dead_letter::{DeadLetterStore, StoreClock};
use crate::error::StoreError;

/// How workers live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Workers {
    /// As tasks of one thread, which share one store. The seed decides who moves when and the clock is the run's own, so a
    /// run repeats exactly where the store's futures wait for nothing. A kill drops the task where it stands.
    Tasks,
    /// As processes that each open the store, killed by SIGKILL. They are the test itself, started again.
    Processes,
}

/// A store in a place where workers find it, and what can be done to it.
///
/// `place` is a directory of this run, empty at first, gone after it passed. Whatever the store keeps must be in it, or be
/// named after it: worker processes know each other by it.
pub trait Harness {
    /// The store.
    type Store: DeadLetterStore;

    /// Tasks by default.
    fn workers(&self) -> Workers {
        Workers::Tasks
    }

    /// Opens the store on this clock: once for each life of a worker process and once for the judge, or once for all tasks.
    /// A lock it waits for, and everything else it does in real time, should be short.
    ///
    /// # Errors
    /// What the store says. A worker that cannot open tries again; a judge that cannot is a failed run.
    fn open(&self, place: &Path, clock: StoreClock) -> Result<Self::Store, StoreError>;

    /// Makes the place ready, before the first worker.
    ///
    /// # Errors
    /// Why it cannot be done; the run fails.
    fn prepare(&self, place: &Path) -> Result<(), String> {
        let _ = place;
        Ok(())
    }

    /// Changes the command of one life of a worker process: a failpoint in its environment, for example. Says whether it is
    /// to end itself: it is left more time then, and counted by the NAME that it says on stderr in a line `died at NAME`.
    /// `killed` is how many did so far, by name.
    fn arm(&self, command: &mut Command, place: &Path, killed: &BTreeMap<String, u64>, dice: &mut Dice) -> bool {
        let _ = (command, place, killed, dice);
        false
    }

    /// Whether enough lives ended where they should have. If not, the run goes on, to twice as many kills as planned at most.
    fn is_enough(&self, killed: &BTreeMap<String, u64>) -> bool {
        let _ = killed;
        true
    }

    /// A worker was killed. Tasks have no process that could take along what it had not yet made durable: a store that is to
    /// be tried for that forgets it here.
    fn killed(&self, place: &Path, store: Option<&Self::Store>) {
        let _ = (place, store);
    }

    /// Which of the faults that need the store's help can be inflicted here. The report says which were not. By default none.
    fn can(&self, fault: Fault, place: &Path) -> bool {
        let _ = (fault, place);
        false
    }

    /// Begins a fault, while workers work.
    ///
    /// # Errors
    /// Why it cannot be done; the run fails.
    fn begin(&self, fault: Fault, place: &Path) -> Result<(), String> {
        let _ = place;
        Err(format!("{fault}: this harness says it can and does not"))
    }

    /// Ends it: while workers work, or, for corruption, after all of them were killed.
    ///
    /// # Errors
    /// Why it cannot be done; the run fails.
    fn end(&self, fault: Fault, place: &Path) -> Result<(), String> {
        let _ = (fault, place);
        Ok(())
    }

    /// Brings home what the store keeps elsewhere for now (a spill, for example), before it is judged.
    ///
    /// # Errors
    /// Why it cannot be done; the run fails.
    fn settle(&self, place: &Path, store: &Self::Store) -> Result<(), String> {
        let _ = (place, store);
        Ok(())
    }

    /// Whether a parking, or a letter, that the store does not know is accounted for outside of it: in a spill file, or in a
    /// file that was set aside.
    fn is_elsewhere(&self, place: &Path, id: &str) -> bool {
        let _ = (place, id);
        false
    }

    /// Checks of the store's own, at the end, with no worker and no store open: that its file is whole.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self, place: &Path) -> Result<(), String> {
        let _ = place;
        Ok(())
    }

    /// Takes the place apart. Its directory is removed afterwards.
    fn clean(&self, place: &Path) {
        let _ = place;
    }
}
