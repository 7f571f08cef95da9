//! `docs/performance.md`, its plots and what the README says of it: all from the figures under `target/bench/`, and nothing else.

mod plots;
mod reasons;
mod tables;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use retry_benches::figures::{Figures, root};

use crate::usage;

/// One file of figures.
struct Part {
    /// `target/bench/NAME.json`
    file: &'static str,
    title: &'static str,
    /// What to read its tables with.
    about: &'static str,
    /// What measures it.
    command: &'static str,
}

const PARTS: [Part; 11] = [
    Part {
        file: "counts",
        title: "Instructions, allocations, sizes",
        about: "Counted by callgrind: the same every time. `hand` is the loop that everybody has written.",
        command: "./bench counts",
    },
    Part {
        file: "times",
        title: "Times",
        about: "Of a call; the ratio within the same run is what counts.",
        command: "./bench times",
    },
    Part {
        file: "crowd",
        title: "A crowd",
        about: "Tasks that each fail three times on one thread, on a paused clock.",
        command: "./bench crowd",
    },
    Part {
        file: "compile-cold",
        title: "A first build",
        about: "The processor's seconds of cargo and all compilers, from an empty target directory. `hand` is tokio alone, \
                and each of the others is built besides it.",
        command: "./bench compile --only cold",
    },
    Part {
        file: "compile-check",
        title: "`cargo check`",
        about: "What a function, or a derived enum, adds over the same one with nothing done to it, in the processor's \
                milliseconds. After an edit means the last item changed, with incremental compilation.",
        command: "./bench compile --only check",
    },
    Part {
        file: "compile-functions",
        title: "Building functions",
        about: "What a function adds over the same one with nothing done to it.",
        command: "./bench compile --only functions",
    },
    Part {
        file: "compile-binary",
        title: "Size of a program",
        about: "Code and constants of a release program with one retried call, and what a second retried function adds.",
        command: "./bench compile --only binary",
    },
    Part {
        file: "compile-expand",
        title: "Expanded lines",
        about: "What is written for a function, beyond the plain function, as the compiler prints it.",
        command: "./bench compile --only expand",
    },
    Part {
        file: "store-speed",
        title: "The store: parking and replaying",
        about: "Beside the same statements on the same tables by rusqlite alone, each commit synced; the two take turns.",
        command: "./bench store --only speed",
    },
    Part {
        file: "store-million",
        title: "The store: a large file",
        about: "The fastest of five; a page is the slowest of both orders and four depths.",
        command: "./bench store --only million",
    },
    Part {
        file: "store-memory",
        title: "The store: memory",
        about: "Of a process that does nothing else.",
        command: "./bench store --only memory",
    },
];

/// The lines around what the README quotes.
const BEGIN: &str = "<!-- written by ./bench report: begin -->\n";
const END: &str = "<!-- written by ./bench report: end -->\n";

pub(crate) fn run(options: &[&str]) -> ExitCode {
    let partial = match options {
        [] => false,
        ["--partial"] => true,
        _ => return usage(options),
    };
    let measured: Vec<(&Part, Figures)> =
        PARTS.iter().filter_map(|part| Some((part, Figures::read(part.file)?))).collect();
    let mut lacking = lacking(&measured);
    lacking.extend(reasons::lacking(&measured, reasons::WRITTEN));
    for line in &lacking {
        eprintln!("{line}");
    }
    if !(lacking.is_empty() || partial) || measured.is_empty() {
        eprintln!("nothing is written: `--partial` writes what there is");
        return ExitCode::FAILURE;
    }
    let docs = root().join("docs");
    let drawn = plots::draw(&docs.join("performance"), &measured);
    fs::write(docs.join("performance.md"), page(&measured, &drawn, reasons::WRITTEN)).unwrap();
    quote(&root().join("README.md"), &tables::quoted(&measured));
    eprintln!("written: docs/performance.md, {} plots, the README's table", drawn.len());
    ExitCode::SUCCESS
}

/// What was not measured, and how it is.
fn lacking(measured: &[(&Part, Figures)]) -> Vec<String> {
    let mut lines = Vec::new();
    for part in &PARTS {
        if !measured.iter().any(|(there, _)| there.file == part.file) {
            lines.push(format!("not measured: {}; `{}` measures it", part.title, part.command));
        }
    }
    let figures = plots::PLOTS.iter().map(plots::Plot::figure).chain(tables::QUOTED.iter().map(|(_, figure)| *figure));
    for figure in figures {
        let there = measured.iter().find(|(part, _)| part.file == figure.file);
        if let Some((part, _)) = there.filter(|(_, there)| figure.all(there).is_empty()) {
            let line = format!("{} has no `{}`; `{}` measures it", part.file, figure.path(), part.command);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// A figure of everybody.
#[derive(Clone, Copy)]
struct Looked {
    file: &'static str,
    group: &'static str,
    scenario: &'static str,
    metric: &'static str,
}

impl Looked {
    /// Who has it, and how much; a scenario that tells how many of something there are is found by what follows the number.
    fn all(self, figures: &Figures) -> Vec<(&str, f64)> {
        let is_it = |scenario: &str| {
            scenario == self.scenario
                || scenario.trim_start_matches(|c: char| c.is_ascii_digit()) == self.scenario.trim_start_matches('N')
        };
        let figures =
            figures.figures.iter().filter(|figure| figure.group == self.group && figure.metric == self.metric);
        let mut found: Vec<(&str, f64)> = Vec::new();
        for figure in figures.filter(|figure| is_it(&figure.scenario)) {
            // the last one, which is of the most
            found.retain(|(who, _)| *who != figure.contender);
            found.push((&figure.contender, figure.value));
        }
        found
    }

    fn path(self) -> String {
        format!("{}, {}, {}", self.group, self.scenario, self.metric)
    }
}

/// The whole page.
fn page(measured: &[(&Part, Figures)], drawn: &[&plots::Plot], reasons: &str) -> String {
    let mut page = String::from(
        "# Performance\n\n\
         Written by `./bench report` from what was measured; its reasons are in benches/reasons.md. Everything is measured beside \
         the same\nloop written by hand in the same run, so ratios compare from machine to machine, and nothing else does. In \
         the tables `x` is the\nratio to `hand`; a goal stands beside what has one.\n\n",
    );
    page += "## In short\n\n";
    page += BEGIN;
    page += &tables::quoted(measured);
    page += END;
    page += "\n## Goals\n\n";
    page += &tables::goals(measured);
    page += &reasons::section(measured, reasons);
    for (part, figures) in measured {
        write!(page, "\n## {}\n\n{}\n\n{}", part.title, part.about, tables::measured_on(figures)).unwrap();
        page += &tables::tables(figures);
        for plot in drawn.iter().filter(|plot| plot.file == part.file) {
            write!(page, "\n![{}](performance/{}.svg)\n", plot.title, plot.name).unwrap();
        }
    }
    page
}

/// Puts what is quoted between the lines that are there for it.
fn quote(readme: &Path, quoted: &str) {
    let text = fs::read_to_string(readme).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    fs::write(readme, format!("{before}{BEGIN}{quoted}{END}{after}")).unwrap();
}

#[cfg(test)]
mod tests;
