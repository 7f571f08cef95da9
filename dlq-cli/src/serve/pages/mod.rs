//! The pages, and what all of them have.

pub(super) mod actions;
pub(super) mod audit;
pub(super) mod counters;
pub(super) mod groups;
pub(super) mod hand;
pub(super) mod ledger;
pub(super) mod letter;
pub(super) mod letters;
pub(super) mod login;
pub(super) mod night;
pub(super) mod operations;
pub(super) mod overview;
pub(super) mod plan;

use std::collections::BTreeMap;
use std::time::SystemTime;

use retry_runtime::dead_letter::{DeadLetterStore as _, Filter, Order, PageRequest};

use super::app::{App, Visitor};
use super::identity::Role;
use super::{params, shown};
use crate::filters;

/// What stands around a page.
#[allow(clippy::struct_excessive_bools, reason = "each is a part of the page that is there or not")]
pub(super) struct Chrome {
    title: String,
    here: &'static str,
    base: String,
    store: String,
    name: String,
    role: &'static str,
    csrf: String,
    said: &'static str,
    read_only: bool,
    may_act: bool,
    is_admin: bool,
    is_live: bool,
    has_session: bool,
}

const PAGES: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/letters", "Letters"),
    ("/groups", "Groups"),
    ("/operations", "Operations"),
    ("/ledger", "Ledger"),
    ("/counters", "Counters"),
    ("/audit", "Audit"),
];

/// What was done, by the word that a redirection carries: nobody can make a page say anything else.
const SAID: &[(&str, &str)] = &[
    ("discarded", "Discarded. It can be restored until retention deletes it."),
    ("restored", "Parked again."),
    ("resolved", "Resolved by hand."),
    ("released", "Taken from the replay that held it, and parked again."),
    ("edited", "The new payload is kept as a revision; the old ones stay."),
    ("same", "The payload is the same, byte for byte: nothing was changed."),
    ("noted", "Noted."),
    (
        "none-selected",
        "No letter was selected, and nothing was done: tick some, or use the buttons above for all of them.",
    ),
    ("run", "Begun here."),
    ("pause", "Paused."),
    ("resume", "Resumed."),
    ("cancel", "Cancelled. What was done stays done."),
    ("reset", "The key is open again, without attempts."),
    ("threshold", "The threshold is set."),
    ("no-threshold", "The threshold is taken away."),
    ("started", "Started: its members are frozen."),
];

impl Chrome {
    pub(super) fn new(app: &App, visitor: &Visitor, here: &'static str, title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            here,
            base: app.base.clone(),
            store: shown::line(&app.name, 300),
            name: shown::line(&visitor.identity.name, 100),
            role: visitor.identity.role.as_str(),
            csrf: visitor.csrf.clone(),
            said: "",
            read_only: !app.may_act,
            may_act: app.may_act && visitor.may(Role::Operator),
            is_admin: app.may_act && visitor.may(Role::Admin),
            is_live: false,
            has_session: visitor.has_session,
        }
    }

    /// A page that renews itself when something changes.
    pub(super) fn live(mut self) -> Self {
        self.is_live = true;
        self
    }

    /// With what the last action did.
    pub(super) fn said(mut self, word: &str) -> Self {
        self.said = SAID.iter().find(|(known, _)| *known == word).map_or("", |(_, said)| said);
        self
    }

    #[allow(clippy::unused_self, reason = "templates ask their page")]
    fn pages(&self) -> &'static [(&'static str, &'static str)] {
        PAGES
    }
}

/// A time, for people and machines.
#[derive(Clone, Debug, Default)]
pub(super) struct When {
    pub(super) machine: String,
    pub(super) moment: String,
    pub(super) ago: String,
}

impl When {
    pub(super) fn new(at: SystemTime, now: SystemTime) -> Self {
        Self { machine: shown::machine(at), moment: shown::moment(at), ago: shown::ago(at, now) }
    }
}

/// What the command says where a page has its own way: a list has pages, and everything is a filter without a word.
const OF_THE_COMMAND: &[&str] = &["limit", "all"];

/// The words a filter is written with.
fn words() -> String {
    let words = filters::KEYS.iter().filter(|key| !OF_THE_COMMAND.contains(key));
    words.map(|key| format!("{key}:")).collect::<Vec<_>>().join(" ")
}

/// The filter somebody wrote.
fn filter_of(q: &str, now: SystemTime) -> Result<Filter, String> {
    let meant = filters::parse_written(q, now)?;
    if meant.limit.is_some() || meant.all {
        return Err(format!("`limit:` and `all:` are for the command: accepted are {}", words()));
    }
    Ok(meant.filter)
}

/// The address of a list by a written filter.
pub(super) fn list_of(app: &App, q: &str) -> String {
    params::address(&app.path("/letters"), &[("q", q)])
}

/// The address of the plan of a verb over a written filter.
pub(super) fn plan_of(app: &App, verb: &str, q: &str) -> String {
    params::address(&app.path("/operations/new"), &[("verb", verb), ("q", q)])
}

/// What jobs these letters are of, by their ids: people know jobs. A letter that cannot be read has none.
pub(super) async fn jobs(app: &App, ids: impl Iterator<Item = &String>) -> BTreeMap<String, String> {
    let mut filter = Filter::all();
    filter.ids = ids.cloned().collect();
    filter.ids.sort();
    filter.ids.dedup();
    filter.ids.truncate(filters::MOST_VALUES);
    if filter.ids.is_empty() {
        return BTreeMap::new();
    }
    let most = u32::try_from(filters::MOST_VALUES).unwrap_or(u32::MAX);
    let found = app.store.list(filter, PageRequest::first(Order::NewestFirst, most)).await;
    let rows = found.map(|page| page.rows).unwrap_or_default();
    rows.into_iter().map(|row| (row.letter_id, shown::line(&row.job_id, 120))).collect()
}

/// An id as a part of a path.
pub(super) fn segment(id: &str) -> String {
    form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>().replace('+', "%20")
}
