//! Keeping the store in order, over its two threads.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Actor, BoxFuture, DueReport, EraseReport, EraseRequest, ExportPage, ExportRequest, Imported, LetterRecord,
    PruneReport, PruneRequest, Retention, StoreAdmin,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::reply::Reply;
use rusqlite::Connection;

use super::{Handle, SqliteStore};
use crate::admin::backup::{self, Backup};
use crate::admin::portable::{self, Arriving};
use crate::admin::prune::{self, Due, Place, STEP};
use crate::admin::salvage::books::{self, Books};
use crate::admin::salvage::{self, BooksTaken, Salvaged};
use crate::rows::Tx;
use crate::worker::Worker;

impl StoreAdmin for SqliteStore {
    fn prune(&self, request: PruneRequest, actor: Actor) -> BoxFuture<'_, Result<PruneReport, StoreError>> {
        Box::pin(self.handle.prune(Arc::new(request), actor))
    }

    fn due_within(&self, retention: Retention, within: Duration) -> BoxFuture<'_, Result<DueReport, StoreError>> {
        Box::pin(async move {
            let scope = Arc::clone(&self.handle.scope);
            let now = self.handle.clock.now();
            let until = now.checked_add(within).unwrap_or(now + Duration::from_secs(100 * 365 * 86_400));
            let ask = move |c: &Connection| prune::due_by(c, &scope, &retention, until);
            self.handle.reader.ask("count what retention will delete", ask).await
        })
    }

    fn erase(&self, request: EraseRequest, actor: Actor) -> BoxFuture<'_, Result<EraseReport, StoreError>> {
        Box::pin(async move { self.handle.chore("erase a job", move |worker| worker.erase(&request, &actor)).await })
    }

    fn export(&self, request: ExportRequest) -> BoxFuture<'_, Result<ExportPage, StoreError>> {
        Box::pin(async move {
            let (scope, shared) = (Arc::clone(&self.handle.scope), Arc::clone(&self.handle.shared));
            let ask = move |c: &Connection| portable::export(c, &shared.payloads, &scope, &request);
            self.handle.reader.ask("export letters", ask).await
        })
    }

    fn import(&self, records: Vec<LetterRecord>, actor: Actor) -> BoxFuture<'_, Result<Vec<Imported>, StoreError>> {
        Box::pin(async move {
            let shared = Arc::clone(&self.handle.shared);
            let prepare = move |records: Vec<LetterRecord>| -> Vec<_> {
                let records = records.into_iter().map(|record| shared.intake.record(record));
                records.map(|record| Arriving::new(record, &shared.payloads)).collect()
            };
            // Large payloads are on the disk before the transactions begin. All letters are handed over before the first is
            // waited for: they share one.
            let arriving = self.handle.reader.run(records, prepare).await?;
            let replies: Vec<_> = arriving
                .into_iter()
                .map(|arriving| {
                    let actor = actor.clone();
                    let run = move |tx: Tx<'_>| portable::import(tx, &arriving, &actor);
                    self.handle.change("import a letter", run, |_, _| ())
                })
                .collect();
            let mut answers = Vec::with_capacity(replies.len());
            for reply in replies {
                match reply.await {
                    Ok(answer) => answers.push(answer),
                    // It contradicts something in the file.
                    Err(error) if matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Invalid) => {
                        answers.push(Imported::Refused(error.to_string()));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(answers)
        })
    }
}

impl SqliteStore {
    /// Copies the store as it is at this moment to a new file: letters, ledger, counters and all, with its large payloads in
    /// files beside it. Others go on writing meanwhile. The copy is checked before this answers, is readable by its owner
    /// only, and is a store by itself.
    ///
    /// Letters that wait in spill files are not in the database, and not in the copy: [`Backup::spill_files`].
    ///
    /// # Errors
    /// `Conflict` where something has the target's name already. Otherwise what failed; then nothing is left of the copy.
    pub fn backup(&self, target: impl AsRef<Path>) -> Reply<Result<Backup, StoreError>> {
        let (answer, reply) = Reply::pair(|| {
            Err(StoreError::new(StoreErrorKind::Unknown, "the thread that copies the store ended without a word"))
        });
        let (target, settings) = (target.as_ref().to_owned(), self.handle.settings.clone());
        let store = self.clone();
        // A thread of its own: it may take long, and neither letters nor questions are to wait for it.
        let work = move || {
            let copied = backup::backup(&settings, &target).and_then(|mut report| {
                report.spill_files = store.spill_files()?;
                report.set_aside_files = store.set_aside_files();
                Ok(report)
            });
            answer.send(copied);
        };
        // Where there is no thread, the answer says so.
        let _started = std::thread::Builder::new().name("dlq-sqlite-backup".to_owned()).spawn(work);
        reply
    }
}

