//! `CircuitBreaker`: what opens it, what closes it, what is kept.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use retry_runtime::{BreakerPhase, BreakerState, CircuitBreaker, Verdict};
use tokio::time::advance;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn fail(breaker: &CircuitBreaker, times: u32) {
    (0..times).for_each(|_| breaker.permit().unwrap().failed());
}

fn succeed(breaker: &CircuitBreaker, times: u32) {
    (0..times).for_each(|_| breaker.permit().unwrap().succeeded());
}

// 8.1: the defaults
#[tokio::test(start_paused = true)]
async fn it_opens_at_half_of_twenty_and_closes_after_three_probes() {
    static BREAKER: CircuitBreaker = CircuitBreaker::new();
    succeed(&BREAKER, 10);
    fail(&BREAKER, 9);
    assert_eq!(BREAKER.phase(), BreakerPhase::Closed, "19 calls are too few");
    fail(&BREAKER, 1);
    assert_eq!(BREAKER.phase(), BreakerPhase::Open);
    assert_eq!(BREAKER.permit().unwrap_err().retry_in(), secs(10));
    advance(secs(9)).await;
    assert_eq!(BREAKER.permit().unwrap_err().to_string(), "breaker open for another 1.0s");
    advance(secs(1)).await;
    let probes = [(); 3].map(|()| BREAKER.permit().unwrap());
    assert_eq!(BREAKER.phase(), BreakerPhase::HalfOpen);
    let full = BREAKER.permit().unwrap_err();
    assert_eq!(full.to_string(), "breaker half-open, and its probes are under way");
    for probe in probes {
        assert_eq!(BREAKER.phase(), BreakerPhase::HalfOpen);
        probe.succeeded();
    }
    assert_eq!((BREAKER.phase(), BREAKER.refused()), (BreakerPhase::Closed, 3));
}

// 8.1
#[tokio::test(start_paused = true)]
async fn it_stays_open_twice_as_long_after_each_probe_that_fails() {
    let breaker = CircuitBreaker::new().min_calls(1).max_open(secs(35));
    fail(&breaker, 1);
    for open in [10, 20, 35, 35] {
        assert_eq!(breaker.permit().unwrap_err().retry_in(), secs(open));
        advance(secs(open)).await;
        fail(&breaker, 1);
    }
    advance(secs(35)).await;
    succeed(&breaker, 3);
    fail(&breaker, 1);
    assert_eq!(breaker.permit().unwrap_err().retry_in(), secs(10), "closed in between: from the beginning");
}

// 8.1: the window slides
#[tokio::test(start_paused = true)]
async fn old_calls_do_not_count() {
    let breaker = CircuitBreaker::new().min_calls(4).failure_ratio(0.75).window(secs(10));
    fail(&breaker, 2);
    advance(secs(5)).await;
    succeed(&breaker, 1);
    advance(secs(5)).await;
    fail(&breaker, 2);
    assert_eq!(breaker.phase(), BreakerPhase::Closed, "two are older than ten seconds");
    fail(&breaker, 1);
    assert_eq!(breaker.phase(), BreakerPhase::Open, "three of four");
}

// 8.2: what says nothing about the dependency
#[tokio::test(start_paused = true)]
async fn permanent_and_cancelled_calls_give_no_verdict_and_their_permits_back() {
    let breaker = CircuitBreaker::new().min_calls(1).probes(1);
    for _ in 0..50 {
        breaker.permit().unwrap().judged(&Verdict::permanent("denied"));
        breaker.permit().unwrap().judged(&Verdict::gone("missing"));
        drop(breaker.permit().unwrap());
    }
    assert_eq!(breaker.phase(), BreakerPhase::Closed);
    breaker.permit().unwrap().judged(&Verdict::unknown("odd"));
    assert_eq!(breaker.phase(), BreakerPhase::Open);
    advance(secs(10)).await;
    for _ in 0..50 {
        // one probe only, and each gives its place back
        breaker.permit().unwrap().judged(&Verdict::permanent("denied"));
        drop(breaker.permit().unwrap());
        assert_eq!(breaker.phase(), BreakerPhase::HalfOpen);
    }
    succeed(&breaker, 1);
    assert_eq!(breaker.phase(), BreakerPhase::Closed);
}

// 8.2: leases and generations
#[tokio::test(start_paused = true)]
async fn a_probe_that_hangs_is_replaced_and_its_late_word_changes_nothing() {
    let breaker = CircuitBreaker::new().min_calls(1).probes(1);
    let from_before = breaker.permit().unwrap();
    fail(&breaker, 1);
    advance(secs(10)).await;
    let hangs = breaker.permit_after(secs(5)).unwrap();
    advance(secs(64)).await;
    assert!(breaker.permit().is_err(), "a lease of 60 s after a wait of 5 s");
    advance(secs(1)).await;
    let next = breaker.permit().unwrap();
    hangs.failed();
    from_before.succeeded();
    assert_eq!(breaker.phase(), BreakerPhase::HalfOpen);
    next.succeeded();
    assert_eq!(breaker.phase(), BreakerPhase::Closed);
}

