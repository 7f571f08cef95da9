//! How far it is, how fast, and how long it will take; on stderr, and only where somebody looks.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A bar on stderr. Silent where stderr is no terminal.
#[derive(Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of so many; `None` where nobody knows how many there will be.
    pub(crate) fn of(total: Option<u64>, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let template = match total {
            Some(_) => "{prefix} {bar:24} {pos} of {len}  {rate}  {eta} left  {msg}",
            None => "{prefix} {spinner} {pos}  {rate}  {elapsed}  {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                // Writing to a text does not fail.
                let _written = write!(out, "{:.1}/s", state.per_sec());
            };
            bar.set_style(style.progress_chars("=> ").with_key("rate", rate));
        }
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }

    /// So far.
    pub(crate) fn at(&self, position: u64, message: impl Into<String>) {
        self.0.set_position(position);
        self.0.set_message(message.into());
    }

    /// Further.
    pub(crate) fn add(&self, n: u64) {
        self.0.inc(n);
    }

    /// It is over, and its line is cleared: what comes after says it better.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Clones live in callbacks; the line belongs to all of them.
        self.0.disable_steady_tick();
    }
}
