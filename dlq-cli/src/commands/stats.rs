//! `dlq stats`.

use retry_runtime::counters::{Day, Threshold};
use retry_runtime::dead_letter::{ArrivalKey, Arrivals, Bucket};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::table::{BAD, DIM, sparkline, styled};
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Store};
use crate::text;

/// How far back.
#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {
    /// So many days, today included
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
    /// Only this operation
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
}

/// One counter, and the days above its threshold.
struct Series {
    operation: String,
    counter: String,
    values: Vec<(Day, u64)>,
    above: Option<u64>,
}

impl Series {
    fn is_degraded(&self, n: u64) -> bool {
        self.above.is_some_and(|above| n > above)
    }
}

pub(super) async fn run(context: &Context, args: StatsArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let today = store.today();
    let from = today.plus(1 - i64::from(args.days));
    let thresholds = store.thresholds().await?;
    let mut series = Vec::new();
    for (operation, counter) in store.counters(from, today).await? {
        if args.operation.as_ref().is_some_and(|only| *only != operation) {
            continue;
        }
        let values = store.series(operation.clone(), counter.clone(), from, today).await?;
        let is_of = |threshold: &&Threshold| threshold.operation == operation && threshold.counter == counter;
        let above = thresholds.iter().find(is_of).map(|threshold| threshold.above);
        series.push(Series { operation, counter, values, above });
    }
    let parked = parked(&store, from, today).await?;
    if context.json {
        let document = |series: &Series| {
            let days: Vec<_> = series
                .values
                .iter()
                .map(|(day, n)| json!({ "day": day.to_string(), "value": n, "degraded": series.is_degraded(*n) }))
                .collect();
            json!({ "operation": series.operation, "counter": series.counter, "above": series.above, "days": days })
        };
        let counters: Vec<_> = series.iter().map(document).collect();
        let parkings: Vec<_> = parked.iter().map(|(day, n)| json!({ "day": day.to_string(), "value": n })).collect();
        print_json(
            &json!({ "store": store.shown(), "from": from.to_string(), "to": today.to_string(), "parkings": parkings, "counters": counters }),
        )?;
        return Ok(Exit::DONE);
    }
    let mut out = vec![format!("store: {}", store.shown()), format!("{from} to {today}, UTC; today is the last one")];
    let values: Vec<u64> = parked.iter().map(|(_, n)| *n).collect();
    out.push(format!(
        "\nparkings\n  {}  today {}, most {}",
        sparkline(&values),
        values.last().unwrap_or(&0),
        values.iter().max().unwrap_or(&0)
    ));
    let mut last = None;
    for one in &series {
        if last != Some(&one.operation) {
            out.push(format!("\n{}", text::line(&one.operation)));
            last = Some(&one.operation);
        }
        out.extend(lines(one));
    }
    if series.is_empty() {
        out.push("\nno daily counter in this time".to_owned());
    }
    print(&out.join("\n"))?;
    Ok(Exit::DONE)
}

fn lines(series: &Series) -> Vec<String> {
    let values: Vec<u64> = series.values.iter().map(|(_, n)| *n).collect();
    let name = text::cut(&series.counter, 24);
    let (today, most) = (values.last().copied().unwrap_or(0), values.iter().max().copied().unwrap_or(0));
    let mut lines = vec![format!("  {}  {name:<24}  today {today}, most {most}", sparkline(&values))];
    if let Some(above) = series.above {
        let marks: String = values.iter().map(|n| if series.is_degraded(*n) { '!' } else { ' ' }).collect();
        let days: Vec<String> = series
            .values
            .iter()
            .filter(|(_, n)| series.is_degraded(*n))
            .map(|(day, n)| format!("{day} ({n})"))
            .collect();
        if days.is_empty() {
            lines.push(styled(DIM, &format!("  {marks}  no day above {above}")));
        } else {
            lines.push(styled(BAD, &format!("  {marks}  degraded, above {above}: {}", days.join(", "))));
        }
    }
    lines
}

/// Parkings per day.
async fn parked(store: &Store, from: Day, to: Day) -> Result<Vec<(Day, u64)>, Failure> {
    let question = Arrivals::new(ArrivalKey::All, from.start(), to.start(), Bucket::Day);
    let mut days: std::collections::BTreeMap<Day, u64> = from.through(to).map(|day| (day, 0)).collect();
    for series in store.arrivals(question).await? {
        for (at, n) in series.counts {
            *days.entry(Day::of(at)).or_default() += n;
        }
    }
    Ok(days.into_iter().collect())
}
