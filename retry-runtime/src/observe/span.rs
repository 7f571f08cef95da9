//! What stands for a call in a trace.

/// The span of a watched call: made by the first [`TracingObserver`](super::TracingObserver) that is told of it, and closed
/// when the call is over. Nothing without the feature `tracing`.
#[derive(Clone, Debug)]
pub(crate) struct CallSpan(#[cfg(feature = "tracing")] pub(super) std::sync::OnceLock<tracing::Span>);

impl CallSpan {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(
            #[cfg(feature = "tracing")]
            std::sync::OnceLock::new(),
        )
    }
}
