//! Groups of failures: counted from an index, one state after the other, and merged by fingerprint, so that a page of a
//! million groups needs the memory of one page.

use std::time::SystemTime;

use retry_runtime::attempt::cut_middle;
use retry_runtime::dead_letter::{
    Actor, ArrivalKey, ArrivalSeries, Arrivals, FailureGroup, Filter, FirstGroups, GroupCounts, GroupNote, GroupsPage,
    GroupsRequest, LetterRow, LetterState, MAX_ACTOR_NAME, Order, PageRequest, Trend, from_millis, to_millis,
};
use retry_runtime::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Rows, params, params_from_iter};

use crate::filter::{Condition, states};
use crate::letters;
use crate::rows::{Tx, number};
use crate::walk::{HINT, prepare};

/// One page of groups.
pub(crate) fn groups(
    connection: &Connection,
    scope: &str,
    request: &GroupsRequest,
    now: SystemTime,
) -> rusqlite::Result<GroupsPage> {
    let mut first = FirstGroups::new(request);
    for_each_group(connection, scope, &request.filter, |group| first.offer(group))?;
    let (page, next) = first.page();
    let mut groups = Vec::with_capacity(page.len());
    for counts in page {
        if let Some(newest) = newest(connection, scope, &request.filter, &counts.fingerprint)? {
            let trend = trend(connection, scope, &counts.fingerprint, now)?;
            let note = last_note(connection, scope, &counts.fingerprint)?;
            groups.push(FailureGroup::new(counts, newest, trend, note));
        }
    }
    Ok(GroupsPage::new(groups, next))
}

/// Every group of the letters that match, each once.
fn for_each_group(
    connection: &Connection,
    scope: &str,
    filter: &Filter,
    mut each: impl FnMut(GroupCounts),
) -> rusqlite::Result<()> {
    let questions: Vec<_> =
        states(filter).into_iter().map(|state| (state, counts_query(scope, filter, state))).collect();
    let mut statements =
        questions.iter().map(|(_, question)| prepare(connection, &question.sql)).collect::<Result<Vec<_>, _>>()?;
    let mut sources = Vec::new();
    for (statement, (state, question)) in statements.iter_mut().zip(&questions) {
        let mut rows = statement.query(params_from_iter(&question.values))?;
        if let Some(head) = next(&mut rows, *state)? {
            sources.push((head, rows, *state));
        }
    }
    while let Some(fingerprint) = sources.iter().map(|(head, ..)| &head.fingerprint).min().cloned() {
        let mut group: Option<GroupCounts> = None;
        let mut at = 0;
        while let Some((head, rows, state)) = sources.get_mut(at) {
            if head.fingerprint != fingerprint {
                at += 1;
                continue;
            }
            match &mut group {
                Some(group) => group.add(head),
                None => group = Some(head.clone()),
            }
            match next(rows, *state)? {
                Some(behind) => *head = behind,
                None => drop(sources.swap_remove(at)),
            }
        }
        if let Some(group) = group {
            each(group);
        }
    }
    Ok(())
}

fn next(rows: &mut Rows<'_>, state: LetterState) -> rusqlite::Result<Option<GroupCounts>> {
    let Some(row) = rows.next()? else { return Ok(None) };
    let seen = (from_millis(row.get(3)?), from_millis(row.get(4)?));
    Ok(Some(GroupCounts::new(row.get::<_, String>(0)?, state, number(row.get(1)?), number(row.get(2)?), seen)))
}

/// The groups of one state, in the order of their fingerprints.
pub(crate) fn counts_query(scope: &str, filter: &Filter, state: LetterState) -> Condition {
    let mut query = Condition::of(scope, filter).in_state(filter, state);
    let is_named = !(filter.ids.is_empty() && filter.job_ids.is_empty());
    let hint = if is_named { String::new() } else { format!("{HINT}letter_group") };
    query.sql = format!(
        "SELECT fingerprint, count(*), sum(attempts), min(first_seen), max(last_seen) FROM letter{hint} WHERE {}
         GROUP BY fingerprint ORDER BY fingerprint",
        query.sql
    );
    query
}

/// The newest letter of a group among those that match.
fn newest(
    connection: &Connection,
    scope: &str,
    filter: &Filter,
    fingerprint: &str,
) -> rusqlite::Result<Option<LetterRow>> {
    let mut filter = filter.clone();
    filter.fingerprints = vec![fingerprint.to_owned()];
    let mut page = PageRequest::first(Order::NewestFirst, 1);
    loop {
        let mut found = letters::list(connection, scope, &filter, &page)?;
        page.after = found.next;
        if !found.rows.is_empty() || page.after.is_none() {
            return Ok(found.rows.pop());
        }
    }
}

pub(crate) const TREND: &str = "SELECT hour, n FROM trend WHERE scope = ?1 AND fingerprint = ?2 AND hour >= ?3";

fn trend(connection: &Connection, scope: &str, fingerprint: &str, now: SystemTime) -> rusqlite::Result<Trend> {
    let hours = connection
        .prepare_cached(TREND)?
        .query_map(params![scope, fingerprint, Trend::from_hour(now)], |row| Ok((row.get(0)?, number(row.get(1)?))))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(Trend::of(now, hours))
}

