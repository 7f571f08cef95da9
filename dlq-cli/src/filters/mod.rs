//! One way to say which letters are meant: as options of a command, as a query string, as a written line.
//!
//! All three become pairs of a key and a value, and [`parse`] makes a [`Filter`] of them. Keys are the long names of the
//! options: `kind`, `class`, `error-class`, `group`, `model`, `job`, `verdict`, `status`, `since`, `until`, `id`, `limit`, `all`.

mod known;
mod written;

use std::time::SystemTime;

use retry_runtime::Disposition;
use retry_runtime::dead_letter::{Filter, LetterState};

use crate::exit::Failure;
use crate::stores::Store;
use crate::{text, times};
pub use written::{options, parse_written, word, written};

/// Every key.
pub const KEYS: &[&str] = &[
    "kind",
    "class",
    "error-class",
    "group",
    "model",
    "job",
    "verdict",
    "status",
    "since",
    "until",
    "id",
    "limit",
    "all",
];

/// The most values a filter may have of one key, and the longest value in bytes: what comes by a query string is bounded.
pub const MOST_VALUES: usize = 100;
const LONGEST: usize = 1_024;

/// Which letters, as options.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Which letters")]
pub struct FilterArgs {
    /// Only of these operations
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<String>,
    /// Only of these failure classes, for example timeout
    #[arg(long, value_name = "CLASS")]
    pub class: Vec<String>,
    /// Only of these error classes, for example permanent:403
    #[arg(long, value_name = "CLASS")]
    pub error_class: Vec<String>,
    /// Only of these failure groups, as `dlq groups` names them, or the beginning where it is unique
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Only with these labels: what the program calls the model
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,
    /// Only of these jobs, by their whole ids
    #[arg(long, value_name = "JOB")]
    pub job: Vec<String>,
    /// Only where the newest failure was judged so: retryable, permanent, gone, unknown
    #[arg(long, value_name = "VERDICT", value_delimiter = ',')]
    pub verdict: Vec<String>,
    /// Only in these states, one or several with commas: parked, replaying, abandoned, recovered, discarded; or owed for the
    /// first three
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub status: Vec<String>,
    /// Last seen then or later: 2h (ago), 2026-11-30, 2026-11-30T14:20Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Last seen before then
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only these letters: a letter's id, a job's id, or the beginning of either where it is unique
    #[arg(long, value_name = "ID")]
    pub id: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Every letter, where no other option says which
    #[arg(long)]
    pub all: bool,
}

/// Which letters, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meant {
    /// The filter; [`Filter::ids`] has the texts of `id` until [`Meant::resolve`] found the letters.
    pub filter: Filter,
    /// At most so many.
    pub limit: Option<u64>,
    /// Every letter, on purpose.
    pub all: bool,
}

impl FilterArgs {
    /// The pairs of keys and values that [`parse`] reads.
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        for (key, values) in [
            ("kind", &self.kind),
            ("class", &self.class),
            ("error-class", &self.error_class),
            ("group", &self.group),
            ("model", &self.model),
            ("job", &self.job),
            ("verdict", &self.verdict),
            ("status", &self.status),
            ("id", &self.id),
        ] {
            pairs.extend(values.iter().map(|value| (key, value.clone())));
        }
        for (key, value) in [("since", &self.since), ("until", &self.until)] {
            pairs.extend(value.iter().map(|value| (key, value.clone())));
        }
        pairs.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        if self.all {
            pairs.push(("all", "true".to_owned()));
        }
        pairs
    }

    /// Understands the options, and finds the letters of `--id` and the groups of `--group`.
    ///
    /// # Errors
    /// Wrong usage for what is not understood; a failure for an id that means none, or several, and for a name that no letter
    /// has.
    pub async fn meant(&self, store: &Store, now: SystemTime) -> Result<Meant, Failure> {
        known::named(store, self.meant_later(store, now).await?).await
    }

    /// The same, where letters with those names may still come.
    ///
    /// # Errors
    /// As [`meant`](Self::meant), but for names.
    pub async fn meant_later(&self, store: &Store, now: SystemTime) -> Result<Meant, Failure> {
        parse(self.pairs(), now).map_err(Failure::usage)?.resolve(store).await
    }
}

impl Meant {
    /// Whether something says which letters are meant: a filter, or `all`.
    pub fn is_said(&self) -> bool {
        self.all || self.filter != Filter::all()
    }

