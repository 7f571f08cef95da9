//! Examinations.

use std::time::Duration;

use super::support::{Bench, Check, LEASE, actor, checks, demand, done, failure, letter, same, seconds, usual_claim};
use crate::dead_letter::{
    Checkup, DeadLetterStore, Edit, Filter, Finding, LetterFacts, PageRequest, ReplayOutcome, Severity,
};

pub(super) fn checks<'a, S: DeadLetterStore>() -> Vec<Check<DoctorBench<'a, S>>> {
    checks![
        "S6" a_sound_store_has_nothing_worse_than_a_word,
        "A12" an_examination_changes_nothing,
        "S6" the_worst_finding_comes_first_and_says_what_to_do,
        "D13" abandoned_letters_are_found,
        "S1" a_lease_long_over_is_found,
        "D2" a_kind_without_a_handler_is_found,
        "S4" a_failure_in_the_future_is_found,
        "D9" altered_letters_are_found,
    ]
}

/// How a store of this type is examined.
pub(super) type Examine<'a, S> = &'a dyn Fn(&S, Checkup) -> Result<Vec<Finding>, String>;

/// A store under check, and its doctor.
pub(super) struct DoctorBench<'a, S> {
    pub(super) bench: Bench<S>,
    pub(super) examine: Examine<'a, S>,
}

impl<S> std::ops::Deref for DoctorBench<'_, S> {
    type Target = Bench<S>;

    fn deref(&self) -> &Bench<S> {
        &self.bench
    }
}

impl<S: DeadLetterStore> DoctorBench<'_, S> {
    fn examine(&self, checkup: Checkup) -> Result<Vec<Finding>, String> {
        (self.examine)(&self.bench.store, checkup)
    }

    /// The finding with this code.
    fn finding(&self, checkup: Checkup, code: &str) -> Result<Option<Finding>, String> {
        Ok(self.examine(checkup)?.into_iter().find(|finding| finding.code == code))
    }

    /// Not there before, there after.
    fn appears(&self, code: &str, provoke: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        for checkup in [Checkup::quick(), Checkup::full()] {
            let early = self.finding(checkup, code)?;
            demand!(early.is_none(), "found before there was anything to find: {early:?}");
        }
        provoke()?;
        for checkup in [Checkup::quick(), Checkup::full()] {
            let Some(finding) = self.finding(checkup, code)? else { return Err(format!("no finding `{code}`")) };
            demand!(finding.severity >= Severity::Warning, "`{code}` is only {}", finding.severity);
            demand!(!finding.advice.is_empty(), "`{code}` does not say what to do");
        }
        Ok(())
    }
}

fn a_sound_store_has_nothing_worse_than_a_word<S: DeadLetterStore>(bench: &DoctorBench<'_, S>) -> Result<(), String> {
    bench.park_job("a")?;
    let id = bench.park_job("b")?;
    bench.replay(&id, ReplayOutcome::Recovered)?;
    bench.park_job("c")?;
    bench.claim(usual_claim())?;
    for checkup in [Checkup::quick().handling(["fetch"]), Checkup::full().handling(["fetch"])] {
        let bad: Vec<_> =
            bench.examine(checkup)?.into_iter().filter(|finding| finding.severity > Severity::Info).collect();
        demand!(bad.is_empty(), "found {bad:?}");
    }
    Ok(())
}

fn an_examination_changes_nothing<S: DeadLetterStore>(bench: &DoctorBench<'_, S>) -> Result<(), String> {
    let open = bench.park_job("a")?;
    bench.park_job("b")?;
    bench.wear_out(&open)?;
    let all = || done(bench.store.list(Filter::all(), PageRequest::default()));
    let (before, summary) = (all()?, done(bench.store.summary())?);
    let detail = bench.detail(&open)?;
    for checkup in [Checkup::quick(), Checkup::full(), Checkup::quick()] {
        bench.examine(checkup)?;
    }
    same("letters", all()?, before)?;
    same("summary", done(bench.store.summary())?, summary)?;
    same("detail", bench.detail(&open)?, detail)
}

