//! What is in the file.

use std::collections::{BTreeMap, BTreeSet};

use retry_runtime::counters::Day;
use retry_runtime::dead_letter::{Counted, Filter, Finding, LetterFacts, LetterState, Order, PageRequest, to_millis};
use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::{Connection, params};

use super::Exam;
use crate::error::{from_sqlite, kind_of};
use crate::field::alarm;
use crate::field::disk::{bytes, size};
use crate::open::schema;
use crate::payload::collect::is_named;
use crate::reader::in_snapshot;
use crate::rows::number;
use crate::{journal, letters};

/// A quick examination checks files up to this size, and counts up to so many letters.
const QUICK_BYTES: u64 = 64 << 20;
const QUICK_LETTERS: u64 = 5_000;

/// Parked letters that replays pass over; at most so many are looked at.
pub(crate) const ALTERED: &str = "SELECT coalesce(sum(payload_altered), 0) FROM (
     SELECT payload_altered FROM letter WHERE scope = ?1 AND state = 'parked' ORDER BY last_seen DESC LIMIT ?2)";

/// So many letters a page when all are listed.
const PAGE: u32 = 1_000;

impl Exam {
    pub(super) fn database(&self, connection: &Connection) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut step = |name: &str, result: rusqlite::Result<Vec<Finding>>| match result {
            Ok(of_step) => found.extend(of_step),
            Err(error) if kind_of(&error) == StoreErrorKind::Corrupt => found.push(self.corrupt(&error.to_string())),
            Err(error) => {
                let error: StoreError = from_sqlite(format!("cannot {name}"), error);
                let advice = "look at the disk and the file's permissions, and run the examination again";
                found.push(self.error("unreadable", error.to_string()).advise(advice));
            }
        };
        step("read the schema's version", self.schema(connection));
        step("check the file", self.check(connection));
        // Numbers that are compared are of one moment, while others park and replay; the checks that take long are not in it.
        step("count letters", in_snapshot(connection, |snapshot| self.letters(snapshot)));
        if self.is_full() {
            step("look for payload files", self.missing_files(connection));
            step("read who wrote letters", self.versions(connection));
        }
        // One damaged page fails every step: said once.
        let mut said = BTreeSet::new();
        found.retain(|finding| finding.code != "corrupt" || said.insert(finding.message.clone()));
        found
    }

    fn corrupt(&self, what: &str) -> Finding {
        self.error("corrupt", format!("the file is damaged: {what}")).advise(
            "copy the file with its `-wal` now; close every program that has it open: the next one to open it sets it aside \
             and goes on with a fresh one",
        )
    }

    fn schema(&self, connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let known = schema::VERSION;
        let mut found = Vec::new();
        if version > known {
            let message = format!("a later version made the file (schema {version}, this program knows {known})");
            found.push(self.info("schema_newer", format!("{message}: what it added is kept, and not used here")));
        } else if version < known {
            let message = format!("the file has schema {version}, this program writes {known}");
            found.push(
                self.info("schema_older", format!("{message}: it is brought up to date when opened for writing")),
            );
        }
        Ok(found)
    }

    fn check(&self, connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
        let database = size(&self.settings.path);
        let pragma = if self.is_full() {
            "PRAGMA integrity_check(10)"
        } else if database <= QUICK_BYTES {
            "PRAGMA quick_check(10)"
        } else {
            let message =
                format!("the file ({}) was not checked for damage: that takes a full examination", bytes(database));
            return Ok(vec![self.info("not_checked", message)]);
        };
        let mut statement = connection.prepare(pragma)?;
        let said = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        let damage: Vec<_> = said.into_iter().filter(|line| line != "ok").collect();
        let mut found = Vec::new();
        if !damage.is_empty() {
            found.push(self.corrupt(&damage.join("; ")));
        }
        if self.is_full() {
            let mut statement = connection.prepare("SELECT DISTINCT \"table\" FROM pragma_foreign_key_check")?;
            let tables =
                statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
            if !tables.is_empty() {
                let message = format!("rows of letters that are not there are left in {}", tables.join(", "));
                let advice = "some program deleted letters without `PRAGMA foreign_keys = ON`; delete these rows too";
                found.push(self.error("foreign_keys", message).advise(advice));
            }
        }
        Ok(found)
    }

    fn letters(&self, connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
        let mut summed: BTreeMap<String, u64> = BTreeMap::new();
        let facts = self.facts(connection, &mut summed)?;
        let mut found = facts.findings(&self.checkup);
        let owed = LetterState::ALL.iter().filter(|state| state.is_owed());
        let owed = owed.filter_map(|state| summed.get(state.as_str())).sum();
        let mark = self.settings.alarm_at.owed_letters;
        if alarm::above(owed, mark).is_some() {
            let message = format!("{owed} letters are owed, above {mark}");
            let advice = "look at their groups: replay what is mended, discard what nobody will replay";
            found.push(self.warning("owed_many", message).advise(advice));
        }
        let orphans = journal::forgotten(connection, &self.scope, self.now)?;
        if orphans > 0 {
            let message = format!("{orphans} jobs of processes that died are not parked yet, minutes after that");
            let advice = "run a program that has the store open for writing: it parks them within a minute";
            found.push(self.warning("journal_orphans", message).advise(advice));
        }
        Ok(found)
    }

    fn facts(&self, connection: &Connection, summed: &mut BTreeMap<String, u64>) -> rusqlite::Result<LetterFacts> {
        let mut facts = LetterFacts::default();
        facts.claimed_kinds.clone_from(&self.claimed_kinds);
        let count = |sql: &str, at: i64| {
            connection.prepare_cached(sql)?.query_row(params![&*self.scope, at], |row| row.get(0).map(number))
        };
        let mut statement =
            connection.prepare_cached("SELECT state, kind, sum(n) FROM tally WHERE scope = ?1 GROUP BY state, kind")?;
        let mut rows = statement.query([&*self.scope])?;
        while let Some(row) = rows.next()? {
            let (state, kind, n): (String, String, u64) = (row.get(0)?, row.get(1)?, number(row.get(2)?));
            if state == LetterState::Parked.as_str() {
                facts.waiting.insert(kind, n);
            }
            *summed.entry(state).or_default() += n;
        }
        facts.abandoned = summed.get(LetterState::Abandoned.as_str()).copied().unwrap_or(0);
        let overdue = self.now.checked_sub(LetterFacts::OVERDUE).map_or(i64::MIN, to_millis);
        // The plus keeps the planner on the few leases.
        facts.overdue = count(
            "SELECT count(*) FROM letter WHERE +scope = ?1 AND state = 'replaying' AND lease_until < ?2",
            overdue,
        )?;
        let ahead = to_millis(self.now.checked_add(LetterFacts::AHEAD).unwrap_or(self.now));
        for state in LetterState::ALL {
            // One state at a time: so the end of its list is all that is looked at.
            let sql = format!("SELECT count(*) FROM letter WHERE scope = ?1 AND state = '{state}' AND last_seen > ?2");
            facts.ahead += count(&sql, ahead)?;
        }
        let since = Day::of(self.now).plus(-29).to_string();
        facts.lost = connection
            .prepare_cached(
                "SELECT coalesce(sum(value), 0) FROM daily
                 WHERE day >= ?1 AND operation = 'dead_letter' AND counter = 'lost'",
            )?
            .query_row([since], |row| row.get(0).map(number))?;
        let every = self.is_full() || summed.values().sum::<u64>() <= QUICK_LETTERS;
        if every {
            facts.counted = self.count_in_three_ways(connection, summed)?;
        }
        // No index tells them: of very many, the newest are looked at.
        let most = if every { -1 } else { i64::try_from(QUICK_LETTERS).unwrap_or(i64::MAX) };
        facts.altered = count(ALTERED, most)?;
        facts.altered_of_some = !every;
        Ok(facts)
    }

    // A3
    fn count_in_three_ways(
        &self,
        connection: &Connection,
        summed: &BTreeMap<String, u64>,
    ) -> rusqlite::Result<Vec<Counted>> {
        let mut rows: BTreeMap<String, u64> = BTreeMap::new();
        // The table itself: an index may be what is wrong.
        let mut statement = connection
            .prepare("SELECT state, count(*) FROM letter NOT INDEXED WHERE scope = ?1 GROUP BY state ORDER BY NULL")?;
        let mut counted = statement.query([&*self.scope])?;
        while let Some(row) = counted.next()? {
            rows.insert(row.get(0)?, number(row.get(1)?));
        }
        LetterState::ALL
            .iter()
            .map(|state| {
                let listed = self.listed(connection, *state)?;
                let of = |counts: &BTreeMap<String, u64>| counts.get(state.as_str()).copied().unwrap_or(0);
                Ok(Counted { state: *state, rows: of(&rows), listed, summed: of(summed) })
            })
            .collect()
    }

    /// How many letters of a state lists show, page by page: the very statements that lists are made with.
    fn listed(&self, connection: &Connection, state: LetterState) -> rusqlite::Result<u64> {
        let mut filter = Filter::all();
        filter.states = vec![state];
        let mut page = PageRequest::first(Order::LongestUnseenFirst, PAGE);
        let mut listed = 0;
        loop {
            let found = letters::list(connection, &self.scope, &filter, &page)?;
            listed += found.rows.len() as u64;
            match found.next {
                Some(next) => page = PageRequest::first(Order::LongestUnseenFirst, PAGE).after(Some(next)),
                None => return Ok(listed),
            }
        }
    }

    fn missing_files(&self, connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
        let mut statement = connection.prepare(
            "SELECT blob FROM payload WHERE blob IS NOT NULL UNION SELECT blob FROM journal WHERE blob IS NOT NULL",
        )?;
        let blobs = &self.shared.payloads.blobs;
        let mut missing = Vec::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            if !blobs.path(&name).is_file() {
                missing.push(name);
            }
        }
        drop(rows);
        // What was erased meanwhile took its file with it.
        let mut still_named = Vec::new();
        for name in missing {
            if is_named(connection, &name)? {
                still_named.push(name);
            }
        }
        let missing = still_named;
        let Some(first) = missing.first() else { return Ok(Vec::new()) };
        let message =
            format!("{} payload files are missing, the first is `{}`", missing.len(), blobs.path(first).display());
        let advice = "bring them back from a backup: the database is copied with its `.blobs` directory";
        Ok(vec![self.error("payload_files_missing", message).advise(advice)])
    }

    fn versions(&self, connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
        let mut statement = connection.prepare("SELECT DISTINCT writer FROM letter")?;
        let writers = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        let versions: BTreeSet<&str> = writers
            .iter()
            .map(|writer| writer.rsplit_once('@').map_or("an earlier one", |(_, version)| version))
            .collect();
        if versions.len() < 2 {
            return Ok(Vec::new());
        }
        let message = format!("versions of this library wrote letters: {}", Vec::from_iter(versions).join(", "));
        Ok(vec![self.info("versions", message)])
    }
}
