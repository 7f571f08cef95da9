//! A batch over an LLM API in which no failed job vanishes.
//!
//! Without a base URL it talks to a server inside the process that misbehaves in every way; without a job file it makes a
//! small batch. What was given up waits in the database: look at it with `summary`, and replay it with `replay --execute`
//! once the cause is fixed (the server inside the process then is). The key comes from `GEMINI_API_KEY` and goes nowhere
//! but into a header.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use clap::{Parser, Subcommand};
use dlq_sqlite::SqliteStore;
use reqwest::Url;
use reqwest::header::HeaderValue;
use retry_runtime::dead_letter::{
    DeadLetterStore, Filter, Order, PageRequest, Parking, ReplayError, ReplayJob, ReplayReport, Replayer,
};
use retry_runtime::{Classify, GaveUp, StatusRules, hints, retry};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use support::plan::{Plan, SAMPLE_SEED};
use support::progress::{Progress, one_line, tell};
use support::server::Server;
use support::{http, time};
use tokio::sync::mpsc;

mod support;

#[derive(Parser)]
#[command(about = "Runs a batch of prompts; what fails is parked, and replayed later")]
struct Arguments {
    /// Jobs, one JSON object a line: {"id": "...", "model": "...", "prompt": "..."}
    #[arg(long, value_name = "FILE.jsonl", global = true)]
    jobs: Option<PathBuf>,
    /// The dead-letter database
    #[arg(long, value_name = "PATH", default_value = "gemini_pipeline.db", global = true)]
    db: PathBuf,
    /// The API; without it, a server inside this process that misbehaves
    #[arg(long, value_name = "URL", global = true)]
    base_url: Option<Url>,
    /// Jobs at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..), global = true)]
    concurrency: u16,
    /// Makes every wait that much shorter
    #[arg(long, value_name = "F", value_parser = time::parse_scale, global = true)]
    time_scale: Option<f64>,
    /// No bar and no lines of progress
    #[arg(long, global = true)]
    no_progress: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Copy, Subcommand)]
enum Command {
    /// Runs the jobs (what is done without a command)
    Run,
    /// Says what is owed, by error class
    Summary,
    /// Says what a replay would do, or does it; a letter that fails five replays is abandoned
    Replay {
        /// Really replays
        #[arg(long)]
        execute: bool,
        /// At most so many letters, the one longest unseen first
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
}

/// What decides: status first, then words of the message, else unknown.
const RULES: StatusRules = StatusRules::new()
    .permanent(&[400, 403, 404, 422])
    .permanent_words(&["INVALID_ARGUMENT", "FAILED_PRECONDITION", "SAFETY", "BLOCKED"])
    .retryable(&[429, 500, 502, 503, 504])
    .retryable_words(&["DEADLINE_EXCEEDED", "UNAVAILABLE"]);

#[derive(Debug, thiserror::Error, Classify)]
enum GeminiError {
    #[error("{status} {message}")]
    #[classify(status = status, message = message, rules = RULES, retry_after = retry_after)]
    Refused { status: u16, message: String, retry_after: Option<Duration> },
    #[error("the answer has no text: {message}")]
    #[classify(message = message, rules = RULES)]
    NoText { message: String },
    #[error("timed out: {0}")]
    #[classify(retryable, class = "timeout")]
    TimedOut(String),
    #[error("connection failed: {0}")]
    #[classify(retryable, class = "connection")]
    Connection(String),
}

/// A job, and the line it came in: that line is what is parked.
#[derive(Debug)]
struct Job {
    id: String,
    model: String,
    prompt: String,
    line: Box<RawValue>,
}

impl Job {
    fn parse(line: Box<RawValue>) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Fields {
            id: String,
            model: String,
            prompt: String,
        }
        let Fields { id, model, prompt } = serde_json::from_str(line.get())?;
        Ok(Self { id, model, prompt, line })
    }
}

struct Gemini {
    client: reqwest::Client,
    base: Url,
    key: Option<String>,
    store: SqliteStore,
}

/// What letters of [`generate`] are called: its `name`.
const KIND: &str = "gemini.generate";

/// At most 4 attempts; after failed attempt n a wait of min(2^n, 30) seconds and up to one more.
#[retry(
    name = "gemini.generate",
    max_retries = 3,
    base_delay = "2s",
    max_delay = "31s",
    jitter = "1s",
    unknown = retry,
    sleep = time::sleep,
    dead_letter(sink = &gemini.store, job_id = job.id, payload = job.line, model = job.model),
)]
async fn generate(gemini: &Gemini, job: &Job) -> Result<String, GaveUp<GeminiError>> {
    gemini.ask(&job.model, &job.prompt).await
}

