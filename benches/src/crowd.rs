//! Many tasks at once that each fail three times, on one thread and a paused clock: time and memory. Everybody runs in a
//! process of its own, and all take turns, so that a busy machine slows all.

use std::process::{Command, ExitCode};
use std::time::Instant;

use retry_benches::figures::{Figure, Figures};
use retry_benches::loops::{contenders, crowd};

use crate::counts::CRATES;
use crate::table::median;
use crate::{table, usage};

pub(crate) fn run(options: &[&str]) -> ExitCode {
    let (mut sizes, mut rounds) = (vec![100_000_u32, 1_000_000], 5_usize);
    for option in options.chunks(2) {
        let read = match option {
            ["--tasks", list] => {
                list.split(',').map(str::parse).collect::<Result<_, _>>().map(|list| sizes = list).is_ok()
            }
            ["--rounds", n] => n.parse().map(|n| rounds = n).is_ok() && rounds >= 1,
            _ => false,
        };
        if !read || sizes.contains(&0) {
            return usage(option);
        }
    }
    let mut figures = Figures::new("./bench crowd", &CRATES);
    for tasks in sizes {
        measure(tasks, rounds, &mut figures);
    }
    table::finish(figures, "crowd")
}

/// What one process found.
struct Found {
    seconds: f64,
    bytes_per_task: f64,
}

fn measure(tasks: u32, rounds: usize, figures: &mut Figures) {
    let names: Vec<&str> = contenders().iter().filter(|one| one.on_tokio.is_some()).map(|one| one.name).collect();
    let mut found: Vec<Vec<Found>> = names.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (name, found) in names.iter().zip(&mut found) {
            found.push(process(name, tasks));
        }
    }
    let scenario = format!("{tasks} tasks");
    let hand_bytes = median(found[0].iter().map(|found| found.bytes_per_task).collect());
    for (name, all) in names.iter().zip(&found) {
        // of the same round
        let ratios = all.iter().zip(&found[0]).map(|(this, hand)| this.seconds / hand.seconds).collect();
        let nanos = all.iter().map(|found| found.seconds * 1e9 / f64::from(tasks)).collect();
        let bytes = median(all.iter().map(|found| found.bytes_per_task).collect());
        let (time, ratio, memory) = (
            Figure::new("crowd", &scenario, name, "time per task", "ns", median(nanos)),
            Figure::new("crowd", &scenario, name, "time to hand's", "x", median(ratios)),
            Figure::new("crowd", &scenario, name, "memory per task", "bytes", bytes),
        );
        let promised = *name == "ours" || *name == "ours, retrying!";
        figures.push(time);
        figures.push(if promised { ratio.at_most(1.08, "") } else { ratio });
        figures.push(if promised { memory.at_most(1.02 * hand_bytes, "1.02 x hand") } else { memory });
    }
    figures.figures.sort_by_key(|figure| (figure.scenario.clone(), figure.metric.clone()));
}

fn process(contender: &str, tasks: u32) -> Found {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["crowd-child", contender, &tasks.to_string()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{contender}: {text}{}", String::from_utf8_lossy(&output.stderr));
    let (seconds, bytes) = text.trim().split_once(' ').unwrap();
    let bytes: f64 = bytes.parse().unwrap();
    Found { seconds: seconds.parse().unwrap(), bytes_per_task: bytes / f64::from(tasks) }
}

/// Runs the tasks, then says how many seconds it took and by how many bytes the process grew at its peak.
pub(crate) fn child(contender: &str, tasks: usize) {
    let loops = contenders().into_iter().find(|one| one.name == contender).unwrap().on_tokio.unwrap();
    crowd(&loops, 100); // whatever is set up once
    let before = resident();
    let start = Instant::now();
    crowd(&loops, tasks);
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds} {}", resident() - before);
}

/// The most memory that this process ever held, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}
