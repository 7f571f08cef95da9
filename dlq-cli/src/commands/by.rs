//! By which means jobs are done again, as options.

use std::path::PathBuf;
use std::time::Duration;

use crate::exit::Failure;
use crate::means::{Exec, Http, Means, TIMEOUT};
use crate::{text, times};

/// By which means.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "By which means")]
pub(crate) struct ByArgs {
    /// A command for each letter, to the end of the line or `;`: payload on stdin; `DLQ_JOB_ID`, `DLQ_KIND`,
    /// `DLQ_IDEMPOTENCY_KEY`, `DLQ_FENCE` in the environment; exit 0 recovered, 75 try later, 126 and 127 stop, any other
    /// stays parked
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, value_terminator = ";", conflicts_with = "http")]
    exec: Vec<String>,
    /// A POST of the payload with `Idempotency-Key`; 2xx is recovered
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// A file of headers for `--http`, a line each: for secrets
    #[arg(long, value_name = "FILE", requires = "http")]
    http_headers: Option<PathBuf>,
    /// One job may take so long
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    timeout: Option<Duration>,
    /// Show what the commands write to stdout, on stderr
    #[arg(long, requires = "exec")]
    show_output: bool,
}

impl ByArgs {
    /// The means, where one was said.
    pub(super) fn means(&self) -> Result<Option<Means>, Failure> {
        let timeout = self.timeout.unwrap_or(TIMEOUT);
        if let Some(url) = &self.http {
            return Http::new(url, self.http_headers.as_deref(), timeout).map(Means::Http).map(Some);
        }
        if self.exec.is_empty() {
            return Ok(None);
        }
        Ok(Some(Means::Exec(Exec::new(self.exec.clone(), timeout).showing(self.show_output))))
    }

    /// The command that goes on with an operation, ready for a shell. What may be secret is no argument.
    pub(super) fn resume(&self, op: &str) -> String {
        let quoted = |word: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
            let is_plain = !word.is_empty() && word.chars().all(plain);
            if is_plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
        };
        let mut words = vec![format!("dlq replay --resume {op}")];
        if let Some(url) = &self.http {
            words.push(format!("--http {}", quoted(url)));
        }
        if let Some(file) = &self.http_headers {
            words.push(format!("--http-headers {}", quoted(&file.to_string_lossy().into_owned())));
        }
        if !self.exec.is_empty() {
            words.push(format!("--exec {}", self.exec.iter().map(quoted).collect::<Vec<_>>().join(" ")));
        }
        text::cut(&words.join(" "), 2_000)
    }
}