    /// Puts the ids of letters in the place of what `id` said.
    ///
    /// # Errors
    /// Where one means no letter, or several.
    pub async fn resolve(mut self, store: &Store) -> Result<Self, Failure> {
        for id in &mut self.filter.ids {
            *id = one(store, id).await?;
        }
        Ok(self)
    }
}

/// The id of the one letter that a text means.
///
/// # Errors
/// Where it means none, or several.
pub async fn one(store: &Store, meant: &str) -> Result<String, Failure> {
    let found = store.find(meant.to_owned(), 6).await?;
    match found.as_slice() {
        [row] => Ok(row.letter_id.clone()),
        [] => Err(Failure::failed(format!("no letter `{}` in {}", text::line(meant), store.shown()))),
        several => {
            let mut ids: Vec<_> = several
                .iter()
                .take(5)
                .map(|row| {
                    format!("{} (kind {}, job {})", row.letter_id, text::line(&row.kind), text::line(&row.job_id))
                })
                .collect();
            if several.len() > 5 {
                ids.push("and more".to_owned());
            }
            Err(Failure::failed(format!("`{}` means several letters:\n  {}", text::line(meant), ids.join("\n  "))))
        }
    }
}

/// Which letters, of pairs of keys and values: options, or a query string taken apart. A value of `status` or `verdict` may be
/// a list with commas. Empty values say nothing; keys that are not known are an error, as they would mean more letters than was thought.
///
/// # Errors
/// What is not understood, and what is accepted.
pub fn parse<K: AsRef<str>, V: AsRef<str>>(
    pairs: impl IntoIterator<Item = (K, V)>,
    now: SystemTime,
) -> Result<Meant, String> {
    let mut meant = Meant::default();
    for (key, value) in pairs {
        let (key, value) = (key.as_ref(), value.as_ref());
        if value.len() > LONGEST {
            return Err(format!("the value of {} has {} bytes: accepted are {LONGEST}", text::line(key), value.len()));
        }
        if value.is_empty() {
            continue;
        }
        let filter = &mut meant.filter;
        let list = match key {
            "kind" => &mut filter.kinds,
            "class" => &mut filter.classes,
            "error-class" => &mut filter.error_classes,
            "group" => &mut filter.fingerprints,
            "model" => &mut filter.models,
            "job" => &mut filter.job_ids,
            "id" => &mut filter.ids,
            "verdict" => {
                add_verdicts(&mut filter.dispositions, value)?;
                continue;
            }
            "status" => {
                add_states(&mut filter.states, value)?;
                continue;
            }
            "since" => {
                filter.since = Some(moment(key, value, now)?);
                continue;
            }
            "until" => {
                filter.until = Some(moment(key, value, now)?);
                continue;
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| *limit > 0);
                meant.limit =
                    Some(limit.ok_or_else(|| format!("limit `{}`: accepted is a number above 0", text::line(value)))?);
                continue;
            }
            "all" => {
                meant.all = value != "false";
                continue;
            }
            other => {
                return Err(format!("`{}` is no filter: accepted are {}", text::line(other), KEYS.join(", ")));
            }
        };
        if list.len() >= MOST_VALUES {
            return Err(format!("more than {MOST_VALUES} values of {key}"));
        }
        list.push(value.to_owned());
    }
    if meant.all && meant.filter != Filter::all() {
        let mut but_states = meant.filter.clone();
        but_states.states.clear();
        if but_states != Filter::all() {
            return Err("`all` means every letter, and another filter fewer: say one of them".to_owned());
        }
    }
    Ok(meant)
}

fn add_states(states: &mut Vec<LetterState>, value: &str) -> Result<(), String> {
    for word in value.split(',').map(str::trim) {
        let new = match word {
            "owed" => Filter::owed().states,
            word => vec![LetterState::parse(word).ok_or_else(|| {
                let known: Vec<_> = LetterState::ALL.iter().map(|state| state.as_str()).collect();
                format!("status `{}`: accepted are {} and owed", text::line(word), known.join(", "))
            })?],
        };
        for state in new {
            if !states.contains(&state) {
                states.push(state);
            }
        }
    }
    Ok(())
}

