//! Losses: written down as soon as anything can be. One test, since a process has one count.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::SystemTime;

use retry_runtime::StopReason;
use retry_runtime::dead_letter::{DeadLetter, Parking, Spill, lose, lost, take_losses};
use retry_runtime::error::{StoreError, StoreErrorKind};

// D18
#[test]
fn losses_go_into_the_spill_with_the_next_letter_and_on_to_the_store() {
    let dir = std::env::temp_dir().join(format!("retry-losses-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let letter = || DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
    for _ in 0..3 {
        let parking = lose(&letter(), StoreError::new(StoreErrorKind::Full, "no space left"));
        assert!(matches!(parking, Parking::Lost { .. }));
    }
    assert_eq!(lost(), 3);
    let spill = Spill::in_dirs("jobs", [dir.clone()]);
    spill.append(&letter()).unwrap();
    assert_eq!(take_losses(), 0, "written down already");
    spill.release();
    let (mut letters, mut losses) = (0, 0);
    let done = spill.import(|batch| {
        letters += batch.letters.len();
        losses += batch.lost;
        Ok(())
    });
    let done = done.unwrap();
    assert_eq!((done.files, done.letters, done.bad_lines), (1, 1, 0));
    assert_eq!((letters, losses, lost()), (1, 3, 3));
    std::fs::remove_dir_all(dir).unwrap();
}
