//! What was measured, as a file: `target/bench/NAME.json`, one for each measurement, which the report reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde::{Deserialize, Serialize};

/// One number, and the goal that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// A table of the report: `counts`, `allocations`, `futures`, `times`, `crowd`, `compile` ...
    pub group: String,
    /// What was done: `first success, async`.
    pub scenario: String,
    /// Who did it: `hand`, `ours, attribute`, `backon` ...
    pub contender: String,
    /// What was counted: `instructions`, `instructions, thin LTO`, `time`, `time to hand's`.
    pub metric: String,
    /// Of the value: `instructions`, `ns`, `bytes`, `x` for a ratio.
    pub unit: String,
    /// The number itself.
    pub value: f64,
    /// What it has to be, as a reader wants it: `<= 62 (hand in a block + 15)`. Absent where nothing is promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Whether it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
}

impl Figure {
    /// A figure without a goal.
    #[must_use]
    pub fn new(group: &str, scenario: &str, contender: &str, metric: &str, unit: &str, value: f64) -> Self {
        Self {
            group: group.to_owned(),
            scenario: scenario.to_owned(),
            contender: contender.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            value,
            goal: None,
            ok: None,
        }
    }

    /// It has to be at most `bound`; `why` tells what the bound is made of: `hand + 16`.
    #[must_use]
    pub fn at_most(self, bound: f64, why: &str) -> Self {
        let ok = self.value <= bound;
        self.bound("<=", bound, why, ok)
    }

    /// It has to be at least `bound`.
    #[must_use]
    pub fn at_least(self, bound: f64, why: &str) -> Self {
        let ok = self.value >= bound;
        self.bound(">=", bound, why, ok)
    }

    fn bound(self, sign: &str, bound: f64, why: &str, ok: bool) -> Self {
        let bound = short(bound);
        let goal = if why.is_empty() { format!("{sign} {bound}") } else { format!("{sign} {bound} ({why})") };
        Self { goal: Some(goal), ok: Some(ok), ..self }
    }
}

/// A number with as many places as tell something: `1.08`, `37`, `1200`.
#[must_use]
pub fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.strip_suffix(".00").map_or(text.clone(), str::to_owned)
}

/// All figures of one run, and where they come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The command that found them.
    pub command: String,
    /// The day, `2026-11-30`.
    pub day: String,
    /// What it ran on.
    pub machine: Machine,
    /// Compilers, tools and crates by name.
    pub versions: BTreeMap<String, String>,
    /// The figures, in the order in which they were found.
    pub figures: Vec<Figure>,
}

/// What a run ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// How many cores the program may use.
    pub cores: u32,
    /// The kernel's name and version, and the architecture.
    pub system: String,
    /// The load of the last minute when the run ended: more than its own means that others were busy.
    pub load: f64,
}

impl Figures {
    /// No figures yet. `crates` are those whose versions matter, as `Cargo.lock` has them; rustc is always told.
    #[must_use]
    pub fn new(command: &str, crates: &[&str]) -> Self {
        let mut versions: BTreeMap<String, String> =
            crates.iter().filter_map(|name| Some(((*name).to_owned(), locked(name)?))).collect();
        versions.insert("rustc".to_owned(), output("rustc", &["--version"]));
        Self {
            command: command.to_owned(),
            day: output("date", &["-u", "+%F"]),
            machine: Machine::this(),
            versions,
            figures: Vec::new(),
        }
    }

    /// One more.
    pub fn push(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// The value of a figure.
    #[must_use]
    pub fn value(&self, group: &str, scenario: &str, contender: &str, metric: &str) -> Option<f64> {
        let is_it = |figure: &&Figure| {
            (&*figure.group, &*figure.scenario, &*figure.contender, &*figure.metric)
                == (group, scenario, contender, metric)
        };
        self.figures.iter().find(is_it).map(|figure| figure.value)
    }

    /// Those that missed their goal.
    pub fn missed(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|figure| figure.ok == Some(false))
    }

    /// Writes `target/bench/NAME.json` and tells where that is.
    pub fn write(&mut self, name: &str) -> PathBuf {
        self.machine.load = Machine::this().load;
        let path = place(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, serde_json::to_string_pretty(self).unwrap() + "\n").unwrap();
        path
    }

    /// Reads what [`write`](Self::write) wrote; nothing where that was never run.
    #[must_use]
    pub fn read(name: &str) -> Option<Self> {
        let text = fs::read_to_string(place(name)).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }
}

impl Machine {
    /// The one that this runs on.
    #[must_use]
    pub fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cpu: cpu.trim_start_matches(['\t', ' ', ':']).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap()),
            system: output("uname", &["-srm"]),
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        }
    }
}

/// `target/bench/NAME.json`, wherever cargo's target directory is.
#[must_use]
pub fn place(name: &str) -> PathBuf {
    target().join("bench").join(format!("{name}.json"))
}

/// Cargo's target directory.
#[must_use]
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The workspace's directory.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// What a program prints, or nothing where there is no such program.
#[must_use]
pub fn output(program: &str, arguments: &[&str]) -> String {
    let run = Command::new(program).args(arguments).output();
    run.map(|run| String::from_utf8_lossy(&run.stdout).trim().to_owned()).unwrap_or_default()
}

/// The version of a crate in `Cargo.lock`; the newest, where there are several.
fn locked(name: &str) -> Option<String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).ok()?;
    let before = format!("name = \"{name}\"\nversion = \"");
    let newest = lock.rfind(&before)? + before.len();
    lock[newest..].split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_tells_its_bound_and_what_it_is_made_of() {
        let figure = Figure::new("counts", "first success, async", "ours", "instructions", "instructions", 41.0);
        let near = figure.clone().at_most(52.0, "hand in a block + 15");
        assert_eq!((near.goal.as_deref(), near.ok), (Some("<= 52 (hand in a block + 15)"), Some(true)));
        assert_eq!(figure.clone().at_most(40.0, "").ok, Some(false));
        let ratio = figure.at_least(41.5, "");
        assert_eq!((ratio.goal.as_deref(), ratio.ok), (Some(">= 41.50"), Some(false)));
    }

    #[test]
    fn figures_come_back_from_their_file() {
        let mut figures = Figures::new("./bench test", &["tokio", "no such crate"]);
        assert!(figures.versions["rustc"].starts_with("rustc 1."), "{:?}", figures.versions);
        assert_eq!(figures.versions.keys().collect::<Vec<_>>(), ["rustc", "tokio"]);
        figures.push(Figure::new("g", "s", "c", "m", "ns", 1.5).at_most(2.0, ""));
        figures.push(Figure::new("g", "s", "d", "m", "ns", 3.5).at_most(2.0, ""));
        let name = format!("test-{}", std::process::id());
        let path = figures.write(&name);
        assert_eq!(Figures::read(&name), Some(figures.clone()));
        fs::remove_file(path).unwrap();
        assert_eq!(Figures::read(&name), None);
        assert_eq!(figures.value("g", "s", "c", "m"), Some(1.5));
        assert_eq!(figures.missed().map(|figure| &*figure.contender).collect::<Vec<_>>(), ["d"]);
    }
}
