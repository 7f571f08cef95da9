//! Verdicts about tokio-postgres' errors, from a server that speaks the protocol by a script.
#![cfg(feature = "tokio-postgres")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // a test may fail

use std::io;

use retry_runtime::Disposition::{Permanent, Retryable, Unknown};
use retry_runtime::classify::{of_chain, sql_state};
use retry_runtime::{Classify, Disposition};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Error, NoTls};

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn refusal(code: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0VERROR\0C{code}\0Mno\0\0").as_bytes())
}

/// Reads the start and hangs up, or answers it, then answers each
/// query or `Sync` with the next of the script, and hangs up after the last.
async fn serve(mut stream: DuplexStream, start: Vec<u8>, script: Vec<Vec<u8>>) -> io::Result<()> {
    let length = stream.read_u32().await?;
    stream.read_exact(&mut vec![0; length as usize - 4]).await?;
    stream.write_all(&start).await?;
    if start.is_empty() {
        return Ok(());
    }
    let mut answers = script.into_iter();
    loop {
        let kind = stream.read_u8().await?;
        let length = stream.read_u32().await?;
        stream.read_exact(&mut vec![0; length as usize - 4]).await?;
        if matches!(kind, b'Q' | b'S') {
            let Some(answer) = answers.next() else { return Ok(()) };
            stream.write_all(&answer).await?;
        }
    }
}

async fn connect(config: &Config, start: Vec<u8>, script: Vec<Vec<u8>>) -> Result<Client, Error> {
    let (ours, theirs) = duplex(4096);
    tokio::spawn(serve(theirs, start, script));
    let (client, connection) = config.connect_raw(ours, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn config() -> Config {
    let mut config = Config::new();
    config.user("somebody").ssl_mode(SslMode::Disable);
    config
}

async fn client(script: Vec<Vec<u8>>) -> Client {
    connect(&config(), [message(b'R', &[0; 4]), ready()].concat(), script).await.unwrap()
}

fn parts(error: &Error) -> (Disposition, &'static str, bool) {
    let verdict = error.classify();
    (verdict.disposition, verdict.class, verdict.outcome_unknown)
}

#[tokio::test]
async fn the_database_answers_with_a_code() {
    let codes = ["40001", "40P01", "08006", "53300", "57P01", "57P03", "23505", "42P01"];
    let client = client(codes.map(|code| [refusal(code), ready()].concat()).to_vec()).await;
    for code in codes {
        let error = client.batch_execute("any").await.unwrap_err();
        assert_eq!(error.classify(), sql_state(code), "{code}");
        assert_eq!(error.describe().as_deref(), Some("ERROR: no"));
        assert_eq!(error.as_db_error().unwrap().classify(), sql_state(code));
        assert_eq!(of_chain(&io::Error::other(error)), sql_state(code), "also when wrapped");
    }
}

#[tokio::test]
async fn a_connection_lost_after_the_query_may_have_done_the_work() {
    let client = client(Vec::new()).await;
    let error = client.batch_execute("any").await.unwrap_err();
    assert_eq!(parts(&error), (Retryable, "connection", true), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_is_not_made() {
    let start = |start| async { parts(&connect(&config(), start, Vec::new()).await.err().unwrap()) };
    assert_eq!(start(refusal("57P03")).await, (Retryable, "unavailable", false));
    assert_eq!(start(refusal("28P01")).await, (Permanent, "unauthorized", false));
    assert_eq!(start(ready()).await, (Retryable, "connection", true), "out of turn");
    assert_eq!(start(Vec::new()).await.1, "connection", "hung up");
    // a password is asked for and none is set; a method that the driver does not know
    assert_eq!(start(message(b'R', &3_u32.to_be_bytes())).await, (Permanent, "configuration", false));
    assert_eq!(start(message(b'R', &7_u32.to_be_bytes())).await, (Permanent, "unauthorized", false));
    let mut secret = config();
    secret.ssl_mode(SslMode::Require);
    let error = connect(&secret, b"N".to_vec(), Vec::new()).await.err().unwrap();
    assert_eq!(parts(&error), (Permanent, "tls", false), "{error:?}");
}

#[tokio::test]
async fn what_is_the_callers_fault() {
    let no_parameter = message(b't', &[0, 0]);
    let one_integer = message(b't', &[0, 1, 0, 0, 0, 23]);
    let prepared = |parameters| [message(b'1', b""), parameters, message(b'n', b""), ready()].concat();
    let nothing = [message(b'2', b""), message(b'C', b"SELECT 0\0"), ready()].concat();
    let client = client(vec![prepared(no_parameter), nothing, prepared(one_integer)]).await;
    let statement = client.prepare("a").await.unwrap();
    assert_eq!(parts(&client.query_one(&statement, &[]).await.unwrap_err()), (Permanent, "row_count", false));
    let error = client.query(&statement, &[&1]).await.unwrap_err();
    assert_eq!(parts(&error), (Permanent, "invalid_request", false), "{error}");
    let statement = client.prepare("b").await.unwrap();
    let error = client.query(&statement, &[&"text"]).await.unwrap_err();
    assert_eq!(parts(&error), (Unknown, "invalid_data", false), "{error}");
    assert_eq!(parts(&"nonsense".parse::<Config>().unwrap_err()), (Permanent, "configuration", false));
}

#[test]
fn no_connection_in_time_sent_nothing() {
    assert_eq!(parts(&Error::__private_api_timeout()), (Retryable, "timeout", false));
}
