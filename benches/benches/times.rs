//! Every loop by the clock: `./bench times` runs it in rounds and reads what it prints.
#![allow(missing_docs)] // what the macros write

use std::fmt;

use divan::Bencher;
use retry_benches::cases::{Case, Scenario, cases};

fn main() {
    divan::main();
}

/// The nth case of a scenario, by its contender's name.
#[derive(Clone, Copy)]
struct Nth {
    n: usize,
    contender: &'static str,
}

impl fmt::Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.contender)
    }
}

fn all(scenario: Scenario) -> Vec<Nth> {
    cases(scenario).iter().enumerate().map(|(n, case)| Nth { n, contender: case.contender }).collect()
}

fn measure(bencher: Bencher<'_, '_>, scenario: Scenario, nth: Nth) {
    let case: Option<Case> = cases(scenario).into_iter().nth(nth.n).map(Case::warmed);
    if let Some(case) = case {
        bencher.bench_local(|| divan::black_box(&case).run());
    }
}

/// One bench function for each scenario.
macro_rules! scenarios {
    ($($function:ident, $scenario:ident;)*) => {
        $(
            #[divan::bench(args = all(Scenario::$scenario), max_time = 0.1)]
            fn $function(bencher: Bencher<'_, '_>, nth: Nth) {
                measure(bencher, Scenario::$scenario, nth);
            }
        )*
    };
}

scenarios! {
    first_async, FirstAsync;
    first_blocking, FirstBlocking;
    third_async, ThirdAsync;
    third_blocking, ThirdBlocking;
    third_tokio, ThirdTokio;
    never_async, NeverAsync;
    never_blocking, NeverBlocking;
}
