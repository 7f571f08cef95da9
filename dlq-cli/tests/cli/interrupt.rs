//! Ctrl-C.

use super::support::{Bench, Ran, until};

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

fn started(bench: &Bench, arguments: &[&str]) -> Child {
    bench.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap().success());
}

fn end(child: Child) -> Ran {
    Ran::of(child.wait_with_output().unwrap(), &[])
}

#[test]
fn the_first_one_pauses_and_says_how_to_go_on() {
    for name in ["INT", "TERM"] {
        let bench = Bench::with(6);
        let script = bench.script("job", "touch began; until test -e go; do sleep 0.01; done").display().to_string();
        let child = started(&bench, &["replay", "--all", "--execute", "--exec", &script]);
        until("the first job", || bench.path("began").exists());
        signal(&child, name);
        // Paused in the store, so that no worker goes on with it, while the job under way is let to its end.
        until("the pause", || bench.json(&["ops"])["operations"][0]["status"] == "paused");
        std::fs::write(bench.path("go"), "").unwrap();
        let ran = end(child).exits(130).says("paused: 5 pending, 1 recovered").warns("pausing");
        let resume = ran.out.lines().find_map(|line| line.strip_prefix("to go on: dlq ")).unwrap().to_owned();
        assert_eq!((bench.count("recovered"), bench.count("replaying")), (1, 0));
        let words: Vec<&str> = resume.split(' ').collect();
        bench.dlq(&words).exits(0).says("6 of 6 matching recovered");
    }
}

// Whoever cannot write the pause stops all the same: nothing is begun any more.
#[test]
fn what_cannot_be_paused_in_the_store_stops_here() {
    let bench = Bench::with(6);
    let script = bench.script("job", "echo x >> began; until test -e go; do sleep 0.01; done").display().to_string();
    let mut child = started(&bench, &["replay", "--all", "--execute", "--exec", &script]);
    until("the first job", || bench.path("began").exists());
    // Somebody else writes, for as long as it takes.
    let other = rusqlite::Connection::open(bench.db()).unwrap();
    other.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    signal(&child, "INT");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("could not be paused") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "it ended without a word: {said}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    std::fs::write(bench.path("go"), "").unwrap();
    let ran = end(child);
    assert_eq!(ran.code, 130, "{ran:#?}");
    // The one under way was let to its end, and no other was begun.
    assert_eq!(std::fs::read_to_string(bench.path("began")).unwrap(), "x\n", "{ran:#?}");
    assert_eq!((bench.count("recovered"), bench.count("parked")), (1, 5));
    let resume = ran.out.lines().find_map(|line| line.strip_prefix("to go on: dlq ")).unwrap().to_owned();
    bench.dlq(&resume.split(' ').collect::<Vec<_>>()).exits(0).says("6 of 6 matching recovered");
}

#[test]
fn the_second_one_ends_at_once() {
    let bench = Bench::with(3);
    let script = bench.script("job", "touch began; exec sleep 600").display().to_string();
    let child = started(&bench, &["replay", "--all", "--execute", "--exec", &script]);
    until("the first job", || bench.path("began").exists());
    signal(&child, "INT");
    until("the pause", || bench.json(&["ops"])["operations"][0]["status"] == "paused");
    signal(&child, "INT");
    end(child).exits(130).warns("dropped").warns("dlq replay --resume");
    // The lease was given back: nothing died.
    let shown = bench.json(&["show", "page-0"]);
    assert_eq!((&shown["letter"]["status"], &shown["letter"]["crashes"]), (&"parked".into(), &0.into()), "{shown}");
}

#[test]
fn following_ends_with_130() {
    let bench = Bench::with(1);
    let mut child = started(&bench, &["tail", "--interval", "10ms"]);
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("page-0"), "{line}");
    signal(&child, "INT");
    end(child).exits(130);
}
