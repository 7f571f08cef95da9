//! Durations as whole nanoseconds: every sum and product of waits fits 128 bits or saturates.

use std::time::Duration;

const PER_SECOND: u128 = 1_000_000_000;

/// A duration of so many nanoseconds, at most [`Duration::MAX`].
pub(crate) fn from_nanos(nanos: u128) -> Duration {
    // Nearly every wait fits 64 bits, and a 128-bit division is slow.
    if let Ok(nanos) = u64::try_from(nanos) {
        return Duration::from_nanos(nanos);
    }
    match (u64::try_from(nanos / PER_SECOND), u32::try_from(nanos % PER_SECOND)) {
        (Ok(secs), Ok(rest)) => Duration::new(secs, rest),
        _ => Duration::MAX,
    }
}

/// `value << shift`, or the largest number where bits would be lost.
pub(crate) fn saturating_shl(value: u128, shift: u32) -> u128 {
    if value == 0 {
        0
    } else if value.leading_zeros() < shift {
        u128::MAX
    } else {
        value << shift
    }
}

/// A uniform number of nanoseconds from `low` to `high`, both included; `low` when they are the wrong way round.
///
/// One draw, scaled by multiplication: with ranges below 584 years the bias is below 2^-30 of the range.
pub(crate) fn uniform(low: Duration, high: Duration, random: u64) -> Duration {
    let Some(span) = high.checked_sub(low) else { return low };
    let choices = span.as_nanos() + 1;
    let random = u128::from(random);
    // (choices * random) >> 64 in two halves, since the product may need 160 bits.
    let offset = (choices >> 64) * random + (((choices & u128::from(u64::MAX)) * random) >> 64);
    low.saturating_add(from_nanos(offset))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_duration() -> impl Strategy<Value = Duration> {
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos))
    }

    proptest! {
        #[test]
        fn nanoseconds_round_trip(duration in any_duration()) {
            prop_assert_eq!(from_nanos(duration.as_nanos()), duration);
        }

        #[test]
        fn anything_is_a_duration(nanos: u128) {
            prop_assert!(from_nanos(nanos).as_nanos() == nanos.min(Duration::MAX.as_nanos()));
        }

        #[test]
        fn uniform_stays_in_its_range(a in any_duration(), b in any_duration(), random: u64) {
            let (low, high) = (a.min(b), a.max(b));
            let drawn = uniform(low, high, random);
            prop_assert!(low <= drawn && drawn <= high);
            prop_assert_eq!(uniform(low, high, 0), low);
        }
    }

    #[test]
    fn uniform_reaches_both_ends() {
        let (low, high) = (Duration::from_secs(1), Duration::from_secs(3600));
        assert_eq!(uniform(low, high, 0), low);
        assert_eq!(uniform(low, high, u64::MAX), high);
        assert_eq!(uniform(high, low, 7), high, "the wrong way round");
    }

    #[test]
    fn shifts_saturate() {
        assert_eq!(saturating_shl(1, 127), 1 << 127);
        assert_eq!(saturating_shl(2, 127), u128::MAX);
        assert_eq!(saturating_shl(1, u32::MAX), u128::MAX);
        assert_eq!(saturating_shl(0, u32::MAX), 0);
    }
}
