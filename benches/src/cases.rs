//! What is measured of every loop: one list for counts, allocations and times.

use crate::loops::{Contender, LETTER, Outcome, Run, Work, contenders};

/// What happens to a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// The first attempt succeeds; an async one never reaches its timer.
    FirstAsync,
    /// The same of a blocking one.
    FirstBlocking,
    /// Two failures, then a success; waits are over at once.
    ThirdAsync,
    /// The same of a blocking one, whose waits are zero.
    ThirdBlocking,
    /// Two failures, then a success; tokio's timer, whose clock is paused.
    ThirdTokio,
    /// Three failures; waits are over at once.
    NeverAsync,
    /// The same of a blocking one.
    NeverBlocking,
}

impl Scenario {
    /// In the order of the report.
    pub const ALL: [Self; 7] = [
        Self::FirstAsync,
        Self::FirstBlocking,
        Self::ThirdAsync,
        Self::ThirdBlocking,
        Self::ThirdTokio,
        Self::NeverAsync,
        Self::NeverBlocking,
    ];

    /// As the report calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstAsync => "first success, async",
            Self::FirstBlocking => "first success, blocking",
            Self::ThirdAsync => "third attempt, async",
            Self::ThirdBlocking => "third attempt, blocking",
            Self::ThirdTokio => "third attempt, tokio",
            Self::NeverAsync => "exhausted, async",
            Self::NeverBlocking => "exhausted, blocking",
        }
    }

    /// What a bench function about it is called: its name in a Rust path.
    #[must_use]
    pub const fn function(self) -> &'static str {
        match self {
            Self::FirstAsync => "first_async",
            Self::FirstBlocking => "first_blocking",
            Self::ThirdAsync => "third_async",
            Self::ThirdBlocking => "third_blocking",
            Self::ThirdTokio => "third_tokio",
            Self::NeverAsync => "never_async",
            Self::NeverBlocking => "never_blocking",
        }
    }

    fn failures(self) -> u32 {
        match self {
            Self::FirstAsync | Self::FirstBlocking => 0,
            Self::ThirdAsync | Self::ThirdBlocking | Self::ThirdTokio => 2,
            Self::NeverAsync | Self::NeverBlocking => u32::MAX,
        }
    }

    fn run(self, contender: &Contender) -> Option<Run> {
        match self {
            Self::FirstAsync => contender.on_tokio.map(|loops| loops.now),
            Self::ThirdTokio => contender.on_tokio.map(|loops| loops.paused),
            Self::ThirdAsync => contender.ready,
            Self::FirstBlocking | Self::ThirdBlocking => contender.blocking,
            // a dead letter is not used here
            Self::NeverAsync => contender.ready.filter(|_| contender.name != LETTER),
            Self::NeverBlocking => contender.blocking.filter(|_| contender.name != LETTER),
        }
    }
}

/// One loop in one scenario.
#[derive(Debug)]
pub struct Case {
    /// Who.
    pub contender: &'static str,
    run: Run,
    work: Work,
}

impl Case {
    /// Runs it once.
    #[inline]
    pub fn run(&self) -> Outcome {
        (self.run)(&self.work)
    }

    /// Runs it until whatever is done once is done. Panics when the loop does not do what the scenario says.
    #[must_use]
    pub fn warmed(self) -> Self {
        for _ in 0..3 {
            let outcome = self.run();
            assert_eq!(outcome.is_ok(), self.work.succeeds(), "{}", self.contender);
        }
        self
    }
}

/// Everybody in one scenario, those left out who cannot do it.
#[must_use]
pub fn cases(scenario: Scenario) -> Vec<Case> {
    let able = contenders().into_iter().filter_map(|contender| {
        let run = scenario.run(&contender)?;
        Some(Case { contender: contender.name, run, work: Work::failing(scenario.failures()) })
    });
    able.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::Failure;

    // A figure about a loop that does something else would be no figure.
    #[test]
    fn everybody_does_what_the_scenario_says() {
        for scenario in Scenario::ALL {
            for case in cases(scenario) {
                let case = case.warmed();
                let before = case.work.left();
                let outcome = case.run();
                // three attempts and no fourth; or as many as it takes, after which the work is as it was
                let (expected, used) =
                    if case.work.succeeds() { (Ok(scenario.failures()), 0) } else { (Err(Failure::Busy), 3) };
                assert_eq!((outcome, before - case.work.left()), (expected, used), "{}: {scenario:?}", case.contender);
            }
        }
    }
}
