//! What readers of the dashboard cost those who park: 64 of them read a page a second each while 1,000 letters a second are
//! parked, and the same without them. `cargo run --release --example dashboard_readers -- --seconds 60 --rounds 3`.
//!
//! Parking is open-loop: letters come at their times whether the ones before are kept or not, and a latency counts from the
//! time a letter was due. The dashboard and its readers are processes of their own, as they are where it matters.
// A measurement fails by panicking.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::cast_possible_truncation)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use dlq_cli::serve::{Dashboard, Identity, Role, listen};
use dlq_sqlite::SqliteStore;
use futures_util::future::join_all;
use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink as _, Parking, Payload};
use retry_runtime::{Disposition, StopReason};

/// The pages that are read, in turn.
const PAGES: &[&str] = &["/", "/letters?q=owed", "/groups", "LETTER", "/operations", "/counters", "/audit", "/letters"];

const CLASSES: &[&str] = &["timeout", "rate_limit", "dns", "connect", "reset", "server", "parse", "quota"];

struct Options {
    seconds: u64,
    rounds: u64,
    letters: u64,
    readers: u64,
    rate: u64,
}

impl Options {
    fn read() -> Self {
        let mut options = Self { seconds: 20, rounds: 1, letters: 100_000, readers: 64, rate: 1_000 };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_default().parse().unwrap();
            match name.as_str() {
                "--seconds" => options.seconds = value,
                "--rounds" => options.rounds = value,
                "--letters" => options.letters = value,
                "--readers" => options.readers = value,
                "--rate" => options.rate = value,
                other => panic!("{other}: accepted are --seconds, --rounds, --letters, --readers, --rate"),
            }
        }
        options
    }
}

fn letter(n: u64, at: SystemTime) -> DeadLetter {
    let class = CLASSES[(n % 8) as usize];
    let kind = ["fetch", "store", "summarise"][(n % 3) as usize];
    let mut letter = DeadLetter::new(kind, StopReason::Exhausted, at);
    letter.job_id = Some(format!("job-{n}"));
    letter.class = Some(class.to_owned());
    letter.disposition = Disposition::Retryable;
    letter.error_type = "shop::FetchError".into();
    letter.error_message =
        format!("{class}: no answer of host {} in time", ["a", "b", "c", "d", "e"][(n % 5) as usize]);
    letter.payload = Payload::Json(format!(r#"{{"page":{n},"text":"{}"}}"#, "x".repeat(200)));
    letter.attempts = 3;
    letter
}

/// How long things took.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    /// In milliseconds.
    fn at(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        #[allow(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a list")]
        let place = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(place).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
    }

    fn line(&mut self) -> String {
        let [half, most, worst] = [0.5, 0.99, 1.0].map(|share| self.at(share));
        format!("p50 {half:>6.2} ms  p99 {most:>7.2} ms  worst {worst:>8.2} ms")
    }
}

/// Parks at a steady rate; the latencies, and how many letters were not kept.
fn park(runtime: &tokio::runtime::Runtime, store: &SqliteStore, options: &Options, first: u64) -> (Times, u64) {
    let (times, lost) = (Arc::new(Mutex::new(Times::default())), Arc::new(Mutex::new(0)));
    let (begun, now) = (Instant::now(), SystemTime::now());
    let mut waiting = Vec::new();
    for n in 0..options.seconds * options.rate {
        let due = begun + Duration::from_nanos(n * 1_000_000_000 / options.rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let ticket = store.submit(letter(first + n, now + due.duration_since(begun)));
        let (times, lost) = (Arc::clone(&times), Arc::clone(&lost));
        waiting.push(runtime.spawn(async move {
            let parking = ticket.await;
            times.lock().unwrap().0.push(due.elapsed());
            *lost.lock().unwrap() += u64::from(!matches!(parking, Parking::Parked { .. }));
        }));
    }
    runtime.block_on(join_all(waiting));
    let (times, lost) = (std::mem::take(&mut *times.lock().unwrap()), *lost.lock().unwrap());
    (times, lost)
}

/// This program again, as something else.
fn child(role: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(role).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The dashboard as `dlq serve` has it, until its input ends.
async fn serve(path: &Path) {
    let open = || SqliteStore::options(path).open_read_only().unwrap();
    let dashboard = Dashboard::new(open()).numbers_by(open()).open_to(Identity::new("ann", Role::Viewer));
    let listening = listen(dashboard, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    println!("{}", listening.address());
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    listening.run(async { drop(end.await) }).await;
}

/// One request on a connection that is kept; its status.
fn get(stream: &mut BufReader<TcpStream>, path: &str) -> std::io::Result<u16> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes())?;
    let (mut status, mut length, mut line) = (0, 0, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
            status = rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        } else if let Some((name, value)) = line.split_once(':') {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
        } else if line == "\r\n" {
            break;
        }
    }
    std::io::copy(&mut stream.take(length), &mut std::io::sink())?;
    Ok(status)
}

/// One reader: a page a second, each at its time.
fn reader(address: &str, n: u64, of: u64, seconds: u64, letter: &str) -> Vec<(usize, Duration, bool)> {
    let begun = Instant::now() + Duration::from_millis(n * 1_000 / of);
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    let mut read = Vec::new();
    for second in 0..seconds {
        let due = begun + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let page = ((n + second) % PAGES.len() as u64) as usize;
        let path = if PAGES[page] == "LETTER" { format!("/letters/{letter}") } else { PAGES[page].to_owned() };
        let answer = get(&mut stream, &path);
        read.push((page, due.elapsed(), matches!(answer, Ok(200))));
        if answer.is_err() {
            stream = BufReader::new(TcpStream::connect(address).unwrap());
        }
    }
    read
}

/// All readers; a line for each page they read.
fn read(address: &str, readers: u64, seconds: u64, letter: &str) {
    let threads: Vec<_> = (0..readers)
        .map(|n| {
            let (address, letter) = (address.to_owned(), letter.to_owned());
            std::thread::spawn(move || reader(&address, n, readers, seconds, &letter))
        })
        .collect();
    for thread in threads {
        for (page, took, well) in thread.join().unwrap() {
            println!("{page} {} {well}", took.as_micros());
        }
    }
}

/// The readers of a round, and what they found.
fn readers_of(server: &mut Option<(Child, String)>, path: &Path, options: &Options, letter: &str) -> Child {
    let (_, address) = server.get_or_insert_with(|| {
        let mut child = child("serve", &[path.to_str().unwrap()]);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().to_owned())
    });
    child("read", &[address, &options.readers.to_string(), &options.seconds.to_string(), letter])
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => runtime.block_on(serve(Path::new(&arguments[2]))),
        Some("read") => {
            read(&arguments[2], arguments[3].parse().unwrap(), arguments[4].parse().unwrap(), &arguments[5]);
        }
        _ => return measure(&runtime, &Options::read()),
    }
    ExitCode::SUCCESS
}

