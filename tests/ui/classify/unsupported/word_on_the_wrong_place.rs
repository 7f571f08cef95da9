use retry_runtime::Classify;

#[derive(Classify)]
#[classify(retryable)]
enum OnEnum {
    Busy,
}

#[derive(Classify)]
#[classify(class = "api", default = permanent)]
enum ClassOnEnum {
    Busy,
}

#[derive(Classify)]
enum OnVariant {
    #[classify(default = permanent)]
    Busy,
    #[classify(permanent, crate = ::retry_runtime)]
    Denied,
}

#[derive(Classify)]
#[classify(default = permanent)]
struct OnStruct;

#[derive(Classify)]
enum OnField {
    #[classify(retryable)]
    Busy(#[classify(permanent)] u64, #[classify(class = "x")] u8),
}

fn main() {}
