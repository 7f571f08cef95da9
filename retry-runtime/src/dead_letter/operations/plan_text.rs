//! A plan in one line.

use std::fmt;
use std::time::SystemTime;

use super::{Plan, PlanGroup, Prospect, Verb};
use crate::counters::{Day, Utc};

/// How a class reads behind a number: `rate_limit` as `rate limit`, and more than one of those that are nouns with an s.
fn noun(class: &str, n: u64) -> String {
    /// The last words of classes that have a plural.
    const NOUNS: &[&str] = &[
        "timeout",
        "limit",
        "error",
        "failure",
        "reset",
        "refusal",
        "rejection",
        "exception",
        "conflict",
        "crash",
        "disconnect",
        "outage",
        "overload",
    ];
    let words = class.replace('_', " ");
    let last = words.rsplit(' ').next().unwrap_or_default();
    if n == 1 || !NOUNS.contains(&last) {
        return words;
    }
    let ending = if last.ends_with('h') { "es" } else { "s" };
    format!("{words}{ending}")
}

/// The time of day, and the day where it is another one.
struct When {
    at: SystemTime,
    seen_at: SystemTime,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = Day::of(self.at);
        let second = Utc(self.at).second_of_day();
        if day != Day::of(self.seen_at) {
            write!(f, "{day} ")?;
        }
        write!(f, "{:02}:{:02} UTC", second / 3_600, second / 60 % 60)
    }
}