fn measure(runtime: &tokio::runtime::Runtime, options: &Options) -> ExitCode {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("jobs.db");
    let store = SqliteStore::open(&path).unwrap();
    let (now, mut some) = (SystemTime::now(), String::new());
    for from in (0..options.letters).step_by(4_096) {
        let all = (from..options.letters.min(from + 4_096)).map(|n| store.submit(letter(n, now)));
        for parking in runtime.block_on(join_all(all)) {
            let Parking::Parked { letter_id } = parking else { panic!("{parking}") };
            some = letter_id;
        }
    }
    let (mut alone, mut beside, mut pages) = (Times::default(), Times::default(), BTreeMap::new());
    let (mut server, mut next, mut lost, mut failed) = (None, options.letters, 0, 0);
    for _ in 0..options.rounds {
        for with in [false, true] {
            let mut reading = with.then(|| readers_of(&mut server, &path, options, &some));
            let (mut times, missing) = park(runtime, &store, options, next);
            next += options.seconds * options.rate;
            lost += missing;
            if with { &mut beside } else { &mut alone }.0.append(&mut times.0);
            let Some(reading) = &mut reading else { continue };
            let mut found = String::new();
            reading.stdout.take().unwrap().read_to_string(&mut found).unwrap();
            reading.wait().unwrap();
            for line in found.lines() {
                let parts: Vec<_> = line.split(' ').collect();
                let took = Duration::from_micros(parts[1].parse().unwrap());
                pages.entry(parts[0].parse::<usize>().unwrap()).or_insert_with(Times::default).0.push(took);
                failed += u64::from(parts[2] != "true");
            }
        }
    }
    if let Some((mut child, _)) = server {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
    let read: usize = pages.values().map(|times| times.0.len()).sum();
    println!(
        "{} letters, then {} a second, {} rounds of {} s",
        options.letters, options.rate, options.rounds, options.seconds
    );
    println!("parking, nobody reads    {}", alone.line());
    println!("parking, {:>3} readers     {}", options.readers, beside.line());
    for (page, times) in &mut pages {
        println!("page {:<19} {}", PAGES[*page], times.line());
    }
    println!("{read} pages, {failed} failed; {lost} letters not parked");
    println!("p99 of parking: {:.2} of the same without readers", beside.at(0.99) / alone.at(0.99).max(f64::EPSILON));
    store.close(Duration::from_secs(10));
    if failed + lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
