//! Erasing a job: spill files, the database, payload files, and the log behind them.

use std::time::Instant;

use retry_runtime::dead_letter::{Actor, EraseReport, EraseRequest};
use retry_runtime::error::StoreError;

use super::{Worker, batch};
use crate::admin::erase;
use crate::error::from_sqlite;
use crate::open::files;
use crate::payload::collect;

impl Worker {
    pub(crate) fn erase(&mut self, request: &EraseRequest, actor: &Actor) -> Result<EraseReport, StoreError> {
        let mut report = EraseReport::default();
        // First: an import must not bring back what was just erased.
        let spilled = self.shared.spill.erase(request)?;
        report.spill_lines = spilled.lines;
        report.left.extend(spilled.left.iter().map(|path| {
            format!("spill file `{}` is another process's: erase again when it has ended", path.display())
        }));
        let mut in_file = (EraseReport::default(), Vec::new());
        let mut outcome = self.small_batch(self.now, 1, |_, tx| {
            // It may be run again.
            in_file = (report.clone(), Vec::new());
            in_file.1 = erase::erase(tx, request, actor, &mut in_file.0)?;
            Ok(())
        });
        outcome.each.pop().unwrap_or(Ok(()))?;
        let (mut report, names) = in_file;
        self.log_in_use = true;
        let Some(link) = &self.link else { return Ok(report) };
        let connection = &link.connection;
        let blobs = &self.shared.payloads.blobs;
        let mut removed = 0;
        let mut outcome = batch::together(connection, Instant::now() + self.settings.busy_timeout, 1, |_| {
            removed = 0;
            for name in &names {
                if !collect::is_named(connection, name)? && blobs.remove(name).is_ok() {
                    removed += 1;
                }
            }
            Ok(())
        });
        outcome.each.pop().unwrap_or(Ok(()))?;
        report.payload_files = removed;
        for name in names {
            if blobs.path(&name).exists() {
                report
                    .left
                    .push(format!("payload file `{}` is used by another letter too", blobs.path(&name).display()));
            }
        }
        let busy = connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            .map_err(|error| from_sqlite("cannot empty the log", error))?;
        if busy != 0 {
            report.left.push(
                "the log could not be emptied, because somebody reads the file: it is when nobody does, and the store is \
                 idle or closed"
                    .to_owned(),
            );
        }
        for path in files::set_aside_files(&self.settings.path) {
            report.left.push(format!("the file `{}`, which was set aside as corrupt, is not changed", path.display()));
        }
        Ok(report)
    }
}
