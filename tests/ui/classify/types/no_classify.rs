use retry_runtime::Classify;

struct Plain;

fn is_classify<E: Classify>() {}

fn main() {
    is_classify::<Plain>();
}