pub(crate) const LAST_NOTE: &str =
    "SELECT note, actor, at FROM group_note WHERE scope = ?1 AND fingerprint = ?2 ORDER BY id DESC LIMIT 1";

fn last_note(connection: &Connection, scope: &str, fingerprint: &str) -> rusqlite::Result<Option<GroupNote>> {
    connection.prepare_cached(LAST_NOTE)?.query_row([scope, fingerprint], note_of).optional()
}

fn note_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<GroupNote> {
    Ok(GroupNote::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?, from_millis(row.get(2)?)))
}

/// Adds a note.
pub(crate) fn note(tx: Tx<'_>, fingerprint: &str, text: &str, actor: &Actor) -> rusqlite::Result<GroupNote> {
    let name = cut_middle(&actor.name, MAX_ACTOR_NAME);
    let version: Option<u32> = tx
        .connection
        .prepare_cached("SELECT fingerprint_version FROM letter WHERE scope = ?1 AND fingerprint = ?2 LIMIT 1")?
        .query_row([tx.scope, fingerprint], |row| row.get(0))
        .optional()?;
    tx.connection
        .prepare_cached(
            "INSERT INTO group_note(scope, fingerprint, fingerprint_version, note, actor, at) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            tx.scope,
            fingerprint,
            version.unwrap_or(retry_runtime::dead_letter::FINGERPRINT_VERSION),
            text,
            name,
            tx.millis()
        ])?;
    Ok(GroupNote::new(text, name, from_millis(tx.millis())))
}

/// Every note about a group.
pub(crate) fn notes(connection: &Connection, scope: &str, fingerprint: &str) -> rusqlite::Result<Vec<GroupNote>> {
    connection
        .prepare_cached("SELECT note, actor, at FROM group_note WHERE scope = ?1 AND fingerprint = ?2 ORDER BY id")?
        .query_map([scope, fingerprint], note_of)?
        .collect()
}

/// Parkings over time. The inner error is the question's.
pub(crate) fn arrivals(
    connection: &Connection,
    scope: &str,
    question: &Arrivals,
) -> rusqlite::Result<Result<Vec<ArrivalSeries>, StoreError>> {
    let (first, last) = question.hours();
    let hours = connection
        .prepare_cached(arrivals_query(question.by))?
        .query_map(params![scope, first, last], |row| Ok((row.get(0)?, row.get(1)?, number(row.get(2)?))))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(question.answer(hours))
}

pub(crate) const fn arrivals_query(by: ArrivalKey) -> &'static str {
    match by {
        ArrivalKey::Kind => {
            "SELECT hour, kind, sum(n) FROM arrival WHERE hour BETWEEN ?2 AND ?3 AND scope = ?1 GROUP BY hour, kind"
        }
        ArrivalKey::ErrorClass => {
            "SELECT hour, class, sum(n) FROM arrival WHERE hour BETWEEN ?2 AND ?3 AND scope = ?1 GROUP BY hour, class"
        }
        _ => "SELECT hour, '', sum(n) FROM arrival WHERE hour BETWEEN ?2 AND ?3 AND scope = ?1 GROUP BY hour",
    }
}

/// Counts a parking: for the trend of its group, and by kind and error class. `row` is the one it would make by itself.
pub(crate) fn arrived(tx: Tx<'_>, row: &LetterRow) -> rusqlite::Result<()> {
    let hour = Trend::hour_of(tx.now);
    tx.connection
        .prepare_cached(
            "INSERT INTO arrival(hour, scope, kind, class, n) VALUES(?1, ?2, ?3, ?4, 1)
             ON CONFLICT(hour, scope, kind, class) DO UPDATE SET n = n + 1",
        )?
        .execute(params![hour, tx.scope, row.kind, row.error_class])?;
    tx.connection
        .prepare_cached(
            "INSERT INTO trend(scope, fingerprint, hour, n) VALUES(?1, ?2, ?3, 1)
             ON CONFLICT(scope, fingerprint, hour) DO UPDATE SET n = n + 1",
        )?
        .execute(params![tx.scope, row.fingerprint, hour])?;
    Ok(())
}

/// So many old rows are removed by one transaction.
const FORGET_AT_ONCE: u32 = 5_000;

/// Removes some of the parkings per hour that are older than they are kept; whether there may be more.
pub(crate) fn forget_old(tx: Tx<'_>) -> rusqlite::Result<bool> {
    let oldest = to_millis(tx.now).div_euclid(3_600_000) - i64::try_from(Trend::KEPT.as_secs() / 3_600).unwrap_or(840);
    let mut removed = 0;
    for sql in [
        "DELETE FROM arrival WHERE (hour, scope, kind, class) IN
           (SELECT hour, scope, kind, class FROM arrival WHERE hour < ?1 LIMIT ?2)",
        "DELETE FROM trend WHERE (scope, fingerprint, hour) IN
           (SELECT scope, fingerprint, hour FROM trend WHERE hour < ?1 LIMIT ?2)",
    ] {
        removed += tx.connection.prepare_cached(sql)?.execute(params![oldest, FORGET_AT_ONCE])?;
    }
    Ok(removed > 0)
}