#[test]
fn settings_out_of_range_are_cut() {
    for (ratio, successes, failures, phase) in [
        (f64::NAN, 1, 9, BreakerPhase::Closed),
        (7.0, 1, 9, BreakerPhase::Closed),
        (7.0, 0, 10, BreakerPhase::Open),
        (0.0, 9, 1, BreakerPhase::Open),
        (-1.0, 9, 1, BreakerPhase::Open),
    ] {
        let breaker = CircuitBreaker::new().failure_ratio(ratio).min_calls(10);
        succeed(&breaker, successes);
        fail(&breaker, failures);
        assert_eq!(breaker.phase(), phase, "{ratio}");
    }
    let breaker = CircuitBreaker::new().min_calls(0).probes(0).open_for(Duration::ZERO);
    fail(&breaker, 1);
    succeed(&breaker, 1);
    assert_eq!(breaker.phase(), BreakerPhase::Closed, "one probe");
}

// Threads that ask together get as many probes as there are, and no more.
#[test]
fn threads_share_the_probes() {
    let breaker = CircuitBreaker::new().min_calls(1).open_for(Duration::ZERO).probes(3);
    for _ in 0..200 {
        fail(&breaker, 1);
        let (admitted, all_asked) = (AtomicU32::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let permit = breaker.permit();
                    admitted.fetch_add(u32::from(permit.is_ok()), Ordering::Relaxed);
                    all_asked.wait();
                    if let Ok(permit) = permit {
                        permit.succeeded();
                    }
                });
            }
        });
        assert_eq!((admitted.into_inner(), breaker.phase()), (3, BreakerPhase::Closed));
    }
}

fn restored(state: BreakerState) -> CircuitBreaker {
    let breaker = CircuitBreaker::new().min_calls(4).open_for(secs(10)).max_open(secs(60));
    breaker.restore(state);
    breaker
}

// 8.1: saved and restored; the wall clock is real, and a second of it may pass
#[tokio::test(start_paused = true)]
async fn a_short_lived_program_goes_on_from_a_kept_state() {
    let closed = restored(CircuitBreaker::new().state());
    succeed(&closed, 1);
    fail(&closed, 2);
    let state = closed.state();
    assert_eq!((state.phase, state.calls, state.failures), (BreakerPhase::Closed, 3, 2));
    let goes_on = restored(state);
    fail(&goes_on, 1);
    assert_eq!(goes_on.phase(), BreakerPhase::Open, "three of four");
    let too_old = restored(BreakerState { unix_millis: state.unix_millis - 31_000, ..state });
    fail(&too_old, 3);
    assert_eq!(too_old.phase(), BreakerPhase::Closed);

    advance(secs(4)).await;
    let open = goes_on.state();
    assert_eq!((open.phase, open.openings), (BreakerPhase::Open, 1));
    let left = restored(open).permit().unwrap_err().retry_in();
    assert!(secs(5) < left && left <= secs(6) + Duration::from_millis(1), "{left:?}");
    let again = restored(BreakerState { open_until_unix_millis: 0, ..open });
    again.permit().unwrap().failed();
    assert_eq!(again.permit().unwrap_err().retry_in(), secs(20), "the second opening in a row");
    let far = restored(BreakerState { open_until_unix_millis: u64::MAX, ..open });
    assert_eq!(far.permit().unwrap_err().retry_in(), secs(60), "no longer than `max_open`");

    advance(secs(6)).await;
    let probe = goes_on.permit().unwrap();
    let half_open = goes_on.state();
    assert_eq!(half_open.phase, BreakerPhase::HalfOpen);
    assert!(restored(half_open).permit().is_ok(), "the probes went with the program");
    goes_on.restore(state);
    probe.failed();
    assert_eq!(goes_on.phase(), BreakerPhase::Closed, "calls under way change nothing after it");
}

// A paused clock that was moved is left behind: the breaker does not wait for the time to come again.
#[test]
fn a_clock_that_went_back_does_not_keep_it_open() {
    static BREAKER: CircuitBreaker = CircuitBreaker::new().min_calls(1).probes(1);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime().block_on(async {
        advance(secs(86_400)).await;
        fail(&BREAKER, 1);
        assert!(BREAKER.permit().is_err());
    });
    runtime().block_on(async {
        assert!(BREAKER.permit().is_ok());
        succeed(&BREAKER, 1);
    });
}
