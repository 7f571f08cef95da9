use retry_runtime::Classify;

struct Code(u16);

#[derive(Classify)]
enum Error {
    #[classify(status = 1)]
    Own(u8, Option<Code>),
}

fn main() {}
