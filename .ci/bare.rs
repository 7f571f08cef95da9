//! What a first program needs, in a project of its own: `.ci/run` builds it with each crate alone.

#[cfg(feature = "whole")]
fn main() {
    use retry_runtime::{Classify, retry};

    #[derive(Debug, Classify)]
    enum FetchError {
        #[classify(retryable)]
        Busy,
    }

    #[retry(base_delay = "1ms")]
    fn fetch(calls: &mut u32) -> Result<u32, FetchError> {
        *calls += 1;
        if *calls < 3 { Err(FetchError::Busy) } else { Ok(*calls) }
    }

    assert!(matches!(fetch(&mut 0), Ok(3)));
    println!("retried without a workspace, without an executor");
}

#[cfg(not(feature = "whole"))]
fn main() {}
