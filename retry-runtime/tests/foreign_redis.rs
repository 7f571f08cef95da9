//! Verdicts about redis' errors.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test may fail

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use redis::{ErrorKind, RedisError};
use retry_runtime::Disposition::{Permanent, Retryable, Unknown};
use retry_runtime::classify::of_chain;
use retry_runtime::{Classify, Disposition, Verdict};

fn parts(error: &RedisError) -> (Disposition, &'static str, bool) {
    let verdict = error.classify();
    (verdict.disposition, verdict.class, verdict.outcome_unknown)
}

/// What the server says, as the client reads it.
fn answered(line: &str) -> RedisError {
    redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap().extract_error().unwrap_err()
}

#[test]
fn every_answer_of_a_server() {
    for (line, disposition, class) in [
        ("LOADING Redis is loading the dataset in memory", Retryable, "unavailable"),
        ("CLUSTERDOWN The cluster is down", Retryable, "unavailable"),
        ("MASTERDOWN Link with MASTER is down", Retryable, "unavailable"),
        ("NOREPLICAS Not enough good replicas to write.", Retryable, "unavailable"),
        ("MISCONF Errors writing to the AOF file", Retryable, "unavailable"),
        ("UNBLOCKED force unblock from blocking operation", Retryable, "unavailable"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Retryable, "busy"),
        ("BUSY Redis is busy running a script.", Retryable, "busy"),
        ("ERR max number of clients reached", Retryable, "busy"),
        ("MOVED 3999 127.0.0.1:6381", Retryable, "moved"),
        ("ASK 3999 127.0.0.1:6381", Retryable, "moved"),
        ("OOM command not allowed when used memory > 'maxmemory'.", Retryable, "out_of_memory"),
        ("READONLY You can't write against a read only replica.", Unknown, "read_only"),
        ("NOAUTH Authentication required.", Permanent, "unauthorized"),
        ("WRONGPASS invalid username-password pair", Permanent, "unauthorized"),
        ("NOPERM this user has no permissions", Permanent, "permission_denied"),
        ("NOSCRIPT No matching script.", Permanent, "not_found"),
        ("BUSYKEY Target key name already exists.", Permanent, "already_exists"),
        ("BUSYGROUP Consumer Group name already exists", Permanent, "already_exists"),
        ("ERR unknown command", Permanent, "invalid_request"),
        ("EXECABORT Transaction discarded", Permanent, "invalid_request"),
        ("CROSSSLOT Keys don't hash to the same slot", Permanent, "invalid_request"),
        ("WRONGTYPE Operation against a key holding the wrong kind", Permanent, "invalid_request"),
        ("NOTBUSY No scripts in execution right now.", Permanent, "invalid_request"),
        ("NOSUB not subscribed", Permanent, "invalid_request"),
        ("UNKILLABLE the script already executed write commands", Permanent, "invalid_request"),
        ("MYMODULE says no", Unknown, "redis"),
    ] {
        // an answer is an answer: nothing of it was done
        assert_eq!(parts(&answered(line)), (disposition, class, false), "{line}");
    }
}

#[test]
fn kinds_without_an_answer() {
    for (kind, disposition, class, outcome_unknown) in [
        (ErrorKind::Parse, Retryable, "connection", true),
        (ErrorKind::Io, Retryable, "connection", true),
        (ErrorKind::AuthenticationFailed, Permanent, "unauthorized", false),
        (ErrorKind::UnexpectedReturnType, Permanent, "invalid_data", false),
        (ErrorKind::InvalidClientConfig, Permanent, "configuration", false),
        (ErrorKind::EmptySentinelList, Permanent, "configuration", false),
        (ErrorKind::RESP3NotSupported, Permanent, "configuration", false),
        (ErrorKind::Client, Permanent, "invalid_request", false),
        (ErrorKind::MasterNameNotFoundBySentinel, Retryable, "unavailable", false),
        (ErrorKind::NoValidReplicasFoundBySentinel, Retryable, "unavailable", false),
        (ErrorKind::ClusterConnectionNotFound, Retryable, "unavailable", false),
    ] {
        assert_eq!(parts(&(kind, "text").into()), (disposition, class, outcome_unknown), "{kind:?}");
    }
}

#[test]
fn input_and_output_say_what_was_sent() {
    let of = |kind: io::ErrorKind| parts(&RedisError::from(io::Error::from(kind)));
    assert_eq!(of(io::ErrorKind::ConnectionReset), (Retryable, "connection", true));
    assert_eq!(of(io::ErrorKind::TimedOut), (Retryable, "timeout", true));
    assert_eq!(of(io::ErrorKind::ConnectionRefused), (Retryable, "connection", false));
    assert_eq!(of(io::ErrorKind::PermissionDenied), (Permanent, "permission_denied", false));
    let hidden = io::Error::other(RedisError::from(io::Error::from(io::ErrorKind::BrokenPipe)));
    assert_eq!(of_chain(&hidden), Verdict::retryable("connection").outcome_unknown());
}

/// Answers commands by their first word; `DROP` ends the connection.
fn serve(stream: &TcpStream) -> Option<()> {
    let (mut lines, mut out) = (BufReader::new(stream), stream);
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let words: usize = line.trim().strip_prefix('*')?.parse().ok()?;
        let mut command = String::new();
        for word in 0..words {
            let mut length = String::new();
            lines.read_line(&mut length).ok()?;
            let mut bytes = vec![0; length.trim().strip_prefix('$')?.parse::<usize>().ok()? + 2];
            lines.read_exact(&mut bytes).ok()?;
            if word == 0 {
                String::from_utf8(bytes).ok()?.trim().clone_into(&mut command);
            }
        }
        let reply = match command.as_str() {
            "DROP" => return None,
            "BUSY" => "-TRYAGAIN later\r\n",
            "WRONG" => "-WRONGTYPE never\r\n",
            "EXEC" => "-EXECABORT Transaction discarded\r\n",
            _ => "+OK\r\n",
        };
        out.write_all(reply.as_bytes()).ok()?;
    }
}

fn connection() -> redis::Connection {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let _hung_up = serve(&stream);
        }
    });
    redis::Client::open(format!("redis://{address}/")).unwrap().get_connection().unwrap()
}

#[test]
fn a_connection_lost_after_the_command_may_have_done_the_work() {
    let error = redis::cmd("DROP").exec(&mut connection()).unwrap_err();
    assert_eq!(parts(&error), (Retryable, "connection", true), "{error}");
}

#[test]
fn a_pipeline_that_failed_in_part_was_done_in_part() {
    let run = |commands: &[&str]| {
        let mut pipe = redis::pipe();
        for command in commands {
            pipe.cmd(command);
        }
        pipe.exec(&mut connection()).unwrap_err()
    };
    assert_eq!(parts(&run(&["SET", "BUSY"])), (Retryable, "busy", true));
    assert_eq!(parts(&run(&["BUSY", "WRONG", "BUSY"])), (Permanent, "invalid_request", true));
}

#[test]
fn a_transaction_that_is_not_run_does_nothing() {
    let run = |command: &str| redis::pipe().atomic().cmd("SET").cmd(command).exec(&mut connection()).unwrap_err();
    assert_eq!(parts(&run("BUSY")), (Retryable, "busy", false));
    assert_eq!(parts(&run("WRONG")), (Permanent, "invalid_request", false));
}