impl Gemini {
    async fn ask(&self, model: &str, prompt: &str) -> Result<String, GeminiError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["v1beta", "models", &format!("{model}:generateContent")]);
        }
        let mut request =
            self.client.post(url).json(&json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}));
        if let Some(Ok(mut key)) = self.key.as_deref().map(HeaderValue::from_str) {
            key.set_sensitive(true);
            request = request.header("x-goog-api-key", key);
        }
        let answer = request.send().await.map_err(|error| self.broken(error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = answer.text().await.map_err(|error| self.broken(error))?;
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        if !status.is_success() {
            return Err(self.refused(status.as_u16(), &json, &text, http::retry_after(&headers)));
        }
        match json.pointer("/candidates/0/content/parts/0/text") {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(GeminiError::NoText { message: self.safe(&text) }),
        }
    }

    fn refused(&self, status: u16, json: &Value, text: &str, header: Option<Duration>) -> GeminiError {
        let field = |name: &str| json.pointer(&format!("/error/{name}")).and_then(Value::as_str);
        let message = match (field("status"), field("message")) {
            (None, None) => self.safe(text),
            (name, message) => self.safe(&format!("{}: {}", name.unwrap_or("-"), message.unwrap_or("-"))),
        };
        // The header is the older way to say it; where both stand, the longer one is safe.
        let retry_after = hints::retry_info(json).max(header);
        GeminiError::Refused { status, message, retry_after }
    }

    fn broken(&self, error: reqwest::Error) -> GeminiError {
        let timed_out = error.is_timeout();
        let told = self.safe(&http::describe(error));
        if timed_out { GeminiError::TimedOut(told) } else { GeminiError::Connection(told) }
    }

    /// A server may echo what it was sent; the key must not get into a letter that way.
    fn safe(&self, text: &str) -> String {
        match self.key.as_deref() {
            Some(key) if !key.is_empty() => text.replace(key, "[key]"),
            _ => text.to_owned(),
        }
    }
}

