use retry_runtime::Classify;

#[derive(Classify)]
enum Error<#[classify(transparent)] T> {
    #[classify(transparent)]
    Inner(T),
}

fn main() {}
