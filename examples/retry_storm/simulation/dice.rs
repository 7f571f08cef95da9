//! Random numbers from a seed.

use std::f64::consts::TAU;
use std::time::Duration;

/// `SplitMix64`: every seed gives another sequence, the same on every machine.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 uniform bits, as policies take them.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normal, folded at zero: |N(mean, deviation)|.
    pub fn normal(&mut self, mean: Duration, deviation: Duration) -> Duration {
        // Box and Muller; 1 - unit is never zero
        let (radius, angle) = ((-2.0 * (1.0 - self.unit()).ln()).sqrt(), TAU * self.unit());
        Duration::from_secs_f64((mean.as_secs_f64() + deviation.as_secs_f64() * radius * angle.cos()).abs())
    }

    /// Exponential: what lies between arrivals that know nothing of each other.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-(1.0 - self.unit()).ln())
    }
}
