//! `dlq replay`: dry, by a command, over HTTP, by the application's workers.

use super::support::{Bench, usual};

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{OperationRunner, ReplayError, ReplayJob};

#[test]
fn a_replay_is_dry_unless_told() {
    let bench = Bench::with(7);
    bench
        .dlq(&["replay", "--all"])
        .exits(0)
        .says("dry run: 7 of 7 matching, nothing was changed")
        .says("5 timeouts: likely to pass")
        .says("2 permanent: will fail again unless edited or forced")
        .says("dlq replay --all --execute --exec CMD...");
    bench.dlq(&["replay", "--all", "--exec", "touch", "ran"]).exits(0).says("dry run");
    assert!(!bench.path("ran").exists());
    bench.dlq(&["replay", "--all", "--exclude-permanent"]).exits(0).says("5 of 7 matching");
    assert_eq!(bench.count("parked"), 7);
}

#[test]
fn a_command_gets_the_payload_and_who_it_is_for() {
    let bench = Bench::with(2);
    let script = bench.script("job", "printf '%s|%s|%s|%s|' \"$DLQ_JOB_ID\" \"$DLQ_KIND\" \"$DLQ_IDEMPOTENCY_KEY\" \"$DLQ_FENCE\" >> seen; cat >> seen; echo >> seen");
    bench
        .dlq(&["replay", "--all", "--execute", "--exec", &script.display().to_string(), "--an-option"])
        .exits(0)
        .says("2 of 2 matching recovered")
        .says("done: 2 recovered");
    let seen = std::fs::read_to_string(bench.path("seen")).unwrap();
    let lines: Vec<Vec<&str>> = seen.lines().map(|line| line.split('|').collect()).collect();
    assert_eq!(
        (lines[0][0], lines[0][1], lines[0][3], lines[0][4]),
        ("page-0", "summarise", "1", "{\"page\":0,\"token\":\"s3cret-0\"}")
    );
    assert!(lines[0][2].ends_with(".1") && lines[1][0] == "page-1", "{lines:?}");
    assert_eq!(bench.count("recovered"), 2);
    bench.dlq(&["replay", "--all", "--execute", "--exec", "true"]).exits(0).says("0 of 0 matching");
}

// 0 recovered; 75 try later; 126 and 127 stop; any other stays parked
#[test]
fn the_exit_status_of_a_command_decides() {
    let cases = [
        ("exit 3", 1, "still failing", "unknown:exit_3", "parked"),
        ("echo the reason >&2; exit 1", 1, "still failing", "unknown:exit_1", "parked"),
        ("kill -9 $$", 1, "still failing", "unknown:signal_9", "parked"),
        ("exit 75", 1, "not started", "exhausted:timeout", "parked"),
        ("exit 126", 1, "paused", "exhausted:timeout", "parked"),
        ("exit 127", 1, "paused", "exhausted:timeout", "parked"),
        ("exit 0", 0, "1 recovered", "exhausted:timeout", "recovered"),
    ];
    for (body, code, said, class, state) in cases {
        let bench = Bench::with(1);
        let script = bench.script("job", body);
        let ran = bench
            .dlq(&["replay", "--all", "--execute", "--exec", &script.display().to_string()])
            .exits(code)
            .says(said);
        let shown = bench.json(&["show", "page-0"]);
        assert_eq!(
            (&shown["letter"]["error_class"], &shown["letter"]["status"]),
            (&class.into(), &state.into()),
            "{body}: {ran:?}"
        );
        // Trying later and stopping give the replay back.
        let counted = u64::from(said == "still failing");
        assert_eq!(
            shown["letter"]["replays"].as_u64().unwrap(),
            if state == "recovered" { 1 } else { counted },
            "{body}"
        );
        if body.starts_with("echo") {
            assert!(shown["letter"]["error_message"].as_str().unwrap().contains("exit 1: the reason"), "{shown}");
        }
    }
    let bench = Bench::with(3);
    bench
        .dlq(&["replay", "--all", "--execute", "--exec", "no-such-command"])
        .exits(1)
        .says("cannot run `no-such-command`")
        .says("2 pending, 1 not started")
        .says("--resume");
    let shown = bench.json(&["show", "page-0"]);
    assert_eq!(shown["letter"]["replays"], 0, "a command that is not there uses no replay up");
}

