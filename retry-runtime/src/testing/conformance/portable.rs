//! Exports and imports.

use super::admin::AdminBench;
use super::support::{Check, LEASE, actor, attempt, checks, demand, done, failure, letter, same, seconds, usual_claim};
use crate::dead_letter::{
    Actor, DeadLetterStore, Edit, Exporter, Filter, ImportReport, Importer, LetterState, MemoryStore, Order, Page,
    PageRequest, Payload, PruneRequest, Redactor, ReplayOutcome,
};

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<AdminBench<S>>> {
    checks![
        "G102" an_export_comes_back_byte_for_byte,
        "G102" importing_again_changes_nothing,
        "G102" a_store_takes_nothing_of_itself,
        "D3" a_letter_of_the_same_job_joins_it,
        "D2" a_newer_failure_from_elsewhere_opens_a_closed_letter,
        "D10" what_is_owed_here_stays_owed,
        "D1" a_pruned_letter_does_not_come_back,
        "E84" a_bad_line_is_refused_and_the_rest_is_taken,
        "D9" a_redacted_export_says_so,
        "D9" what_is_imported_has_no_secret_in_its_errors,
        "S1" a_letter_being_replayed_travels_parked,
    ]
}

impl<S: DeadLetterStore> AdminBench<S> {
    fn lines(&self) -> Result<String, String> {
        let mut exporter = Exporter::new(&*self.admin, Filter::all());
        let mut lines = String::new();
        while let Some(some) = done(exporter.next())? {
            lines.push_str(&some);
        }
        Ok(lines)
    }

    fn import(&self, lines: &str) -> Result<ImportReport, String> {
        done(Importer::new(&*self.admin, actor()).read(lines.as_bytes()))
    }

    /// Letters in every state, with edits and several parkings.
    fn fill(&self) -> Result<(), String> {
        let bench = &self.bench;
        for state in LetterState::ALL {
            let job = state.as_str();
            self.in_state("fetch", job, *state)?;
            bench.time.advance(seconds(1));
        }
        let edited = bench.park_job("edited")?;
        done(bench.store.edit(Edit::new(edited.clone(), 1, "{\"a\":\"ö\\\"\"}"), Actor::new("ann", "typo")))?;
        let mut again = letter("edited", bench.time.now() + seconds(5));
        again.payload = Payload::Json("[1,2,3.0]".to_owned());
        again.not_before = Some(bench.time.now() + seconds(60));
        bench.park(again)?;
        let mut bare = letter("bare", bench.time.now());
        bare.payload = Payload::Unserializable("no".to_owned());
        (bare.class, bare.model, bare.code) = (None, None, None);
        bench.park(bare)?;
        let claimed = bench.claim_id(&edited)?;
        bench
            .release(&edited, crate::dead_letter::Release::Held { fence: claimed.row.fence })?
            .map_err(|e| e.to_string())?;
        Ok(())
    }

    fn everything(&self) -> Result<Page, String> {
        done(self.bench.store.list(Filter::all(), PageRequest::first(Order::LongestUnseenFirst, 100)))
    }
}

/// What the store in memory makes of these lines.
fn elsewhere(lines: &str) -> Result<String, String> {
    let store = MemoryStore::new();
    let report = done(Importer::new(&store, actor()).read(lines.as_bytes()))?;
    same("refused elsewhere", report.refused, vec![])?;
    let mut exporter = Exporter::new(&store, Filter::all());
    let mut out = String::new();
    while let Some(some) = done(exporter.next())? {
        out.push_str(&some);
    }
    Ok(out)
}

/// The lines of letters alone: the first one names the store's schema, and the last one has the checksum of all.
fn letters(lines: &str) -> Vec<&str> {
    lines.lines().filter(|line| line.contains("\"letter\":")).collect()
}

fn an_export_comes_back_byte_for_byte<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    bench.fill()?;
    let lines = bench.lines()?;
    same("letters", letters(&lines).len(), LetterState::ALL.len() + 2)?;
    let there = elsewhere(&lines)?;
    same("elsewhere", letters(&there), letters(&lines))?;
    // And back into a store of this kind that has forgotten them.
    same("back from elsewhere", letters(&elsewhere(&there)?), letters(&lines))
}

fn importing_again_changes_nothing<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let source = MemoryStore::with_clock(bench.bench.time.clock());
    let filled = AdminBench::<std::sync::Arc<MemoryStore>>::of(source, bench.bench.time.clone());
    filled.fill()?;
    let lines = filled.lines()?;
    let first = bench.import(&lines)?;
    let n = letters(&lines).len() as u64;
    same("first", (first.new, first.merged, first.known, &first.refused), (n, 0, 0, &vec![]))?;
    demand!(first.is_whole, "the lines were whole: {first:?}");
    same("its own export", letters(&bench.lines()?), letters(&lines))?;
    let before = bench.everything()?;
    let second = bench.import(&lines)?;
    same("second", (second.new, second.merged, second.known, &second.refused), (0, 0, n, &vec![]))?;
    same("the letters after it", bench.everything()?, before)?;
    same("its own export", letters(&bench.lines()?), letters(&lines))
}

