//! A small hash for names.

/// FNV-1a, 64 bits: small, stable for ever, and nobody attacks a group number.
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    pub(super) fn part(&mut self, bytes: &[u8]) {
        // The length's separator keeps ("ab", "c") and ("a", "bc") apart: 0xFF is no byte of UTF-8.
        for &byte in bytes.iter().chain(&[0xFF]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

impl std::fmt::Display for Fnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
