//! One way to say which letters are meant: as options of a command, as a query string, as a written line.
//!
//! All three become pairs of a key and a value, and [`parse`] makes a [`Filter`] of them. Keys are the long names of the
//! options: `kind`, `class`, `error-class`, `group`, `status`, `since`, `until`, `id`, `limit`, `all`.

use std::time::SystemTime;

use retry_runtime::dead_letter::{Filter, LetterState};

use crate::exit::Failure;
use crate::stores::Store;
use crate::{text, times};

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
    /// Only of these failure groups, as `dlq groups` names them
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Only in these states: parked, replaying, abandoned, recovered, discarded; or owed for the first three
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

    /// Understands the options, and finds the letters of `--id`.
    ///
    /// # Errors
    /// Wrong usage for what is not understood; a failure for an id that means none, or several.
    pub async fn meant(&self, store: &Store, now: SystemTime) -> Result<Meant, Failure> {
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

/// Which letters, of pairs of keys and values: options, or a query string taken apart. A value of `status` may be a list with
/// commas. Empty values say nothing; keys that are not known are an error, as they would mean more letters than was thought.
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
            "id" => &mut filter.ids,
            "status" => {
                add_states(&mut filter.states, value)?;
                continue;
            }
            "since" => {
                filter.since = Some(times::moment(value, now)?);
                continue;
            }
            "until" => {
                filter.until = Some(times::moment(value, now)?);
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
                let known = "kind, class, error-class, group, status, since, until, id, limit, all";
                return Err(format!("`{}` is no filter: accepted are {known}", text::line(other)));
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

/// Which letters, of a written line: `kind:fetch status:parked,abandoned since:2h`. Values with spaces or quotes stand in
/// double quotes (`kind:"my job"`, with `\"` and `\\` inside).
///
/// # Errors
/// What is not understood, and what is accepted.
///
/// ```
/// use std::time::SystemTime;
/// use dlq_cli::filters::{parse_written, written};
///
/// let meant = parse_written("kind:\"my job\" status:parked", SystemTime::now()).unwrap();
/// assert_eq!(meant.filter.kinds, ["my job"]);
/// assert_eq!(written(&meant.filter), "kind:\"my job\" status:parked");
/// ```
pub fn parse_written(line: &str, now: SystemTime) -> Result<Meant, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let word = rest.split_whitespace().next().unwrap_or_default();
        let (key, _) = word
            .split_once(':')
            .ok_or_else(|| format!("`{}`: accepted is key:value, for example kind:fetch", text::line(word)))?;
        let behind = rest.get(key.len() + 1..).unwrap_or_default();
        let (value, left) = value(behind).ok_or_else(|| format!("the quotes of {} do not end", text::line(key)))?;
        if pairs.len() >= 10 * MOST_VALUES {
            return Err(format!("more than {} filters", 10 * MOST_VALUES));
        }
        pairs.push((key.to_owned(), value));
        rest = left.trim_start();
    }
    parse(pairs, now)
}

/// A value, quoted or not, and what stands behind it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end)?;
        return Some((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, quoted.get(at + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// The written line of a filter; [`parse_written`] reads it again.
pub fn written(filter: &Filter) -> String {
    let plain =
        |value: &str| !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\');
    let quoted = |value: &str| {
        if plain(value) {
            value.to_owned()
        } else {
            format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
        }
    };
    said(filter).map(|(key, value)| format!("{key}:{}", quoted(&value))).collect::<Vec<_>>().join(" ")
}

/// The same as options of a command, ready for a shell.
pub fn options(filter: &Filter) -> String {
    let plain = |value: &str| {
        !value.is_empty()
            && value.chars().all(|c| {
                c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | ',' | '@' | '%' | '+' | '=')
            })
    };
    let quoted = |value: &str| {
        if plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
    };
    said(filter).map(|(key, value)| format!("--{key} {}", quoted(&value))).collect::<Vec<_>>().join(" ")
}

/// What a filter says, in the order of the options.
fn said(filter: &Filter) -> impl Iterator<Item = (&'static str, String)> {
    let lists = [
        ("kind", &filter.kinds),
        ("class", &filter.classes),
        ("error-class", &filter.error_classes),
        ("group", &filter.fingerprints),
    ];
    let mut pairs: Vec<_> =
        lists.into_iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value.clone()))).collect();
    if !filter.states.is_empty() {
        let states: Vec<_> = filter.states.iter().map(|state| state.as_str()).collect();
        pairs.push(("status", states.join(",")));
    }
    for (key, at) in [("since", filter.since), ("until", filter.until)] {
        pairs.extend(at.map(|at| (key, times::full(at))));
    }
    pairs.extend(filter.ids.iter().map(|id| ("id", id.clone())));
    pairs.into_iter()
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
            limit: Some(7),
            ..FilterArgs::default()
        };
        let by_options = parse(args.pairs(), NOW).unwrap();
        assert_eq!(by_options.filter.states, [LetterState::Parked, LetterState::Abandoned]);
        let line = format!("{} limit:7", written(&by_options.filter));
        assert_eq!(
            line,
            "kind:fetch kind:\"a \\\"b\\\"\" status:parked,abandoned since:2026-01-02T03:04:05Z id:x limit:7"
        );
        assert_eq!(parse_written(&line, NOW).unwrap(), by_options);
        let shell = options(&by_options.filter);
        assert_eq!(
            shell,
            "--kind fetch --kind 'a \"b\"' --status parked,abandoned --since 2026-01-02T03:04:05Z --id x"
        );
        let query = [
            ("kind", "fetch"),
            ("kind", "a \"b\""),
            ("status", "parked,abandoned"),
            ("since", "2026-01-02T03:04:05Z"),
            ("id", "x"),
            ("limit", "7"),
            ("class", ""),
        ];
        assert_eq!(parse(query, NOW).unwrap(), by_options);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_is_accepted() {
        for line in
            ["kinds:a", "status:lost", "since:yesterday", "limit:0", "limit:x", "kind", "kind:\"a", "all:true kind:a"]
        {
            let said = parse_written(line, NOW).unwrap_err();
            assert!(
                said.contains("accepted") || said.contains("do not end") || said.contains("say one"),
                "{line}: {said}"
            );
        }
        assert!(parse([("kind", "x".repeat(2_000))], NOW).is_err());
        assert!(parse((0..200).map(|n| ("kind", n.to_string())), NOW).is_err());
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