impl SqliteStore {
    /// Reads what can still be read of a damaged file, such as a [set-aside one](Self::set_aside_files), and writes it into a
    /// new store, `salvaged.db`, in an empty directory: for an export, or to look at. The damaged file is copied there first
    /// together with its log, and not touched. Letters come with payloads, attempts, events and parkings, one by one, so that a
    /// damaged page costs what was on it; ledger, counters, thresholds and notes come too. [`Salvaged::losses`] says what did
    /// not. Blocks as long as it takes.
    ///
    /// # Errors
    /// [`StoreError`] where nothing can be read, the file is no store, or the new one cannot be written.
    pub fn salvage(damaged: impl AsRef<Path>, directory: impl AsRef<Path>) -> Result<Salvaged, StoreError> {
        salvage::salvage(damaged.as_ref(), directory.as_ref())
    }

    /// Takes ledger, counters, thresholds and notes of a salvaged file into this store. (Its letters come by an
    /// [`Exporter`](retry_runtime::dead_letter::Exporter) and an [`Importer`](retry_runtime::dead_letter::Importer).) What is
    /// here stays: counters add up, and the two lives of a key become one; a key that was reset here stays as it is. The same
    /// file counts once, however often it is salvaged.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be read or this store not be written. What was taken in stays.
    pub async fn take_books(&self, saved: &Salvaged, actor: Actor) -> Result<BooksTaken, StoreError> {
        let books = Books::open(&saved.path)?;
        let (mut keys, mut last) = (0, None);
        loop {
            let some = books.ledger(last.as_ref())?;
            let Some(behind) = some.last().cloned() else { break };
            last = Some(behind);
            let take = move |tx: Tx<'_>| books::take_keys(tx, &some).map(Ok);
            keys += self.handle.change("take a ledger in", take, |_, _| ()).await?;
        }
        let (small, digest) = (books.small()?, saved.digest.clone());
        let take = move |tx: Tx<'_>| books::take_small(tx, &digest, &small, &actor).map(Ok);
        let mut taken = self.handle.change("take counters in", take, |_, _| ()).await?;
        taken.ledger = keys;
        Ok(taken)
    }
}

impl Handle {
    async fn prune(&self, request: Arc<PruneRequest>, actor: Actor) -> Result<PruneReport, StoreError> {
        let mut report = PruneReport::default();
        report.dry_run = request.dry_run;
        // One time for all steps: a run ends.
        let now = self.clock.now();
        let mut behind: Place = (i64::MIN, 0);
        loop {
            let left = request.limit.map_or(u64::MAX, |limit| limit.saturating_sub(report.total()));
            if left == 0 {
                report.is_cut = !self.prune_look(&request, now, behind, 1).await?.is_empty();
                break;
            }
            let limit = u32::try_from(left).unwrap_or(u32::MAX).min(STEP);
            let due = if request.dry_run {
                self.prune_look(&request, now, behind, limit).await?
            } else {
                let (request, actor) = (Arc::clone(&request), actor.clone());
                let step = move |tx: Tx<'_>| prune::step(tx, &request, now, behind, limit, &actor).map(Ok);
                self.change("delete letters", step, |_, _| ()).await?
            };
            let Some(last) = due.last() else { break };
            behind = last.place();
            for letter in &due {
                letter.count(&mut report);
            }
        }
        if !request.dry_run {
            report.payload_files = self.chore("remove payload files", Worker::tidy).await?;
        }
        Ok(report)
    }

    async fn prune_look(
        &self,
        request: &Arc<PruneRequest>,
        now: SystemTime,
        behind: Place,
        limit: u32,
    ) -> Result<Vec<Due>, StoreError> {
        let (request, scope) = (Arc::clone(request), Arc::clone(&self.scope));
        let look = move |c: &Connection| prune::look(c, &scope, &request, now, behind, limit);
        self.reader.ask("count what retention deletes", look).await
    }
}
