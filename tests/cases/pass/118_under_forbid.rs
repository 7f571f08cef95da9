// source: kind 11; what: lints that are forbidden: an `#[allow]` in generated code would be an error
// editions: 2021 2024
// level: core
#![deny(warnings)]

mod inner {
    #![forbid(warnings, unused, unsafe_code, missing_docs, clippy::all, clippy::pedantic, nonstandard_style, let_underscore, deprecated)]
    //! Docs.
    use retry_runtime::{Classify, retry};

    /// E.
    #[derive(Debug, PartialEq, Eq, Classify)]
    pub enum E {
        /// Busy.
        #[classify(retryable)]
        Busy,
    }
    /// F.
    ///
    /// # Errors
    /// When busy.
    #[retry(max_retries = 2, base_delay = "1ms", retry_on(E::Busy), fallback = Ok(x))]
    pub async fn f(mut x: u32) -> Result<u32, E> {
        tokio::task::yield_now().await;
        x = x.saturating_add(1);
        if x > 0 { Err(E::Busy) } else { Ok(x) }
    }
    /// G.
    ///
    /// # Errors
    /// When busy.
    #[retry]
    pub fn g(x: u32) -> Result<u32, E> {
        if x == 0 { Err(E::Busy) } else { Ok(x) }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    assert_eq!(inner::f(1).await, Ok(1));
    assert_eq!(inner::g(1), Ok(1));
}
