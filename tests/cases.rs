//! Runs the macro cases under `tests/cases/` (see its README.md): programs that must compile and behave, and programs that
//! must be refused with the right words at the right place, in both editions.

use std::path::Path;
use std::process::Command;

// all fifteen kinds
#[test]
fn every_case_holds_in_its_editions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let out = Command::new("python3")
        .arg(root.join("tests/cases/run.py"))
        .arg(root)
        .env("CASES_DIR", target.join("cases"))
        .output()
        .expect("python3 is installed");
    let said = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}\n{errors}");
    println!("{said}");
}