// The first real letter is a probe
#[test]
fn a_broken_command_fails_once() {
    let bench = Bench::with(9);
    let script = bench.script("job", "echo x >> ran; exit 1").display().to_string();
    bench
        .dlq(&["replay", "--all", "--execute", "--concurrency", "4", "--exec", &script])
        .exits(1)
        .says("the first letter, a probe, was not recovered")
        .says("1 still failing");
    assert_eq!(std::fs::read_to_string(bench.path("ran")).unwrap().lines().count(), 1);
    bench.dlq(&["replay", "--all", "--execute", "--no-probe", "--exec", &script]).exits(1).says("9 still failing");
}

// Stops at a failure ratio of 0.5 after 20 unless told otherwise
#[test]
fn a_replay_stops_when_half_of_it_fails() {
    let bench = Bench::with(40);
    let script = bench.script("job", "exit 1").display().to_string();
    let by = |more: &[&str]| {
        bench.dlq(&[&["replay", "--all", "--execute", "--yes", "--no-probe"], more, &["--exec", &script]].concat())
    };
    by(&[]).exits(1).says("20 still failing").says("20 pending").says("the limit is a share of 0.5");
    by(&["--stop-at-failure-ratio", "1", "--stop-after", "5"]).exits(1).says("5 still failing");
    by(&["--canary"]).exits(1).says("1 still failing");
    by(&["--stop-at-failure-ratio", "0"]).exits(1).says("40 still failing").says("done");
}

#[test]
fn what_was_paused_goes_on() {
    let bench = Bench::with(6);
    let script = bench.script("job", "test -e fixed || exit 1").display().to_string();
    let ran = bench.dlq(&["replay", "--all", "--execute", "--exec", &script]).exits(1).says("paused");
    let op = bench.json(&["ops"])["operations"][0]["operation"].as_str().unwrap().to_owned();
    ran.says(&format!("to go on: dlq replay --resume {op} --exec {script}"));
    std::fs::write(bench.path("fixed"), "").unwrap();
    bench.dlq(&["replay", "--resume", &op]).exits(2).warns("by which means");
    // The letter that failed has its outcome: all others are recovered.
    bench
        .dlq(&["replay", "--resume", &op[..18], "--exec", &script])
        .exits(1)
        .says("5 of 6 matching recovered")
        .says("done");
    bench.dlq(&["replay", "--resume", &op, "--exec", &script]).exits(1).warns("is done");
    bench.dlq(&["ops", "show", &op]).exits(0).says("still failing").says("6 of 6 members");
    bench.dlq(&["replay", "--resume", "nothing", "--exec", &script]).exits(1).warns("no operation `nothing`");
}

#[test]
fn an_operation_is_left_to_the_workers_and_steered() {
    let bench = Bench::with(4);
    bench
        .dlq(&["replay", "--all", "--execute", "--enqueue", "--reason", "quota is back"])
        .exits(0)
        .says("4 letters waiting for a worker");
    let op = bench.json(&["ops"])["operations"][0]["operation"].as_str().unwrap().to_owned();
    bench.dlq(&[]).exits(0).says("waiting for a worker");
    bench.dlq(&["ops", "pause", &op]).exits(0).says("paused");
    bench.dlq(&["ops", "pause", &op]).exits(1).warns("cannot be paused");
    bench.dlq(&["ops", "resume", &op]).exits(0).says("pending").says("dlq replay --resume");
    bench.fill(|store, bench| {
        let runner =
            OperationRunner::new(store.clone()).on("summarise", |_: ReplayJob| async { Ok::<(), ReplayError>(()) });
        bench.wait(runner.run(op.clone())).unwrap();
    });
    assert_eq!(bench.count("recovered"), 4);
    bench.dlq(&["ops", "cancel", &op]).exits(1).warns("cannot be cancelled");
    bench.dlq(&["ops"]).exits(0).says("4 recovered").says("ada@");
}

/// The headers of a request, and its body.
type Came = (BTreeMap<String, String>, String);

/// A server that answers by the job's id: what came, and how it answers.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Came>>>,
}

fn server(answer: impl Fn(&str) -> String + Send + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jobs?key=hidden", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_thread = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let mut headers = BTreeMap::from([("request".to_owned(), line.trim().to_owned())]);
            loop {
                line.clear();
                reader.read_line(&mut line).unwrap();
                let Some((name, value)) = line.trim().split_once(':') else { break };
                headers.insert(name.to_lowercase(), value.trim().to_owned());
            }
            let mut body = vec![0; headers.get("content-length").map_or(0, |n| n.parse().unwrap())];
            reader.read_exact(&mut body).unwrap();
            let said = answer(&headers["dlq-job-id"]);
            of_thread.lock().unwrap().push((headers, String::from_utf8(body).unwrap()));
            stream.write_all(said.as_bytes()).unwrap();
        }
    });
    Server { url, seen }
}

