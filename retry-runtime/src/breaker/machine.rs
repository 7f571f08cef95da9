//! The states of a breaker and what moves it between them. Pure: the time comes in as a number of nanoseconds.

use super::window::Window;

/// The numbers of a breaker that never change; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Thousandths.
    pub(super) failure_ratio: u32,
    pub(super) min_calls: u32,
    pub(super) window: i64,
    pub(super) open_for: i64,
    pub(super) max_open: i64,
    pub(super) probes: u32,
    pub(super) probe_lease: i64,
}

/// What an admitted call shows when it is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    generation: u64,
    lease: u64,
}

/// How an admitted call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Failure,
    /// Cancelled, dropped, panicked, or a failure that says nothing about the dependency.
    NoVerdict,
}

#[derive(Debug)]
pub(super) enum Phase {
    Closed(Window),
    Open { since: i64, lasts: i64 },
    HalfOpen { succeeded: u32, leases: Vec<Lease> },
}

/// A probe that is under way, until it ends or its time is over.
#[derive(Debug)]
pub(super) struct Lease {
    id: u64,
    begun: i64,
    ends: i64,
}

impl Lease {
    /// Its time is not over. One that begins in the future is of another clock (a test's).
    const fn holds(&self, now: i64) -> bool {
        self.begun <= now && now < self.ends
    }
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) phase: Phase,
    /// Goes up with each change of the phase: what was admitted before it changes nothing after it.
    generation: u64,
    last_lease: u64,
    /// How often it opened since it was last closed.
    pub(super) openings: u32,
    pub(super) refused: u64,
}

impl Machine {
    pub(super) const fn new() -> Self {
        Self { phase: Phase::Closed(Window::new()), generation: 0, last_lease: 0, openings: 0, refused: 0 }
    }

    /// Admits a call that starts after a wait, or says how long to stay away.
    pub(super) fn admit(&mut self, settings: &Settings, now: i64, wait: i64) -> Result<Ticket, i64> {
        if let Phase::Open { since, lasts } = self.phase {
            // a time before it opened is of another clock
            let left = lasts.saturating_sub(now.saturating_sub(since));
            if now >= since && left > 0 {
                self.refused = self.refused.saturating_add(1);
                return Err(left);
            }
            self.enter(Phase::HalfOpen { succeeded: 0, leases: Vec::new() });
        }
        let mut lease = 0;
        if let Phase::HalfOpen { succeeded, leases } = &mut self.phase {
            leases.retain(|lease| lease.holds(now));
            let running = u32::try_from(leases.len()).unwrap_or(u32::MAX);
            if succeeded.saturating_add(running) >= settings.probes {
                self.refused = self.refused.saturating_add(1);
                return Err(0);
            }
            self.last_lease += 1;
            lease = self.last_lease;
            let ends = now.saturating_add(wait).saturating_add(settings.probe_lease);
            leases.push(Lease { id: lease, begun: now, ends });
        }
        Ok(Ticket { generation: self.generation, lease })
    }

    /// An admitted call is over.
    pub(super) fn end(&mut self, settings: &Settings, now: i64, ticket: Ticket, outcome: Outcome) {
        if ticket.generation != self.generation {
            return;
        }
        match &mut self.phase {
            Phase::Closed(window) => {
                if outcome == Outcome::NoVerdict {
                    return;
                }
                let failed = outcome == Outcome::Failure;
                window.count(settings.window, now, failed);
                let (calls, failures) = window.sums(settings.window, now);
                let over = u64::from(failures) * 1000 >= u64::from(calls) * u64::from(settings.failure_ratio.max(1));
                if failed && calls >= settings.min_calls && over {
                    self.open(settings, now);
                }
            }
            // nothing is admitted while it is open
            Phase::Open { .. } => {}
            Phase::HalfOpen { succeeded, leases } => {
                let Some(at) = leases.iter().position(|lease| lease.id == ticket.lease && lease.holds(now)) else {
                    return;
                };
                leases.swap_remove(at);
                match outcome {
                    Outcome::NoVerdict => {}
                    Outcome::Failure => self.open(settings, now),
                    Outcome::Success => {
                        *succeeded += 1;
                        if *succeeded >= settings.probes {
                            self.close(Window::new());
                        }
                    }
                }
            }
        }
    }

    fn open(&mut self, settings: &Settings, now: i64) {
        self.open_again(self.openings.saturating_add(1), now, settings.open_time(self.openings));
    }

    /// Opens for a time that is known.
    pub(super) fn open_again(&mut self, openings: u32, now: i64, lasts: i64) {
        self.openings = openings;
        self.enter(Phase::Open { since: now, lasts });
    }

    pub(super) fn close(&mut self, window: Window) {
        self.openings = 0;
        self.enter(Phase::Closed(window));
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
    }
}

impl Settings {
    /// How long it stays open after so many openings before: twice as long each time, up to the limit.
    pub(super) fn open_time(&self, openings: u32) -> i64 {
        let factor = 1_i64.checked_shl(openings).filter(|factor| *factor > 0).unwrap_or(i64::MAX);
        self.open_for.saturating_mul(factor).min(self.max_open.max(self.open_for))
    }
}
