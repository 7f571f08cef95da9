//! The numbers, drawn.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Compared;
use crate::simulation::mean;
use crate::simulation::outage::{Outcome, SECONDS, Second, TROUBLE};

type Drawn = Result<(), Box<dyn Error>>;

/// A line or a bar, with its name.
type Line = (&'static str, Vec<(f64, f64)>);
type Bar = (&'static str, f64, String);

const WIDTH: u32 = 960;
const COLOURS: [RGBColor; 9] = [
    RGBColor(127, 127, 127),
    RGBColor(214, 39, 40),
    RGBColor(255, 127, 14),
    RGBColor(227, 119, 194),
    RGBColor(140, 86, 75),
    RGBColor(188, 189, 34),
    RGBColor(44, 160, 44),
    RGBColor(31, 119, 180),
    RGBColor(148, 103, 189),
];

pub(crate) fn draw(out: &Path, compared: &[Compared]) -> Drawn {
    let load = |second: &Second, usual: f64| second.attempts as f64 / usual;
    lines(&out.join("load.svg"), "attempts per usual request", &over_time(compared, load))?;
    let success = |second: &Second, _| 100.0 * second.answered as f64 / (second.requests as f64).max(1.0);
    lines(&out.join("success.svg"), "requests answered, %, by the second they came in", &over_time(compared, success))?;
    let amplification: Vec<Bar> = compared
        .iter()
        .map(|(strategy, runs)| (strategy.name, mean(runs.iter().map(Outcome::amplification))))
        .map(|(name, mean)| (name, mean, format!("{mean:.2}")))
        .collect();
    bars(&out.join("amplification.svg"), "attempts per request", &amplification)?;
    let recovery: Vec<Bar> = compared.iter().map(|(strategy, runs)| recovery(strategy.name, runs)).collect();
    bars(&out.join("recovery.svg"), "seconds from the end of the trouble until all is well", &recovery)
}

/// A run that did not recover counts with all the time it had.
fn recovery(name: &'static str, runs: &[Outcome]) -> Bar {
    let whole = (SECONDS - TROUBLE.end) as f64;
    let seconds = mean(runs.iter().map(|run| run.recovered_after().unwrap_or(whole)));
    let never = runs.iter().all(|run| run.recovered_after().is_none());
    (name, seconds, if never { "not at all".into() } else { format!("{seconds:.1}") })
}

/// A line for each way to retry: the mean of its runs for each second. `of` is given a second, and the requests in one on
/// average.
fn over_time(compared: &[Compared], of: impl Fn(&Second, f64) -> f64) -> Vec<Line> {
    let value = |run: &Outcome, at: usize| {
        let usual = run.seconds.iter().map(|second| second.requests).sum::<u64>() as f64 / SECONDS as f64;
        run.seconds.get(at).map_or(0.0, |second| of(second, usual))
    };
    let line =
        |runs: &[Outcome]| (0..SECONDS).map(|at| (at as f64, mean(runs.iter().map(|run| value(run, at))))).collect();
    compared.iter().map(|(strategy, runs)| (strategy.name, line(runs))).collect()
}

fn sheet(path: &Path, height: u32) -> Result<DrawingArea<SVGBackend<'_>, Shift>, Box<dyn Error>> {
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    Ok(area)
}

fn lines(path: &Path, title: &str, lines: &[Line]) -> Drawn {
    let area = sheet(path, 540)?;
    let highest = lines.iter().flat_map(|(_, points)| points).map(|(_, value)| *value).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..SECONDS as f64, 0.0..highest * 1.05)?;
    let trouble = [(TROUBLE.start as f64, 0.0), (TROUBLE.end as f64, highest * 1.05)];
    chart.draw_series([Rectangle::new(trouble, RGBColor(255, 235, 200).filled())])?;
    chart
        .configure_mesh()
        .x_desc("seconds; the service is slow where the ground is coloured")
        .light_line_style(WHITE)
        .draw()?;
    for ((name, points), colour) in lines.iter().zip(COLOURS) {
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    let position = SeriesLabelPosition::UpperRight;
    chart.configure_series_labels().position(position).background_style(WHITE.mix(0.85)).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}

fn bars(path: &Path, title: &str, bars: &[Bar]) -> Drawn {
    const ROW: i32 = 34;
    const TOP: i32 = 52;
    const LEFT: i32 = 240;
    let rows = i32::try_from(bars.len())?;
    let area = sheet(path, u32::try_from(TOP + ROW * rows + 16)?)?;
    let text = |size: u32| ("sans-serif", size).into_font();
    area.draw(&Text::new(title, (16, 16), text(18)))?;
    let highest = bars.iter().map(|(_, value, _)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let room = f64::from(WIDTH) - f64::from(LEFT) - 110.0;
    for (row, ((name, value, label), colour)) in (0..).zip(bars.iter().zip(COLOURS)) {
        let y = TOP + ROW * row;
        #[allow(clippy::cast_possible_truncation)] // at most the width of the sheet
        let end = LEFT + (room * value / highest) as i32;
        area.draw(&Text::new(*name, (16, y + 5), text(15)))?;
        area.draw(&Rectangle::new([(LEFT, y), (end.max(LEFT + 1), y + ROW - 10)], colour.filled()))?;
        area.draw(&Text::new(label.as_str(), (end + 8, y + 5), text(15)))?;
    }
    area.present()?;
    Ok(())
}
