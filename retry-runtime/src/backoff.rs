//! How the wait grows from one retry to the next.

use std::fmt;
use std::time::Duration;

use crate::nanos::{from_nanos, saturating_shl};

/// How the wait grows per retry. Retry numbers start at 0 for the first retry; no wait is longer than `max_delay`.
///
/// The arithmetic is done in whole nanoseconds, takes the same short time for every retry number, and ends at `max_delay`
/// where a number would not fit.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Backoff {
    /// `base_delay * factor^n`. The factor is 1 or more and finite ([`Policy::validate`](crate::Policy::validate) says so);
    /// unchecked, one below 1 or not a number counts as 1, and an infinite one gives `max_delay` from the second retry on.
    Exponential(f64),
    /// Always `base_delay`.
    Fixed,
    /// `base_delay * (n + 1)`.
    Linear,
    /// `base_delay` times 1, 1, 2, 3, 5, 8, ...
    Fibonacci,
    /// What the function says for retry `n`, cut to `max_delay`; `base_delay` is not used.
    Custom(fn(u32) -> Duration),
}

impl Backoff {
    /// The wait before retry `n`, without jitter, at most `cap`.
    pub(crate) fn delay(&self, base: Duration, cap: Duration, n: u32) -> Duration {
        match *self {
            Self::Exponential(factor) => exponential(base, factor, cap, n),
            Self::Fixed => base.min(cap),
            Self::Linear => match n.checked_add(1).and_then(|times| base.checked_mul(times)) {
                Some(delay) => delay.min(cap),
                // Either over every cap, or retry u32::MAX, whose multiple does not fit `checked_mul`.
                None => from_nanos(base.as_nanos().saturating_mul(u128::from(n) + 1)).min(cap),
            },
            Self::Fibonacci => from_nanos(base.as_nanos().saturating_mul(fibonacci(n))).min(cap),
            Self::Custom(delay) => delay(n).min(cap),
        }
    }
}

fn exponential(base: Duration, factor: f64, cap: Duration, n: u32) -> Duration {
    if n == 0 || base.is_zero() || factor.is_nan() || factor <= 1.0 {
        return base.min(cap);
    }
    if factor.is_infinite() {
        return cap;
    }
    // The default factor, and the only one on the fast path of a call that retries.
    if factor.to_bits() == 2.0_f64.to_bits() {
        return match 1_u32.checked_shl(n).map(|times| base.checked_mul(times)) {
            Some(Some(delay)) => delay.min(cap),
            Some(None) => cap,
            None => from_nanos(saturating_shl(base.as_nanos(), n)).min(cap),
        };
    }
    from_nanos(Scaled::new(factor).pow(n).times(base.as_nanos())).min(cap)
}

/// F(n) = 1, 1, 2, 3, 5, ...; saturates long after every `Duration` does, so the loop is bounded.
fn fibonacci(n: u32) -> u128 {
    const FITS: u32 = 185;
    let (mut this, mut next) = (1_u128, 1_u128);
    for _ in 0..n.min(FITS) {
        (this, next) = (next, this.saturating_add(next));
    }
    if n > FITS { u128::MAX } else { this }
}

/// `mantissa * 2^exponent`, the mantissa's top bit set. Integer arithmetic, so that every platform waits the same; exact
/// as long as the power has at most 64 significant bits (1.5^40), and off by less than n * 2^-63 of itself beyond.
#[derive(Clone, Copy)]
struct Scaled {
    mantissa: u64,
    exponent: i64,
}

impl Scaled {
    const ONE: Self = Self { mantissa: 1 << 63, exponent: -63 };

    /// From a finite factor above 1, which is a normal number: its mantissa has a hidden leading one.
    fn new(factor: f64) -> Self {
        let bits = factor.to_bits();
        let mantissa = (bits << 11) | 1 << 63;
        let exponent = i64::try_from(bits >> 52 & 0x7ff).unwrap_or(0) - 1023 - 63;
        Self { mantissa, exponent }
    }

    fn mul(self, other: Self) -> Self {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        // The product of two such mantissas has its top bit at 127 or at 126.
        let shift = 64 - product.leading_zeros();
        Self {
            mantissa: u64::try_from(product >> shift).unwrap_or(u64::MAX),
            exponent: self.exponent + other.exponent + i64::from(shift),
        }
    }

    /// By squaring: at most 32 rounds. The exponent stays below 2^43.
    fn pow(self, mut n: u32) -> Self {
        let (mut square, mut power) = (self, Self::ONE);
        while n > 0 {
            if n & 1 == 1 {
                power = power.mul(square);
            }
            square = square.mul(square);
            n >>= 1;
        }
        power
    }

    /// This times `nanos`, rounded to the nearest, saturating.
    fn times(self, nanos: u128) -> u128 {
        // Above 584 years the last nanoseconds are dropped, to stay within 128 bits.
        let dropped = 64_u32.saturating_sub(nanos.leading_zeros());
        let product = u128::from(self.mantissa) * (nanos >> dropped);
        let exponent = self.exponent + i64::from(dropped);
        match u32::try_from(exponent.unsigned_abs()) {
            Ok(shift) if exponent >= 0 => saturating_shl(product, shift),
            Ok(shift) => match shift.checked_sub(1).and_then(|almost| product.checked_shr(almost)) {
                Some(twice) => (twice >> 1) + (twice & 1),
                None => 0,
            },
            Err(_) => u128::MAX,
        }
    }
}

impl PartialEq for Backoff {
    /// Two `Custom` ones are equal when they are the same function; one function compiled twice may compare unequal.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exponential(one), Self::Exponential(two)) => one == two,
            (Self::Fixed, Self::Fixed) | (Self::Linear, Self::Linear) | (Self::Fibonacci, Self::Fibonacci) => true,
            (Self::Custom(one), Self::Custom(two)) => std::ptr::fn_addr_eq(*one, *two),
            _ => false,
        }
    }
}

impl Default for Backoff {
    /// Exponential with factor 2.
    fn default() -> Self {
        Self::Exponential(2.0)
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exponential(factor) => f.debug_tuple("Exponential").field(factor).finish(),
            Self::Fixed => f.write_str("Fixed"),
            Self::Linear => f.write_str("Linear"),
            Self::Fibonacci => f.write_str("Fibonacci"),
            // An address says nothing to a reader and differs from run to run.
            Self::Custom(_) => f.write_str("Custom(..)"),
        }
    }
}
