//! Help, manual pages, completions, wrong usage.

use super::support::Bench;

/// The commands that the help lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(first)
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn every_help_has_an_example() {
    let bench = Bench::empty();
    let help = bench.dlq(&["--help"]).exits(0).says("Example");
    let names = commands(&help.out);
    assert!(names.len() >= 25, "{names:?}");
    for name in &names {
        let of = bench.dlq(&[name, "--help"]).exits(0).says("Example").says(&format!("dlq {name}"));
        for inner in commands(&of.out) {
            bench.dlq(&[name, &inner, "--help"]).exits(0).says("Example").says(&format!("dlq {name} {inner}"));
        }
    }
    // A page of help fits a terminal of usual width.
    assert!(help.out.lines().all(|line| line.chars().count() <= 130), "{}", help.out);
}

#[test]
fn manual_pages_and_completions_know_every_command() {
    let bench = Bench::empty();
    let names = commands(&bench.dlq(&["--help"]).out);
    bench.dlq(&["man", "--out", "man"]).exits(0);
    for name in &names {
        assert!(bench.path("man").join(format!("dlq-{name}.1")).exists(), "{name}");
    }
    bench.dlq(&["man"]).exits(0).says(".TH dlq");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.dlq(&["completions", shell]).exits(0);
        assert!(names.iter().all(|name| script.out.contains(name.as_str())), "{shell}");
    }
    let bash = bench.script("complete", "eval \"$(dlq completions bash)\" && complete -p dlq");
    assert!(bash.exists());
    let checked = std::process::Command::new("bash")
        .arg("-c")
        .arg(format!("source <({} completions bash) && complete -p dlq", env!("CARGO_BIN_EXE_dlq")))
        .output()
        .unwrap();
    assert!(checked.status.success() && String::from_utf8_lossy(&checked.stdout).contains("dlq"), "{checked:?}");
}

#[test]
fn wrong_usage_is_2() {
    let bench = Bench::with(1);
    for arguments in [
        &["nothing"][..],
        &["list", "--limit", "0"],
        &["list", "--limit", "x"],
        &["show"],
        &["resolve", "page-0"],
        &["check"],
        &["prune"],
        &["import"],
        &["replay", "--all", "--execute"],
        &["replay", "--all", "--execute", "--rate=-1", "--exec", "true"],
        &["replay", "--all", "--execute", "--enqueue", "--http", "http://localhost"],
        &["replay", "--all", "--execute", "--http", "ftp://localhost"],
        &["replay", "--all", "--execute", "--http", "http://ada:s3cret@localhost"],
        &["list", "--all", "--kind", "summarise"],
        &["discard"],
        &["discard", "--limit", "1"],
        &["restore"],
        &["stats", "--days", "0"],
    ] {
        let ran = bench.dlq(arguments).exits(2);
        assert!(!ran.err.is_empty() && !ran.err.contains("s3cret"), "{ran:?}");
    }
    assert_eq!(bench.count("parked"), 1);
}
