use retry_runtime::{Classify, retrying};

#[derive(Debug, Classify)]
#[classify(retryable)]
struct Busy;

fn main() {
    let _ = retrying!(max_retries = 2 { Ok(1) });
    let _ = retrying!(max_retries = 2; { Err(Busy) });
    let _ = retrying!(max_retries = 2; -> Result<u32, Busy>);
    let _ = retrying!(max_retries = 2; -> Result<u32, Busy> { Err(Busy) } 5);
    let _ = retrying!(max_retries = 2; async Result<u32, Busy> { Err(Busy) });
    let _ = retrying!(max_retry = 2, base_delay = "5"; -> Result<u32, Busy> { Err(Busy) });
    let _ = retrying!(clone(x), share(y); -> Result<u32, Busy> { Err(Busy) });
    let _ = retrying!(dead_letter(sink = &1); -> Result<u32, Busy> { Err(Busy) });
    let _ = retrying!(attempt_timeout = "1s"; -> Result<u32, Busy> { Err(Busy) });
    let _ = retrying!();
}
