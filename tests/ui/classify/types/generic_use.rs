use retry_runtime::Classify;

#[derive(Classify)]
enum Wrap<T, S> {
    #[classify(transparent)]
    Inner(T),
    #[classify(status = 0)]
    Status(S),
}

#[derive(Classify)]
#[classify(permanent)]
struct Fine;

struct Plain;

fn is_classify<E: Classify>() {}

fn main() {
    is_classify::<Wrap<Fine, u16>>();
    is_classify::<Wrap<Plain, u16>>();
    is_classify::<Wrap<Fine, String>>();
}