fn a_store_takes_nothing_of_itself<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    bench.fill()?;
    let (lines, before) = (bench.lines()?, bench.everything()?);
    bench.bench.time.advance(seconds(1));
    let report = bench.import(&lines)?;
    same("known", (report.new, report.merged, report.known), (0, 0, letters(&lines).len() as u64))?;
    same("the letters after it", bench.everything()?, before)?;
    same("the export", bench.lines()?, lines)
}

/// A store in memory with one letter of job `a`, failed so many seconds from now, and its export.
fn other<S>(bench: &AdminBench<S>, at: u64, close: bool) -> Result<String, String> {
    let source = AdminBench::<std::sync::Arc<MemoryStore>>::of(
        MemoryStore::with_clock(bench.bench.time.clock()),
        bench.bench.time.clone(),
    );
    let mut parking = letter("a", bench.bench.time.now() + seconds(at));
    parking.payload = Payload::Json("{\"from\":\"elsewhere\"}".to_owned());
    parking.error_message = "elsewhere".into();
    parking.attempts = 7;
    let id = source.bench.park(parking)?;
    if close {
        source.bench.replay(&id, ReplayOutcome::Recovered)?;
    }
    source.lines()
}

fn a_letter_of_the_same_job_joins_it<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let id = bench.bench.park_job("a")?;
    let before = bench.bench.detail(&id)?;
    let lines = other(bench, 10, false)?;
    same("merged", bench.import(&lines)?.merged, 1)?;
    let after = bench.bench.detail(&id)?;
    same("attempts", after.row.attempts, before.row.attempts + 7)?;
    same("parkings", after.row.parkings, before.row.parkings + 1)?;
    same("message", after.row.error_message.as_str(), "elsewhere")?;
    same("history", after.history.len(), before.history.len() + 2)?;
    demand!(after.history.starts_with(&before.history), "history was lost");
    same("payload", after.payload, Payload::Json("{\"from\":\"elsewhere\"}".to_owned()))?;
    same("revisions", after.revisions, 2)?;
    same("state", after.row.state, LetterState::Parked)?;
    // Once more: the parking is known.
    same("known", bench.import(&lines)?.known, 1)?;
    same("the letter", bench.bench.detail(&id)?.row, after.row)
}

fn a_newer_failure_from_elsewhere_opens_a_closed_letter<S: DeadLetterStore>(
    bench: &AdminBench<S>,
) -> Result<(), String> {
    let id = bench.bench.park_job("a")?;
    let closed = bench.bench.replay(&id, ReplayOutcome::Recovered)?;
    same("merged", bench.import(&other(bench, 10, false)?)?.merged, 1)?;
    let row = bench.bench.row(&id)?;
    same("state", row.state, LetterState::Parked)?;
    demand!(row.fence > closed.fence, "the fence was not raised");
    Ok(())
}

fn what_is_owed_here_stays_owed<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let id = bench.bench.park_job("a")?;
    same("merged", bench.import(&other(bench, 10, true)?)?.merged, 1)?;
    same("recovered elsewhere", bench.bench.row(&id)?.state, LetterState::Parked)?;
    let mut request = usual_claim();
    request.ignore_not_before = true;
    same("handed out", bench.bench.claim(request)?.len(), 1)
}

fn a_pruned_letter_does_not_come_back<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let id = bench.bench.park_job("a")?;
    bench.bench.replay(&id, ReplayOutcome::Recovered)?;
    let lines = bench.lines()?;
    done(bench.admin.prune(PruneRequest::older_than(std::time::Duration::ZERO), actor()))?;
    same("known", bench.import(&lines)?.known, 1)?;
    same("letters", done(bench.bench.store.count(Filter::all()))?, 0)
}

fn a_bad_line_is_refused_and_the_rest_is_taken<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let source = AdminBench::<std::sync::Arc<MemoryStore>>::of(MemoryStore::new(), bench.bench.time.clone());
    for job in ["a", "b", "c"] {
        source.bench.park_job(job)?;
    }
    let lines = source.lines()?;
    let altered = lines.replacen("\"job_id\":\"b\"", "\"job_id\":\"x\"", 1);
    let report = bench.import(&altered)?;
    same("taken", (report.new, report.refused_lines, report.is_whole), (2, 1, false))?;
    same("the line", report.refused.first().map(|(line, _)| *line), Some(3))?;
    demand!(report.refused.iter().all(|(_, why)| why.contains("checksum")), "{report:?}");
    let torn = lines.get(..lines.len() * 3 / 4).unwrap_or_default();
    let report = bench.import(torn)?;
    demand!(!report.is_whole && report.refused_lines == 1, "a torn export is not whole: {report:?}");
    let report = bench.import(&format!("{lines}nonsense\n"))?;
    demand!(!report.is_whole, "something came after the end: {report:?}");
    let doubled: String = lines.lines().flat_map(|line| [line, "\n", line, "\n"]).collect();
    demand!(!bench.import(&doubled)?.is_whole, "doubled lines are not the export");
    same("letters", done(bench.bench.store.count(Filter::all()))?, 3)
}