fn the_worst_finding_comes_first_and_says_what_to_do<S: DeadLetterStore>(
    bench: &DoctorBench<'_, S>,
) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.wear_out(&id)?;
    bench.park_job("b")?;
    let found = bench.examine(Checkup::quick().handling(["another"]))?;
    demand!(found.len() >= 2, "two faults, {} findings", found.len());
    demand!(found.is_sorted_by(|a, b| a.severity >= b.severity), "not sorted: {found:?}");
    let silent = found.iter().find(|finding| finding.severity > Severity::Info && finding.advice.is_empty());
    demand!(silent.is_none(), "nothing to do about {silent:?}");
    Ok(())
}

fn abandoned_letters_are_found<S: DeadLetterStore>(bench: &DoctorBench<'_, S>) -> Result<(), String> {
    let id = bench.park_job("a")?;
    bench.appears("abandoned", || bench.wear_out(&id).map(drop))
}

fn a_lease_long_over_is_found<S: DeadLetterStore>(bench: &DoctorBench<'_, S>) -> Result<(), String> {
    bench.park_job("a")?;
    bench.claim(usual_claim())?;
    bench.time.advance(LEASE + seconds(30));
    bench.appears("overdue_leases", || {
        bench.time.advance(LetterFacts::OVERDUE);
        Ok(())
    })
}

fn a_kind_without_a_handler_is_found<S: DeadLetterStore>(bench: &DoctorBench<'_, S>) -> Result<(), String> {
    for n in 0..3 {
        bench.park_job(&n.to_string())?;
    }
    let id = bench.park_job("other")?;
    bench.replay(&id, ReplayOutcome::Failed(failure()))?;
    let handled = bench.finding(Checkup::quick().handling(["fetch"]), "blocked")?;
    demand!(handled.is_none(), "a kind with a handler is blocked: {handled:?}");
    let Some(blocked) = bench.finding(Checkup::quick().handling(["new_name"]), "blocked")? else {
        return Err("letters of a kind without a handler are not found".to_owned());
    };
    same("subject", blocked.subject.as_str(), "fetch")?;
    demand!(blocked.message.contains('4'), "the number of letters is missing: {}", blocked.message);
    Ok(())
}

fn altered_letters_are_found<S: DeadLetterStore>(bench: &DoctorBench<'_, S>) -> Result<(), String> {
    bench.park_job("whole")?;
    let altered = |job| {
        let mut letter = letter(job, bench.time.now());
        letter.payload_altered = true;
        letter
    };
    bench.appears("altered", || {
        bench.park(altered("a"))?;
        bench.park(altered("b"))?;
        Ok(())
    })?;
    let finding = bench.finding(Checkup::quick(), "altered")?;
    let message = finding.map(|finding| finding.message).unwrap_or_default();
    demand!(message.contains('2'), "the number of letters is missing: {message}");
    // A letter that was edited is whole.
    for row in done(bench.store.list(Filter::all(), PageRequest::default()))?.rows {
        if row.payload_altered {
            let edit = Edit::new(row.letter_id, row.payload_revision, "{\"whole\":true}");
            done(bench.store.edit(edit, actor()))?;
        }
    }
    let finding = bench.finding(Checkup::full(), "altered")?;
    demand!(finding.is_none(), "found after every letter was edited: {finding:?}");
    Ok(())
}

fn a_failure_in_the_future_is_found<S: DeadLetterStore>(bench: &DoctorBench<'_, S>) -> Result<(), String> {
    bench.park_job("a")?;
    bench.appears("clock_ahead", || {
        bench.park(letter("b", bench.time.now()))?;
        // A clock that is set back leaves yesterday in the future.
        bench.time.set(bench.time.now() - Duration::from_secs(86_400));
        Ok(())
    })
}
