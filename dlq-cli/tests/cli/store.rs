//! Which store, and what is no store.

use super::support::{Bench, bytes};

// No command but two makes a store
#[test]
fn a_missing_empty_or_foreign_file_is_an_error_with_its_path() {
    let bench = Bench::empty();
    let path = bench.db().display().to_string();
    let commands: &[&[&str]] = &[
        &[],
        &["summary"],
        &["list"],
        &["discard", "--all"],
        &["replay", "--all", "--execute", "--exec", "true"],
        &["import", "/dev/null"],
        &["doctor", "--probe"],
        &["migrate"],
        &["erase", "x", "--yes"],
    ];
    for arguments in commands {
        bench.dlq(arguments).exits(1).warns(&path).warns("does not exist");
        assert!(!bench.db().exists(), "{arguments:?} made a store");
    }
    for (content, why) in [
        ("", "empty"),
        ("somebody else's notes, and long enough to be looked at as a header of a file", "not a SQLite database"),
    ] {
        for arguments in commands {
            std::fs::write(bench.db(), content).unwrap();
            bench.dlq(arguments).exits(1).warns(&path).warns(why);
            assert_eq!(bytes(&bench.db()), content.as_bytes(), "{arguments:?}");
        }
    }
    std::fs::remove_file(bench.db()).unwrap();
    let made = std::process::Command::new("sqlite3")
        .arg(bench.db())
        .arg("PRAGMA application_id = 77; CREATE TABLE t(x);")
        .status()
        .unwrap();
    assert!(made.success());
    let before = bytes(&bench.db());
    for arguments in commands {
        bench.dlq(arguments).exits(1).warns(&path).warns("another program");
    }
    assert_eq!(bytes(&bench.db()), before);
}

#[test]
fn the_address_comes_from_the_option_the_file_or_the_environment() {
    let bench = Bench::with(1);
    let address = format!("sqlite:{}", bench.db().display());
    std::fs::write(bench.path("address"), format!("{address}\nsomething else\n")).unwrap();
    let without = |arguments: &[&str]| {
        let output = bench.command(arguments).env_remove("DLQ_STORE").output().unwrap();
        super::support::Ran::of(output, arguments)
    };
    without(&["summary"]).exits(2).warns("--store sqlite:PATH").warns("DLQ_STORE");
    without(&["summary", "--store", &address]).exits(0);
    without(&["--store-file", "address", "summary"]).exits(0).says("1 parked");
    without(&["--store-file", "nowhere", "summary"]).exits(1).warns("nowhere");
    // A relative path is told as an absolute one.
    without(&["summary", "--store", "sqlite:jobs.db"]).exits(0).warns(&address);
    let secret =
        without(&["summary", "--store", "postgres://ada:s3cret@db.internal/jobs"]).exits(2).warns("not in this build");
    assert!(!secret.err.contains("s3cret"), "{secret:?}");
    let secret = without(&["summary", "--store", "mysql://ada:s3cret@db.internal/jobs"]).exits(2);
    assert!(!secret.err.contains("s3cret"), "{secret:?}");
    let help = bench.command(&["--help"]).env("DLQ_STORE", "postgres://ada:s3cret@db").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("s3cret"));
}

#[test]
fn the_whole_store_is_copied_and_moved() {
    let bench = Bench::with(3);
    bench.dlq(&["backup", "copy.db"]).exits(0).says("copy.db");
    bench.dlq(&["backup", "copy.db"]).exits(1).warns("is there already");
    let copy = format!("sqlite:{}", bench.path("copy.db").display());
    bench.dlq(&["summary", "--store", &copy]).exits(0).says("3 parked");
    bench.dlq(&["migrate"]).exits(0).says("up to this version");
    let moved = format!("sqlite:{}", bench.path("moved.db").display());
    bench.dlq(&["migrate", "--to", &moved]).exits(0).says("copied to");
    bench.dlq(&["list", "--store", &moved]).exits(0).says("3 of 3 matching");
    bench.dlq(&["migrate", "--to", &moved]).exits(1).warns("is there already");
    bench.dlq(&["migrate", "--to", "postgres://host/db"]).exits(2).warns("not in this build");
}
