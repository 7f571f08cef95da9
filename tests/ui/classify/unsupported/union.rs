use retry_runtime::Classify;

#[derive(Classify)]
union Bits {
    int: u32,
    float: f32,
}

fn is_classify<E: Classify>(_: &E) {}

fn main() {
    is_classify(&Bits { int: 1 });
}
