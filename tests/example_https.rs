//! The pipeline against a real https endpoint: what the machine trusts is asked, anything else is a failed connection.
#![allow(clippy::expect_used)] // a helper of a test fails as a test does

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use helpers::{Outcome, Scratch, example, run};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

mod helpers;

/// A certificate for `localhost` that signs itself, and its key: for this test alone.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Answers every request like Gemini, over TLS.
fn serve() -> Result<SocketAddr, Box<dyn Error>> {
    let certificate = CertificateDer::from_pem_file(fixture("localhost-cert.pem"))?;
    let key = PrivateKeyDer::from_pem_file(fixture("localhost-key.pem"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let session = ServerConnection::new(Arc::clone(&config)).expect("the configuration is whole");
            // A client that does not trust us hangs up: that is its outcome to tell.
            drop(answer(StreamOwned::new(session, connection)));
        }
    });
    Ok(address)
}

fn answer(mut stream: StreamOwned<ServerConnection, TcpStream>) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    // The prompt is the last thing in the body.
    while !request.ends_with(b"}]}") {
        let read = stream.read(&mut piece)?;
        request.extend(piece.iter().take(read));
    }
    let body = r#"{"candidates": [{"content": {"parts": [{"text": "hello"}]}}]}"#;
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Without any root certificate https cannot work; plain http does.
#[tokio::test]
async fn a_machine_without_certificates_still_speaks_http() -> Outcome {
    let scratch = Scratch::new();
    let mut command = example("image_archive");
    command.env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere").args(["--time-scale", "0.001"]);
    let run = run(command.arg("--db").arg(scratch.path("archive.db"))).await?;
    assert!(run.status.success() && !run.last_line().starts_with("fetched=0"), "{run:?}");
    assert!(run.stderr.contains("https will not work"), "{run:?}");
    Ok(())
}

#[tokio::test]
async fn https_works_and_checks_the_certificate() -> Outcome {
    let scratch = Scratch::new();
    let jobs = scratch.lines("jobs.jsonl", [r#"{"id": "a", "model": "m", "prompt": "p"}"#]);
    let url = format!("https://localhost:{}", serve()?.port());
    for (trusted, last_line) in
        [("localhost-cert.pem", "jobs=1 ok=1 parked=0 lost=0"), ("", "jobs=1 ok=0 parked=1 lost=0")]
    {
        let mut command = example("gemini_pipeline");
        command.arg("--jobs").arg(&jobs).arg("--db").arg(scratch.path("dead.db")).env_remove("SSL_CERT_FILE");
        if !trusted.is_empty() {
            command.env("SSL_CERT_FILE", fixture(trusted));
        }
        let run = run(command.args(["--base-url", &url, "--time-scale", "0.001"])).await?;
        assert_eq!(run.last_line(), last_line, "{run:?}");
        assert_eq!(run.stderr.contains("certificate"), trusted.is_empty(), "{run:?}");
    }
    Ok(())
}
