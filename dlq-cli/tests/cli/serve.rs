//! `dlq serve`: what the command adds to the dashboard, which has tests of its own.

use super::support::{Bench, until};

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

fn listening(bench: &Bench, arguments: &[&str]) -> (Child, String) {
    let mut child = bench.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("http://")?.split_once('/')?.0.to_owned())).unwrap();
    (child, address)
}

fn get(address: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{more}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn stop(child: Child) {
    assert!(Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn the_dashboard_listens_reads_and_ends_in_order() {
    let bench = Bench::with(3);
    let before = super::support::bytes(&bench.db());
    let (child, address) = listening(&bench, &["serve", "--listen", "127.0.0.1:0"]);
    let page = get(&address, "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains(&bench.db().display().to_string()), "{page}");
    stop(child);
    assert_eq!(super::support::bytes(&bench.db()), before);
}

// An operation that waits for a worker is done by a dashboard that has the means; one without leaves it alone.
#[test]
fn what_waits_for_a_worker_is_done_by_a_dashboard_with_the_means() {
    let bench = Bench::with(3);
    bench.dlq(&["replay", "--all", "--execute", "--enqueue"]).exits(0);
    let (child, _) = listening(&bench, &["serve", "--listen", "127.0.0.1:0", "--allow-actions", "--exec", "true"]);
    until("the replay", || bench.json(&["ops"])["operations"][0]["status"] == "done");
    assert_eq!(bench.count("recovered"), 3);
    stop(child);
}

#[test]
fn who_is_not_let_in_sees_nothing() {
    let bench = Bench::with(1);
    bench.dlq(&["serve", "--listen", "0.0.0.0:0"]).exits(1).warns("nobody would have to log in");
    bench.dlq(&["serve", "--tokens", "nowhere"]).exits(1).warns("nowhere");
    bench.dlq(&["serve", "--exec", "true"]).exits(2).warns("--allow-actions");
    bench.dlq(&["serve", "--new-token", "ada", "--role", "king"]).exits(2).warns("viewer, operator, admin");
    bench.dlq(&["serve", "--new-token", "ada"]).exits(0).says("ada viewer ");
    let made = bench.dlq(&["serve", "--new-token", "ada", "--role", "admin", "--tokens", "tokens"]).exits(0);
    let (token, file) = (made.out.trim(), std::fs::read_to_string(bench.path("tokens")).unwrap());
    assert!(file.starts_with("ada admin ") && !file.contains(token), "{file}");
    assert_eq!(std::fs::metadata(bench.path("tokens")).unwrap().permissions().mode() & 0o777, 0o600);
    let (child, address) =
        listening(&bench, &["serve", "--listen", "127.0.0.1:0", "--tokens", "tokens", "--allow-actions"]);
    assert!(!get(&address, "").starts_with("HTTP/1.1 200"));
    assert!(get(&address, &format!("authorization: Bearer {token}\r\n")).starts_with("HTTP/1.1 200"));
    stop(child);
    until("the end", || TcpStream::connect(&address).is_err());
}
