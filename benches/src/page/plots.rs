//! The page's plots: one bar for each contender.

use std::error::Error;
use std::fs;
use std::path::Path;

use plotters::prelude::*;
use retry_benches::figures::{Figures, short};

use super::{Looked, Part};

/// A figure, drawn.
pub(super) struct Plot {
    /// Of the file, without its end.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) file: &'static str,
    group: &'static str,
    scenario: &'static str,
    metric: &'static str,
}

pub(super) const PLOTS: [Plot; 5] = [
    Plot {
        name: "first-success",
        title: "instructions until a first success, async",
        file: "counts",
        group: "counts",
        scenario: "first success, async",
        metric: "instructions",
    },
    Plot {
        name: "futures",
        title: "bytes of the future",
        file: "counts",
        group: "futures",
        scenario: "on tokio",
        metric: "size",
    },
    Plot {
        name: "cold-build",
        title: "first build, with tokio, seconds of CPU",
        file: "compile-cold",
        group: "cold build",
        scenario: "a program and its dependencies, dev profile",
        metric: "CPU",
    },
    Plot {
        name: "check",
        title: "cargo check, ms of CPU that a function adds",
        file: "compile-check",
        group: "check of functions",
        scenario: "N functions",
        metric: "check",
    },
    Plot {
        name: "binary",
        title: "bytes of a release program over the loop by hand",
        file: "compile-binary",
        group: "release binary",
        scenario: "a program with a retried call",
        metric: "text over hand's",
    },
];

impl Plot {
    pub(super) fn figure(&self) -> Looked {
        Looked { file: self.file, group: self.group, scenario: self.scenario, metric: self.metric }
    }
}

/// Draws what was measured, and tells what that was.
pub(super) fn draw(directory: &Path, measured: &[(&Part, Figures)]) -> Vec<&'static Plot> {
    fs::create_dir_all(directory).unwrap();
    let mut drawn = Vec::new();
    for plot in &PLOTS {
        let Some((_, figures)) = measured.iter().find(|(part, _)| part.file == plot.file) else { continue };
        let all = plot.figure().all(figures);
        if !all.is_empty() {
            bars(&directory.join(format!("{}.svg", plot.name)), plot.title, &all).unwrap();
            drawn.push(plot);
        }
    }
    drawn
}

const OURS: RGBColor = RGBColor(31, 119, 180);
const HAND: RGBColor = RGBColor(44, 160, 44);
const PEER: RGBColor = RGBColor(170, 170, 170);

fn bars(path: &Path, title: &str, bars: &[(&str, f64)]) -> Result<(), Box<dyn Error>> {
    const WIDTH: u32 = 960;
    const ROW: i32 = 30;
    const TOP: i32 = 52;
    const LEFT: i32 = 220;
    let rows = i32::try_from(bars.len())?;
    let area = SVGBackend::new(path, (WIDTH, u32::try_from(TOP + ROW * rows + 16)?)).into_drawing_area();
    area.fill(&WHITE)?;
    let text = |size: u32| ("sans-serif", size).into_font();
    area.draw(&Text::new(title, (16, 16), text(18)))?;
    let highest = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let room = f64::from(WIDTH) - f64::from(LEFT) - 110.0;
    for (row, (name, value)) in (0..).zip(bars) {
        let y = TOP + ROW * row;
        #[allow(clippy::cast_possible_truncation)] // at most the width of the sheet
        let end = LEFT + (room * value / highest) as i32;
        let colour = match *name {
            name if name.starts_with("ours") => OURS,
            name if name.starts_with("hand") => HAND,
            _ => PEER,
        };
        area.draw(&Text::new(*name, (16, y + 4), text(15)))?;
        area.draw(&Rectangle::new([(LEFT, y), (end.max(LEFT + 1), y + ROW - 10)], colour.filled()))?;
        area.draw(&Text::new(short(*value), (end.max(LEFT + 1) + 8, y + 4), text(15)))?;
    }
    area.present()?;
    Ok(())
}
