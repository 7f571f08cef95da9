//! `--time-scale`: every wait that much shorter, while policies and letters keep the true numbers.

use std::sync::OnceLock;
use std::time::Duration;

static SCALE: OnceLock<f64> = OnceLock::new();

/// Sets the factor, once, before the first wait. Without it waits last as long as they say.
pub fn scale_waits(factor: f64) {
    SCALE.get_or_init(|| factor);
}

/// A wait as it is really waited.
pub fn scaled(wait: Duration) -> Duration {
    wait.mul_f64(SCALE.get().copied().unwrap_or(1.0))
}

/// Reads a factor of the command line.
///
/// # Errors
/// What is accepted, when it is something else.
pub fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && (0.0..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("a number from 0 to 1000 is needed, 0.01 for waits a hundred times shorter".to_owned()),
    }
}

/// For `#[retry(sleep = support::time::sleep)]`.
pub async fn sleep(wait: Duration) {
    tokio::time::sleep(scaled(wait)).await;
}
