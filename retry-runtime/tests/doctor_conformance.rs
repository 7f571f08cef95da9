//! The checks of examinations: the store in memory passes them, and doctors with one fault each do not.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::{Duration, SystemTime};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{Checkup, DeadLetter, DeadLetterSink, Depth, Doctor, Finding, MemoryStore, Severity};
use retry_runtime::testing::conformance;

#[test]
fn the_store_in_memory_passes() {
    conformance::doctor(MemoryStore::with_clock).assert_passed();
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    SeesNothing,
    AlwaysAlarmed,
    BestFirst,
    WithoutAdvice,
    ParksAProbe,
    ForgetsTheHandlers,
    LooksOnlyWhenFull,
}

/// What a doctor with this fault says of the store.
fn examine(fault: Fault, store: &MemoryStore, mut checkup: Checkup) -> Vec<Finding> {
    if let Fault::ForgetsTheHandlers = fault {
        checkup.handled_kinds = None;
    }
    let depth = checkup.depth;
    let mut found = poll_now(store.doctor(checkup)).unwrap();
    match fault {
        Fault::SeesNothing => found.clear(),
        Fault::AlwaysAlarmed => found.push(Finding::new(Severity::Warning, "something", "hm").advise("look")),
        Fault::BestFirst => found.reverse(),
        Fault::WithoutAdvice => found.iter_mut().for_each(|finding| finding.advice.clear()),
        Fault::ParksAProbe => {
            let mut probe = DeadLetter::new("probe", StopReason::Exhausted, SystemTime::now());
            probe.job_id = Some("probe".into());
            drop(store.submit(probe).wait(Duration::ZERO));
        }
        Fault::LooksOnlyWhenFull if depth == Depth::Quick => found.clear(),
        Fault::ForgetsTheHandlers | Fault::LooksOnlyWhenFull => {}
    }
    found
}

/// The value of a future of the store in memory, which is ready when first polled.
fn poll_now<T>(future: impl Future<Output = T>) -> T {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut cx) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the store in memory waited"),
    }
}

#[test]
fn each_planted_fault_is_caught() {
    for (fault, by) in [
        (Fault::SeesNothing, "abandoned_letters_are_found"),
        (Fault::AlwaysAlarmed, "a_sound_store_has_nothing_worse_than_a_word"),
        (Fault::BestFirst, "the_worst_finding_comes_first_and_says_what_to_do"),
        (Fault::WithoutAdvice, "the_worst_finding_comes_first_and_says_what_to_do"),
        (Fault::ParksAProbe, "an_examination_changes_nothing"),
        (Fault::ForgetsTheHandlers, "a_kind_without_a_handler_is_found"),
        (Fault::LooksOnlyWhenFull, "a_lease_long_over_is_found"),
    ] {
        let report =
            conformance::doctor_by(MemoryStore::with_clock, |store, checkup| Ok(examine(fault, store, checkup)));
        assert!(report.failures().any(|failed| failed.name == by), "{fault:?} was not caught by {by}\n{report}");
    }
}
