//! What is named has to be there: a typo is no success.

use retry_runtime::dead_letter::{Aggregate, Filter, GroupKey, Order, PageRequest};

use super::Meant;
use crate::exit::Failure;
use crate::stores::Store;
use crate::text;

/// So many names are told.
const TOLD: usize = 8;

/// Names as like as this are told first (Jaro-Winkler, 0 to 1).
const ALIKE: f64 = 0.8;

type Values = fn(&mut Filter) -> &mut Vec<String>;

/// What letters are named by, the option that says so, and where a filter has it.
const NAMED: &[(&str, &str, GroupKey, Values)] = &[
    ("kind", "kind", GroupKey::Kind, |filter| &mut filter.kinds),
    ("class", "class", GroupKey::Class, |filter| &mut filter.classes),
    ("error class", "error-class", GroupKey::ErrorClass, |filter| &mut filter.error_classes),
    ("group", "group", GroupKey::Fingerprint, |filter| &mut filter.fingerprints),
    ("model", "model", GroupKey::Model, |filter| &mut filter.models),
];

/// Refuses names that no letter of the store has, in whatever state; and puts whole groups in the place of their beginnings.
/// An empty store has no names: nothing is refused.
///
/// # Errors
/// Which name, and which there are; a beginning that several groups have.
pub(super) async fn named(store: &Store, mut meant: Meant) -> Result<Meant, Failure> {
    if !is_any(store, Filter::all()).await? {
        return Ok(meant);
    }
    for (what, option, key, values) in NAMED {
        for nth in 0..values(&mut meant.filter).len() {
            let Some(value) = values(&mut meant.filter).get(nth).cloned() else { continue };
            let mut one = Filter::all();
            values(&mut one).push(value.clone());
            if is_any(store, one).await? {
                continue;
            }
            let there = store.aggregate(Aggregate::new(Filter::all(), [*key])).await?;
            let mut names: Vec<String> = there.into_iter().filter_map(|group| group.keys.into_iter().next()).collect();
            names.retain(|name| !name.is_empty());
            let begun: Vec<&String> = names.iter().filter(|name| name.starts_with(&value)).collect();
            match (key, begun.as_slice()) {
                (GroupKey::Fingerprint, [whole]) => {
                    let whole = (*whole).clone();
                    if let Some(place) = values(&mut meant.filter).get_mut(nth) {
                        *place = whole;
                    }
                }
                (GroupKey::Fingerprint, [_, _, ..]) => {
                    let several: Vec<String> = begun.iter().take(TOLD).map(|name| text::line(name)).collect();
                    return Err(Failure::failed(format!(
                        "`{}` begins several groups: {}",
                        text::line(&value),
                        several.join(", ")
                    )));
                }
                _ => return Err(Failure::failed(unknown(store, what, option, &value, names))),
            }
        }
    }
    for job in &meant.filter.job_ids {
        let mut one = Filter::all();
        one.job_ids.push(job.clone());
        if !is_any(store, one).await? {
            let job = text::line(job);
            return Err(Failure::failed(format!(
                "no letter of a job `{job}` in {}: --id takes the beginning of a job's id too",
                store.shown()
            )));
        }
    }
    Ok(meant)
}

async fn is_any(store: &Store, filter: Filter) -> Result<bool, Failure> {
    Ok(!store.list(filter, PageRequest::first(Order::NewestFirst, 1)).await?.rows.is_empty())
}

fn unknown(store: &Store, what: &str, option: &str, value: &str, mut names: Vec<String>) -> String {
    let likeness = |name: &String| strsim::jaro_winkler(name, value);
    // The store says the most frequent first; what is alike goes before that.
    names.sort_by(|a, b| {
        let (a, b) = (likeness(a), likeness(b));
        if a.max(b) < ALIKE { std::cmp::Ordering::Equal } else { b.total_cmp(&a) }
    });
    let said = format!("no letter of {what} `{}` in {}", text::line(value), store.shown());
    let meant = match names.first().filter(|name| likeness(name) >= ALIKE) {
        Some(first) => format!("; did you mean --{option} {}?", text::line(first)),
        None => String::new(),
    };
    let told: Vec<String> = names.iter().take(TOLD).map(|name| text::cut(name, 60)).collect();
    let there = match names.len().saturating_sub(TOLD) {
        _ if told.is_empty() => format!("no letter there has a {what}"),
        0 => format!("there are: {}", told.join(", ")),
        more => format!("there are: {} and {more} more", told.join(", ")),
    };
    format!("{said}{meant}\n  {there}")
}
