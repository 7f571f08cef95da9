//! The example `gemini_pipeline` against a server that answers as scripted.
#![allow(dead_code)] // each test takes what it needs

use std::error::Error;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::helpers::{Run, Scratch, database, example, run};
use crate::support::plan::{Plan, Reply};
use crate::support::server::Server;

/// A pipeline with its own server, jobs and database.
pub(crate) struct Pipeline {
    pub(crate) server: Server,
    pub(crate) jobs: PathBuf,
    pub(crate) db: PathBuf,
    pub(crate) scratch: Scratch,
}

/// The line of a job whose prompt is its id.
pub(crate) fn job(id: &str) -> String {
    json!({"id": id, "model": "gemini-small", "prompt": id}).to_string()
}

impl Pipeline {
    /// Jobs that are each answered by a script.
    pub(crate) async fn new(scripts: &[(&str, Vec<Reply>)]) -> std::io::Result<Self> {
        let plan = scripts.iter().fold(Plan::good(), |plan, (id, script)| plan.script(*id, script.clone()));
        let scratch = Scratch::new();
        let jobs = scratch.lines("jobs.jsonl", scripts.iter().map(|(id, _)| job(id)));
        Ok(Self { server: Server::start(plan).await?, jobs, db: scratch.path("dead.db"), scratch })
    }

    pub(crate) fn command(&self) -> tokio::process::Command {
        let mut command = example("gemini_pipeline");
        command.arg("--db").arg(&self.db).arg("--jobs").arg(&self.jobs).arg("--no-progress");
        command.args(["--base-url", self.server.url(), "--time-scale", "0.001"]);
        command
    }

    pub(crate) async fn go(&self, arguments: &[&str]) -> Result<Run, Box<dyn Error>> {
        run(self.command().args(arguments)).await
    }
}

/// One row of the view `dead_letter`, by job id.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) error_class: String,
    pub(crate) attempts: i64,
    pub(crate) status: String,
    pub(crate) message: String,
}

pub(crate) fn row(db: &Path, job_id: &str) -> rusqlite::Result<Row> {
    database(db)?.query_row(
        "SELECT error_class, attempts, status, error_message FROM dead_letter WHERE job_id = ?1",
        [job_id],
        |row| Ok(Row { error_class: row.get(0)?, attempts: row.get(1)?, status: row.get(2)?, message: row.get(3)? }),
    )
}

pub(crate) fn count(db: &Path, condition: &str) -> rusqlite::Result<i64> {
    database(db)?.query_row(&format!("SELECT count(*) FROM dead_letter WHERE {condition}"), [], |row| row.get(0))
}

pub(crate) const GOOD: Reply = Reply::Good(0);

pub(crate) fn says(status: u16, message: &'static str) -> Vec<Reply> {
    vec![Reply::Google(status, "STATUS", message)]
}
