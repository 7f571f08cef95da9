//! Memory: child processes that list, export and replay a large file, and say how much they ever held.

use std::path::Path;
use std::process::Command;

use dlq_sqlite::{Durability, SqliteStore};
use retry_runtime::dead_letter::{
    Actor, BulkOperations, DeadLetterStore, Exporter, Filter, ItemOutcome, OperationRequest, OperationRunner, Order,
    PageRequest, Verb,
};
use tokio::runtime::{Builder, Runtime};

use super::report::Report;

/// In MiB.
const GOAL: f64 = 64.0;

pub(crate) fn measure(path: &Path, letters: u32, report: &mut Report) {
    for work in ["list", "export", "plan", "replay"] {
        let began = std::time::Instant::now();
        let output = Command::new(std::env::current_exe().unwrap()).args(["child", work]).arg(path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{work}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let mut words = text.split_whitespace();
        let (done, kib): (u64, f64) = (words.next().unwrap().parse().unwrap(), words.next().unwrap().parse().unwrap());
        let detail = format!("{done} letters in {:.0} s", began.elapsed().as_secs_f64());
        assert!(done >= u64::from(letters) * 9 / 10, "{work}: only {done} letters");
        report.at_most(&format!("to {work} them"), kib / 1_024.0, GOAL, &detail);
    }
}

/// Does the work, then says how many letters and how many KiB.
pub(crate) fn child(work: &str, path: &Path) {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let done = match work {
        "list" => list(&runtime, path),
        "export" => export(&runtime, path),
        "plan" => plan(&runtime, path),
        "replay" => replay(&runtime, path),
        other => panic!("no work `{other}`"),
    };
    println!("{done} {}", peak());
}

fn list(runtime: &Runtime, path: &Path) -> u64 {
    let store = SqliteStore::options(path).open_read_only().unwrap();
    let (mut done, mut page) = (0, PageRequest::first(Order::NewestFirst, 1_000));
    loop {
        let found = runtime.block_on(store.list(Filter::all(), page.clone())).unwrap();
        done += found.rows.len() as u64;
        page.after = found.next;
        if page.after.is_none() {
            return done;
        }
    }
}

fn export(runtime: &Runtime, path: &Path) -> u64 {
    let store = SqliteStore::options(path).open_read_only().unwrap();
    let mut exporter = Exporter::new(store, Filter::all());
    let mut lines = 0;
    while let Some(some) = runtime.block_on(exporter.next()).unwrap() {
        lines += some.lines().count() as u64;
    }
    // The first and the last line are no letters.
    lines - 2
}

/// What a replay would do, and how the letters divide.
fn plan(runtime: &Runtime, path: &Path) -> u64 {
    let store = SqliteStore::options(path).open_read_only().unwrap();
    let plan = runtime.block_on(store.plan(OperationRequest::new(Verb::Replay, Filter::all()))).unwrap();
    plan.matched
}

fn replay(runtime: &Runtime, path: &Path) -> u64 {
    // How long it takes is not asked here.
    let store = SqliteStore::options(path).durability(Durability::Normal).reserve(false).open().unwrap();
    let mut request = OperationRequest::new(Verb::Replay, Filter::all());
    request.options.concurrency = 64;
    let actor = Actor::new("bench", "memory");
    let operation = runtime.block_on(store.start(request, actor)).unwrap();
    let mut runner = OperationRunner::new(store);
    for kind in 0..5 {
        runner = runner.on(format!("kind{kind}"), |_| async { Ok::<(), std::io::Error>(()) });
    }
    let operation = runtime.block_on(runner.run(operation.id)).unwrap();
    operation.counts.get(ItemOutcome::Recovered)
}

/// The largest this process ever was, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