fn a_redacted_export_says_so<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let mut secret = letter("a", bench.bench.time.now());
    secret.payload = Payload::Json("{\"url\":\"x\",\"api_key\":\"first-secret\"}".to_owned());
    let id = bench.bench.park(secret)?;
    let edit = Edit::new(id.clone(), 1, "{\"api_key\":\"second-secret\"}");
    done(bench.bench.store.edit(edit, Actor::new("ada", "password=third-secret")))?;
    let plain = bench.lines()?;
    demand!(plain.contains("first-secret") && plain.contains("third-secret"), "what is not redacted is whole: {plain}");
    let mut exporter = Exporter::new(&*bench.admin, Filter::all()).redacted(Redactor::standard());
    let mut lines = String::new();
    while let Some(some) = done(exporter.next())? {
        lines.push_str(&some);
    }
    demand!(!lines.contains("secret"), "it was not redacted: {lines}");
    let there = MemoryStore::new();
    let report = done(Importer::new(&there, actor()).read(lines.as_bytes()))?;
    demand!(report.redacted, "the export does not say that it was redacted");
    same("refused", report.refused, vec![])?;
    let row = done(there.get(id))?.map(|detail| detail.row);
    demand!(row.is_some_and(|row| row.payload_altered), "the letter does not say that it was altered");
    Ok(())
}

fn a_letter_being_replayed_travels_parked<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let id = bench.bench.park_job("a")?;
    let claimed = bench.bench.claim_id(&id)?;
    let lines = bench.lines()?;
    let there = MemoryStore::with_clock(bench.bench.time.clock());
    done(Importer::new(&there, actor()).read(lines.as_bytes()))?;
    let row = done(there.get(id.clone()))?.map(|detail| detail.row).ok_or("it did not travel")?;
    same("state", (row.state, row.owner.clone()), (LetterState::Parked, None))?;
    demand!(row.fence > claimed.row.fence, "its fence was not raised");
    // Here it is still being replayed.
    bench.bench.time.advance(LEASE / 2);
    let ended =
        attempt(bench.bench.store.finish(
            crate::dead_letter::Finish::new(id, claimed.row.fence, ReplayOutcome::Failed(failure())),
            actor(),
        ))?;
    same("the replay here", ended.is_ok(), true)
}

/// What a store took in that redacts nothing.
fn careless<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<String, String> {
    let store = MemoryStore::with_clock(bench.bench.time.clock()).redact_errors(Redactor::none());
    let source = AdminBench::<std::sync::Arc<MemoryStore>>::of(store, bench.bench.time.clone());
    let mut sent = letter("leaky", bench.bench.time.now());
    "refused: password=hunter2x9, status 401".clone_into(&mut sent.error_message);
    for record in &mut sent.history {
        "refused: Authorization: Bearer hunter2x9, status 401".clone_into(&mut record.message);
    }
    source.bench.park(sent)?;
    let mut sent = letter("no payload", bench.bench.time.now());
    sent.payload = Payload::Unserializable("token=hunter2x9".to_owned());
    source.bench.park(sent)?;
    source.lines()
}

fn what_is_imported_has_no_secret_in_its_errors<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let lines = careless(bench)?;
    demand!(lines.contains("hunter2x9"), "nothing to be found");
    let first = bench.import(&lines)?;
    same("first", (first.new, &first.refused), (2, &vec![]))?;
    let ours = bench.lines()?;
    demand!(!ours.contains("hunter2x9"), "a secret came in: {ours}");
    demand!(ours.contains("status 401"), "more than the secret is gone: {ours}");
    // one failure, one group: that of a letter that was parked here
    let mut sent = letter("here", bench.bench.time.now());
    "refused: password=other, status 401".clone_into(&mut sent.error_message);
    let here = bench.bench.row(&bench.bench.park(sent)?)?.fingerprint;
    let there = bench.everything()?.rows.into_iter().find(|row| row.job_id == "leaky").map(|row| row.fingerprint);
    same("group", there, Some(here))?;
    let again = bench.import(&lines)?;
    same("again", (again.new, again.merged, again.known), (0, 0, 2))
}