fn add_verdicts(verdicts: &mut Vec<Disposition>, value: &str) -> Result<(), String> {
    for word in value.split(',').map(str::trim) {
        let new = Disposition::parse(word).ok_or_else(|| {
            let known: Vec<_> = Disposition::ALL.iter().map(|verdict| verdict.as_str()).collect();
            format!("verdict `{}`: accepted are {}", text::line(word), known.join(", "))
        })?;
        if !verdicts.contains(&new) {
            verdicts.push(new);
        }
    }
    Ok(())
}

fn moment(key: &str, value: &str, now: SystemTime) -> Result<SystemTime, String> {
    times::moment(value, now).map_err(|why| format!("{key}: {why}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking
    use super::*;
    use std::time::Duration;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn options_query_strings_and_written_lines_mean_the_same() {
        let args = FilterArgs {
            kind: vec!["fetch".into(), "a \"b\"".into()],
            status: vec!["parked".into(), "abandoned".into()],
            since: Some("2026-01-02T03:04:05Z".into()),
            id: vec!["x".into()],
            model: vec!["small".into()],
            job: vec!["page 7".into()],
            verdict: vec!["retryable".into(), "unknown".into()],
            limit: Some(7),
            ..FilterArgs::default()
        };
        let by_options = parse(args.pairs(), NOW).unwrap();
        assert_eq!(by_options.filter.states, [LetterState::Parked, LetterState::Abandoned]);
        let line = format!("{} limit:7", written(&by_options.filter));
        assert_eq!(
            line,
            "kind:fetch kind:\"a \\\"b\\\"\" model:small job:\"page 7\" verdict:retryable,unknown status:parked,abandoned \
             since:2026-01-02T03:04:05Z id:x limit:7"
        );
        assert_eq!(parse_written(&line, NOW).unwrap(), by_options);
        let shell = options(&by_options.filter);
        assert_eq!(
            shell,
            "--kind fetch --kind 'a \"b\"' --model small --job 'page 7' --verdict retryable,unknown \
             --status parked,abandoned --since 2026-01-02T03:04:05Z --id x"
        );
        let query = [
            ("kind", "fetch"),
            ("kind", "a \"b\""),
            ("status", "parked,abandoned"),
            ("since", "2026-01-02T03:04:05Z"),
            ("id", "x"),
            ("job", "page 7"),
            ("model", "small"),
            ("verdict", "retryable,unknown"),
            ("limit", "7"),
            ("class", ""),
        ];
        assert_eq!(parse(query, NOW).unwrap(), by_options);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_is_accepted() {
        for (line, says) in [
            ("kinds:a", "accepted are kind, class, error-class"),
            ("status:lost", "accepted are parked, replaying"),
            ("verdict:bad", "accepted are retryable, permanent"),
            ("since:yesterday", "since: `yesterday` is no time: accepted are"),
            ("until:2026-02-30", "accepted are"),
            ("since:99999999999999999999d", "accepted are"),
            ("since:", "`since:` is followed by nothing"),
            ("job:\"\"", "`job:` is followed by nothing"),
            ("limit:0", "accepted is a number above 0"),
            ("limit:x", "accepted is a number above 0"),
            ("kind:\"a", "the quotes of `kind:` do not end"),
            ("\"a", "the quotes of a job do not end"),
            ("kind:\"a\"b", "no space follows"),
            ("all:true kind:a", "say one of them"),
        ] {
            let said = parse_written(line, NOW).unwrap_err();
            assert!(said.contains(says), "{line}: {said}");
        }
        assert!(parse([("kind", "x".repeat(2_000))], NOW).is_err());
        assert!(parse((0..200).map(|n| ("kind", n.to_string())), NOW).is_err());
        assert!(parse_written(&"x ".repeat(2_500), NOW).unwrap_err().contains("5000 bytes long: accepted are 4000"));
    }

    // No destructive command without a filter or `all`.
    #[test]
    fn nothing_said_is_not_everything() {
        assert!(!parse_written("", NOW).unwrap().is_said());
        assert!(!parse_written("limit:5", NOW).unwrap().is_said());
        assert!(parse_written("all:true", NOW).unwrap().is_said());
        assert!(parse_written("all:true status:parked", NOW).unwrap().is_said());
        let meant = parse_written("since:1h status:owed", NOW + Duration::from_secs(7_200)).unwrap();
        assert_eq!((meant.filter.states.len(), meant.filter.since), (3, Some(NOW + Duration::from_secs(3_600))));
    }
}