fn group(f: &mut fmt::Formatter<'_>, plan: &Plan, group: &PlanGroup) -> fmt::Result {
    let PlanGroup { prospect, of, n, earliest } = group;
    let class = of.as_deref().map_or_else(|| "without a class".to_owned(), |class| noun(class, *n));
    match prospect {
        Prospect::Likely => write!(f, "{n} {class}: likely to pass"),
        Prospect::NotDue => {
            write!(f, "{n} {class}: ")?;
            match earliest {
                Some(at) => write!(f, "earliest {}", When { at: *at, seen_at: plan.at }),
                None => write!(f, "not due"),
            }
        }
        Prospect::Unknown => write!(f, "{n} unknown: may fail again"),
        Prospect::Permanent => write!(f, "{n} permanent: will fail again unless edited or forced"),
        Prospect::Gone => write!(f, "{n} gone: nothing was there"),
        Prospect::Altered => write!(f, "{n} altered: skipped unless edited or forced"),
        Prospect::WithoutPayload => write!(f, "{n} without payload: skipped unless edited"),
        Prospect::Blocked => write!(f, "{n} of `{}`: blocked, no handler", of.as_deref().unwrap_or_default()),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = |n: u64| if n == 1 { "1 letter".to_owned() } else { format!("{n} letters") };
        match self.verb {
            _ if self.matched == 0 => write!(f, "no letter matches")?,
            Verb::Replay => {
                for (nth, one) in self.groups.iter().enumerate() {
                    if nth > 0 {
                        write!(f, "; ")?;
                    }
                    group(f, self, one)?;
                }
            }
            Verb::Discard => write!(f, "{}: to be discarded", letters(self.matched))?,
            Verb::Restore { more_replays: 1 } => {
                write!(f, "{}: to be parked again, with 1 more replay each", letters(self.matched))?;
            }
            Verb::Restore { more_replays } => {
                write!(f, "{}: to be parked again, with {more_replays} more replays each", letters(self.matched))?;
            }
        }
        if self.excluded > 0 {
            write!(f, "; {} permanent: excluded", self.excluded)?;
        }
        if self.abandoned > 0 {
            write!(f, "; {} abandoned: not included, restore them first", self.abandoned)?;
        }
        if self.under_way > 0 {
            write!(f, "; {} under way: not included", self.under_way)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OperationRequest, PlanRow};
    use super::*;
    use crate::dead_letter::{Filter, LetterState};
    use crate::verdict::Disposition;
    use std::time::{Duration, UNIX_EPOCH};

    /// 2026-01-02, so many seconds after midnight.
    fn today(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_767_312_000 + seconds)
    }

    fn row(class: &str, disposition: Disposition, n: u64) -> PlanRow {
        let class = (!class.is_empty()).then(|| class.to_owned());
        PlanRow { class, ..PlanRow::new(LetterState::Parked, "fetch", disposition, n) }
    }

    fn not_due(class: &str, at: SystemTime, n: u64) -> PlanRow {
        PlanRow { not_before: Some(at), ..row(class, Disposition::Retryable, n) }
    }

    fn plan(request: &OperationRequest, rows: &[PlanRow]) -> Plan {
        let mut plan = Plan::new(request, today(3_600));
        for row in rows {
            plan.add(row);
        }
        let sum: u64 = plan.groups.iter().map(|group| group.n).sum();
        assert_eq!(plan.matched, sum, "the groups add up to what matched");
        plan
    }

    fn replay() -> OperationRequest {
        OperationRequest::new(Verb::Replay, Filter::all())
    }

    // the issue's own example
    #[test]
    fn a_plan_says_what_will_probably_happen() {
        let due = today(14 * 3_600 + 20 * 60);
        let rows = [
            row("forbidden", Disposition::Permanent, 5),
            not_due("rate_limit", due + Duration::from_secs(3_600), 30),
            row("timeout", Disposition::Retryable, 600),
            not_due("rate_limit", due, 10),
            row("invalid", Disposition::Permanent, 4),
            PlanRow { kind: "other".into(), ..row("timeout", Disposition::Retryable, 12) },
        ];
        let plan = plan(&replay(), &rows);
        assert_eq!(plan.matched, 661);
        assert!(plan.suggests_exclusion());
        let text = "612 timeouts: likely to pass; 40 rate limits: earliest 14:20 UTC; \
                    9 permanent: will fail again unless edited or forced";
        assert_eq!(plan.to_string(), text);
    }

    #[test]
    fn one_is_not_many_and_adjectives_have_no_plural() {
        let tomorrow = today(86_400 + 60);
        let rows = [
            row("timeout", Disposition::Retryable, 1),
            row("unavailable", Disposition::Retryable, 3),
            row("server_error", Disposition::Retryable, 2),
            row("", Disposition::Retryable, 1),
            not_due("rate_limit", tomorrow, 1),
        ];
        let text = "3 unavailable: likely to pass; 2 server errors: likely to pass; 1 without a class: likely to pass; \
                    1 timeout: likely to pass; 1 rate limit: earliest 2026-01-03 00:01 UTC";
        assert_eq!(plan(&replay(), &rows).to_string(), text);
        assert_eq!(plan(&replay(), &[]).to_string(), "no letter matches");
    }

    // D12, G105
    #[test]
    fn a_plan_names_everything_that_is_left_out() {
        let rows = [
            row("a", Disposition::Unknown, 2),
            row("a", Disposition::Gone, 3),
            PlanRow { altered: true, ..row("timeout", Disposition::Retryable, 4) },
            PlanRow { without_payload: true, altered: true, ..row("timeout", Disposition::Retryable, 5) },
            PlanRow { kind: "store".into(), without_payload: true, ..row("timeout", Disposition::Retryable, 6) },
            row("forbidden", Disposition::Permanent, 7),
            PlanRow { state: LetterState::Abandoned, ..row("timeout", Disposition::Permanent, 8) },
            PlanRow { state: LetterState::Replaying, ..row("timeout", Disposition::Retryable, 9) },
        ];
        let mut request = replay();
        request.options.exclude_permanent = true;
        request.kinds = vec!["fetch".into()];
        let text = "2 unknown: may fail again; 3 gone: nothing was there; 4 altered: skipped unless edited or forced; \
                    5 without payload: skipped unless edited; 6 of `store`: blocked, no handler; 7 permanent: excluded; \
                    8 abandoned: not included, restore them first; 9 under way: not included";
        let found = plan(&request, &rows);
        assert_eq!(found.to_string(), text);
        assert_eq!((found.matched, found.suggests_exclusion()), (20, false));
    }

    #[test]
    fn force_takes_what_was_not_due_and_what_was_altered() {
        let mut request = replay();
        request.options.force = true;
        let altered = PlanRow { altered: true, ..row("timeout", Disposition::Retryable, 4) };
        let rows = [not_due("timeout", today(90_000), 1), altered];
        assert_eq!(plan(&request, &rows).to_string(), "5 timeouts: likely to pass");
    }

    #[test]
    fn discards_and_restores_have_no_prospects() {
        let rows = [row("timeout", Disposition::Retryable, 1), row("forbidden", Disposition::Permanent, 2)];
        let discard = OperationRequest::new(Verb::Discard, Filter::all());
        assert_eq!(plan(&discard, &rows).to_string(), "3 letters: to be discarded");
        let restore = OperationRequest::new(Verb::Restore { more_replays: 1 }, Filter::all());
        let text = "1 letter: to be parked again, with 1 more replay each";
        assert_eq!(plan(&restore, rows.get(..1).unwrap_or_default()).to_string(), text);
    }
}