fn status(code: u16, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {code} X\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

// Judged by StatusRules::HTTP
#[test]
fn a_server_does_jobs_and_is_judged_by_its_status() {
    let bench = Bench::with(7);
    let server = server(|job| match job {
        "page-0" => status(204, "", ""),
        "page-1" => status(503, "retry-after: 7200\r\n", "too \x1b[2Jbusy"),
        "page-2" => status(404, "", ""),
        "page-3" => status(422, "", "nonsense"),
        "page-4" => status(302, "location: /elsewhere\r\n", ""),
        _ => status(200, "", "ok"),
    });
    std::fs::write(bench.path("headers"), "Authorization: Bearer s3cret\n\nX-From: dlq\n").unwrap();
    let ran = bench
        .dlq(&["replay", "--all", "--execute", "--http", &server.url, "--http-headers", "headers"])
        .exits(1)
        .says("3 of 7 matching recovered")
        .says("3 recovered, 1 gone, 3 still failing");
    assert!(!ran.out.contains("s3cret") && !ran.err.contains("s3cret"), "{ran:?}");
    let shown = |job: &str| bench.json(&["show", job])["letter"].clone();
    assert_eq!(
        (&shown("page-1")["error_class"], &shown("page-2")["closed_reason"]),
        (&"exhausted:503".into(), &"gone".into())
    );
    assert!(shown("page-1")["not_before"].is_string(), "the hint of the server");
    assert_eq!(
        (&shown("page-3")["error_class"], &shown("page-3")["disposition"]),
        (&"permanent:422".into(), &"permanent".into())
    );
    assert_eq!(shown("page-4")["error_class"], "unknown:302");
    let seen = server.seen.lock().unwrap();
    let (headers, body) = &seen[0];
    assert_eq!(
        (headers["request"].as_str(), body.as_str()),
        ("POST /jobs?key=hidden HTTP/1.1", "{\"page\":0,\"token\":\"s3cret-0\"}")
    );
    assert_eq!(
        (headers["authorization"].as_str(), headers["dlq-fence"].as_str(), headers["x-from"].as_str()),
        ("Bearer s3cret", "1", "dlq")
    );
    assert!(headers["idempotency-key"].ends_with(".1"));
}

#[test]
fn where_nobody_listens_the_operation_stops() {
    let bench = Bench::with(3);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bench
        .dlq(&["replay", "--all", "--execute", "--http", &format!("http://{free}/")])
        .exits(1)
        .says("nobody listens")
        .says("paused")
        .says("2 pending");
    assert_eq!(bench.json(&["show", "page-0"])["letter"]["replays"], 0);
    std::fs::write(bench.path("headers"), "s3cret without a colon\n").unwrap();
    let ran = bench
        .dlq(&["replay", "--all", "--execute", "--http", "http://x/", "--http-headers", "headers"])
        .exits(2)
        .warns("line 1");
    assert!(!ran.err.contains("s3cret"), "{ran:?}");
}

// D12: a server's hint is obeyed unless forced
#[test]
fn what_is_not_due_waits() {
    let bench = Bench::with(1);
    bench.fill(|store, bench| {
        let mut hinted = usual(10);
        hinted.not_before = Some(SystemTime::now() + Duration::from_secs(7_200));
        bench.park(store, hinted);
    });
    bench.dlq(&["replay", "--all"]).exits(0).says("earliest ");
    bench
        .dlq(&["replay", "--all", "--execute", "--exec", "true"])
        .exits(1)
        .says("1 of 2 matching recovered")
        .says("1 not due");
    bench
        .dlq(&["replay", "--all", "--execute", "--force", "--exec", "true"])
        .exits(0)
        .says("1 of 1 matching recovered");
}

#[test]
fn a_job_that_takes_too_long_is_killed() {
    let bench = Bench::with(1);
    bench
        .dlq(&["replay", "--all", "--execute", "--timeout", "50ms", "--exec", "sleep", "600"])
        .exits(1)
        .says("1 still failing");
    assert_eq!(bench.json(&["show", "page-0"])["letter"]["class"], "timeout");
}
