//! What the macros say about mistakes, word by word. After a change on purpose: `TRYBUILD=overwrite cargo test --test ui`,
//! then read every changed line.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*/*/*.rs");
}
