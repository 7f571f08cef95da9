//! What a first program needs, in a project of its own: `.ci/run` builds it with each crate alone.

#[cfg(feature = "whole")]
mod whole {
    use retry_runtime::Classify;

    #[derive(Debug, Classify)]
    pub(crate) enum FetchError {
        #[classify(retryable)]
        TimedOut,
        #[classify(permanent)]
        #[allow(dead_code)]
        Forbidden,
    }
}

fn main() {
    #[cfg(feature = "whole")]
    println!("{:?}", retry_runtime::Classify::classify(&whole::FetchError::TimedOut));
}
