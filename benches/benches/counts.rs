//! Instructions of every loop, counted by callgrind: `./bench counts` runs it and reads what it writes.
#![allow(missing_docs, unused_qualifications, clippy::unwrap_used)] // what the macros write, and a bench fails by panicking

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use retry_benches::cases::{Case, Scenario, cases};
use retry_benches::loops::Outcome;

/// The nth case, warm and at a fixed place, so that nothing but its run is counted.
fn ready(scenario: Scenario, n: usize) -> &'static Case {
    Box::leak(Box::new(cases(scenario).into_iter().nth(n).unwrap().warmed()))
}

/// One bench function for each scenario; the case is its number in the list.
macro_rules! scenarios {
    ($($function:ident, $scenario:ident, $ready:ident;)*) => {
        $(
            fn $ready(n: usize) -> &'static Case {
                ready(Scenario::$scenario, n)
            }

            #[library_benchmark(setup = $ready)]
            #[benches::case(iter = 0..cases(Scenario::$scenario).len())]
            fn $function(case: &'static Case) -> Outcome {
                black_box(black_box(case).run())
            }
        )*
        library_benchmark_group!(name = loops, benchmarks = [$($function),*]);
    };
}

scenarios! {
    first_async, FirstAsync, first_async_ready;
    first_blocking, FirstBlocking, first_blocking_ready;
    third_async, ThirdAsync, third_async_ready;
    third_blocking, ThirdBlocking, third_blocking_ready;
    third_tokio, ThirdTokio, third_tokio_ready;
    never_async, NeverAsync, never_async_ready;
    never_blocking, NeverBlocking, never_blocking_ready;
}

main!(library_benchmark_groups = loops);
