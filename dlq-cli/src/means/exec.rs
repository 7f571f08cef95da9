//! Doing a job again by a command.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use retry_runtime::dead_letter::{Failure, ReplayError, ReplayJob};
use retry_runtime::{Disposition, StopReason};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// So much of the end of stderr is kept as the error's text.
const SAID: usize = 1_500;

/// The type of error of what a command failed of.
pub(crate) const BY_EXEC: &str = "dlq --exec";

/// The exit status that asks for another try later (`EX_TEMPFAIL`).
const LATER: i32 = 75;

/// A command that does one job: the payload on stdin, `DLQ_JOB_ID`, `DLQ_KIND`, `DLQ_IDEMPOTENCY_KEY` and `DLQ_FENCE` in its
/// environment. Exit 0: recovered. 75: try later. 126, 127, or a command that is not there: the operation stops. Any other,
/// and a signal: the letter stays parked.
#[derive(Clone, Debug)]
pub struct Exec {
    command: Vec<String>,
    timeout: Duration,
    shows: bool,
}

impl Exec {
    /// A command with its arguments; no shell is asked.
    pub fn new(command: Vec<String>, timeout: Duration) -> Self {
        Self { command, timeout, shows: false }
    }

    /// What it writes to stdout goes to this process's stderr; else it is thrown away.
    #[must_use]
    pub fn showing(mut self, shows: bool) -> Self {
        self.shows = shows;
        self
    }

    pub(super) fn shown(&self) -> String {
        self.command.join(" ")
    }

    pub(super) async fn run(self, job: ReplayJob) -> Result<(), ReplayError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(ReplayError::stop("no command was given"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("DLQ_JOB_ID", without_nul(&job.job_id))
            .env("DLQ_KIND", without_nul(&job.kind))
            .env("DLQ_IDEMPOTENCY_KEY", without_nul(&job.idempotency_key))
            .env("DLQ_FENCE", job.fence.to_string())
            .env("DLQ_LETTER_ID", without_nul(&job.letter_id))
            .stdin(Stdio::piped())
            .stdout(if self.shows { Stdio::from(std::io::stderr()) } else { Stdio::null() })
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // Ctrl-C in the terminal is for this command, which lets jobs under way end.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| ReplayError::stop(format!("cannot run `{program}`: {error}{}", shell(program))))?;
        match tokio::time::timeout(self.timeout, attend(&mut child, job.json().unwrap_or_default())).await {
            Ok((status, said)) => judge(status, &said),
            Err(_) => {
                let _killed = child.kill().await;
                let mut failure = failure("timeout", &format!("killed after {}", crate::times::rough(self.timeout)));
                failure.disposition = Disposition::Retryable;
                Err(ReplayError::failed(failure))
            }
        }
    }
}

/// A line for a shell was meant as one.
fn shell(program: &str) -> &'static str {
    let is_line = program.contains(|c: char| c.is_whitespace() || ";|&<>$`".contains(c));
    if is_line { "; no shell is asked: for a line of one say --exec sh -c '...'" } else { "" }
}

/// A variable cannot hold what the system ends its text by.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Feeds it, listens, and waits.
async fn attend(child: &mut Child, payload: &str) -> (std::io::Result<ExitStatus>, String) {
    let stdin = child.stdin.take();
    let feed = async move {
        if let Some(mut stdin) = stdin {
            // A command that does not read all of it is free not to.
            let _fed = stdin.write_all(payload.as_bytes()).await;
            let _ended = stdin.shutdown().await;
        }
    };
    let stderr = child.stderr.take();
    let listen = async move {
        match stderr {
            Some(stderr) => end_of(stderr).await,
            None => Vec::new(),
        }
    };
    // A grandchild may keep stderr open for ever: what counts is the command's own end.
    let waited = async {
        let status = child.wait().await;
        (status, tokio::time::Instant::now())
    };
    tokio::pin!(feed, listen, waited);
    let (mut fed, mut heard, mut status) = (false, None, None);
    loop {
        tokio::select! {
            () = &mut feed, if !fed => fed = true,
            bytes = &mut listen, if heard.is_none() => heard = Some(bytes),
            (ended, _) = &mut waited, if status.is_none() => status = Some(ended),
            () = tokio::time::sleep(Duration::from_millis(500)), if status.is_some() => break,
        }
        if heard.is_some() && status.is_some() {
            break;
        }
    }
    let status = status.unwrap_or_else(|| Err(std::io::Error::other("it did not end")));
    (status, String::from_utf8_lossy(&heard.unwrap_or_default()).into_owned())
}

/// The last bytes of a stream, read to its end.
async fn end_of(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        kept.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if kept.len() > 4 * SAID {
            kept.drain(..kept.len() - SAID);
        }
    }
    if kept.len() > SAID {
        kept.drain(..kept.len() - SAID);
    }
    kept
}

fn failure(class: &str, message: &str) -> Failure {
    let mut failure = Failure::new(StopReason::Unknown, Disposition::Unknown, message);
    failure.class = Some(class.to_owned());
    failure.error_type = BY_EXEC.into();
    failure
}

fn judge(status: std::io::Result<ExitStatus>, said: &str) -> Result<(), ReplayError> {
    let status =
        status.map_err(|error| ReplayError::not_started(format!("nobody knows how the command ended: {error}")))?;
    let said = said.trim();
    let with = |how: &str| if said.is_empty() { how.to_owned() } else { format!("{how}: {said}") };
    match status.code() {
        Some(0) => Ok(()),
        Some(LATER) => Err(ReplayError::not_started(with("exit 75, try later"))),
        Some(126) => Err(ReplayError::stop(with("exit 126, the command cannot be executed"))),
        Some(127) => Err(ReplayError::stop(with("exit 127, the command was not found"))),
        Some(code) => Err(ReplayError::failed(failure(&format!("exit_{code}"), &with(&format!("exit {code}"))))),
        None => {
            let signal = signal(status);
            Err(ReplayError::failed(failure(&format!("signal_{signal}"), &with(&format!("killed by signal {signal}")))))
        }
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0)
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> i32 {
    0
}