impl Parked {
    fn new(job: &Job, gave_up: &GaveUp<GeminiError>) -> Self {
        let (kept, place) = match gave_up.parking() {
            Some(Parking::Parked { .. }) => (true, "parked".to_owned()),
            Some(parking) => (parking.is_kept(), parking.to_string()),
            None => (false, "LOST".to_owned()),
        };
        Self { kept, line: format!("{} {place}: {gave_up}", job.id) }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(factor) = arguments.time_scale {
        time::scale_waits(factor);
    }
    let done = match arguments.command.unwrap_or(Command::Run) {
        Command::Run => run(&arguments).await,
        Command::Summary => summary(&arguments.db).await,
        Command::Replay { execute, limit } => replay(&arguments, execute, limit).await,
    };
    done.unwrap_or_else(|error| {
        eprintln!("gemini_pipeline: {error}");
        ExitCode::FAILURE
    })
}

type Done = Result<ExitCode, Box<dyn Error>>;

async fn run(arguments: &Arguments) -> Done {
    let jobs = match &arguments.jobs {
        Some(file) => read_jobs(file)?,
        None => (1..=100).map(sample_job).collect::<Result<_, _>>()?,
    };
    let server = local_server(arguments, Plan::seeded(SAMPLE_SEED)).await?;
    let gemini = Arc::new(connect(arguments, server.as_ref(), SqliteStore::open(&arguments.db)?)?);
    let total = jobs.len();
    let jobs = Arc::new(jobs);
    let next = Arc::new(AtomicUsize::new(0));
    let (ended, mut endings) = mpsc::channel(64);
    for _ in 0..arguments.concurrency {
        let (gemini, jobs, next, ended) = (Arc::clone(&gemini), Arc::clone(&jobs), Arc::clone(&next), ended.clone());
        tokio::spawn(async move {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let ending = generate(&gemini, job).await.map_err(|gave_up| Parked::new(job, &gave_up));
                if ended.send(ending).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(ended);
    let mut progress = Progress::new(total, !arguments.no_progress);
    let (mut ok, mut parked) = (0, 0);
    while let Some(ending) = endings.recv().await {
        match ending {
            Ok(_) => ok += 1,
            Err(Parked { kept, line }) => {
                parked += usize::from(kept);
                progress.say(&line);
            }
        }
        progress.step(&format!("ok={ok} parked={parked}"));
    }
    progress.finish();
    // Whatever is missing - a worker that panicked, a letter that neither store nor spill took - is lost, and says so.
    let lost = total - ok - parked;
    if parked > 0 && !arguments.no_progress {
        tell(&format!("letters are in {}; look at them with `summary`, then `replay`", arguments.db.display()));
    }
    println!("{}", gemini.store.summary().await?);
    println!("jobs={total} ok={ok} parked={parked} lost={lost}");
    Ok(if lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A job that was given up, in a line for people.
struct Parked {
    kept: bool,
    line: String,
}

async fn summary(db: &Path) -> Done {
    println!("{}", SqliteStore::options(db).open_read_only()?.summary().await?);
    Ok(ExitCode::SUCCESS)
}

async fn replay(arguments: &Arguments, execute: bool, limit: u32) -> Done {
    let store = SqliteStore::options(&arguments.db).create(false).open()?;
    let mut replayer = Replayer::new(store.clone()).limit(limit.into());
    let server = local_server(arguments, Plan::good()).await?;
    if execute {
        let gemini = Arc::new(connect(arguments, server.as_ref(), store)?);
        replayer = replayer.execute().on(KIND, move |letter| again(Arc::clone(&gemini), letter));
    } else {
        let mut parked = Filter::parked();
        parked.kinds.push(KIND.to_owned());
        for letter in store.list(parked, PageRequest::first(Order::LongestUnseenFirst, limit)).await?.rows {
            let due = letter.not_before.is_none_or(|at| at <= SystemTime::now());
            let what = if due { "would replay" } else { "not due yet" };
            let (job, class, attempts) = (one_line(&letter.job_id), letter.error_class, letter.attempts);
            println!("{what} {job} {class}, {attempts} attempts so far");
        }
        replayer = replayer.on(KIND, async |_| Ok::<_, ReplayError>(()));
    }
    let report = replayer.run().await?;
    println!("{report}");
    let ReplayReport { scanned, recovered, still_failing, dry_run, .. } = report;
    let dry_run = if dry_run { "yes" } else { "no" };
    println!("scanned={scanned} recovered={recovered} still_failing={still_failing} dry_run={dry_run}");
    Ok(ExitCode::SUCCESS)
}

/// The annotated function itself does the job again: inside a replay its failure is the replay's, not a second letter.
async fn again(gemini: Arc<Gemini>, letter: ReplayJob) -> Result<String, ReplayError> {
    let line: Box<RawValue> = letter.payload()?;
    let job = Job::parse(line).map_err(|error| ReplayError::not_started(format!("no job: {error}")))?;
    Ok(generate(&gemini, &job).await?)
}

/// The server inside the process, where no other is named.
async fn local_server(arguments: &Arguments, plan: Plan) -> std::io::Result<Option<Server>> {
    match arguments.base_url {
        Some(_) => Ok(None),
        None => Server::start(plan).await.map(Some),
    }
}

fn connect(arguments: &Arguments, server: Option<&Server>, store: SqliteStore) -> Result<Gemini, Box<dyn Error>> {
    let base = match (&arguments.base_url, server) {
        (Some(url), _) => url.clone(),
        (None, Some(server)) => server.url().parse()?,
        (None, None) => return Err("a base URL is needed".into()),
    };
    if !matches!(base.scheme(), "http" | "https") {
        return Err(format!("--base-url: {}: http or https is needed", base.scheme()).into());
    }
    // Without a key, for servers that want none.
    let key = std::env::var("GEMINI_API_KEY").ok().filter(|key| !key.is_empty());
    if key.as_deref().is_some_and(|key| HeaderValue::from_str(key).is_err()) {
        return Err("GEMINI_API_KEY: no header can carry it: letters, digits and signs on one line are needed".into());
    }
    Ok(Gemini { client: http::client(http::time_limit(server.is_some()), 0)?, base, key, store })
}

fn read_jobs(file: &Path) -> Result<Vec<Job>, Box<dyn Error>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let job = |(at, line): (usize, &str)| {
        let parsed = serde_json::from_str(line).and_then(Job::parse);
        parsed.map_err(|error| format!("{}:{}: no job: {error}", file.display(), at + 1).into())
    };
    let jobs = lines.map(job).collect::<Result<Vec<Job>, Box<dyn Error>>>()?;
    let mut seen = HashSet::new();
    for Job { id, .. } in jobs.iter().filter(|job| !seen.insert(job.id.as_str())) {
        tell(&one_line(&format!("{}: job id {id:?} stands twice: the two share one letter", file.display())));
    }
    Ok(jobs)
}

fn sample_job(n: u32) -> Result<Job, serde_json::Error> {
    let line = json!({"id": format!("job-{n:03}"), "model": "gemini-small", "prompt": format!("prompt {n}")});
    Job::parse(serde_json::value::to_raw_value(&line)?)
}
