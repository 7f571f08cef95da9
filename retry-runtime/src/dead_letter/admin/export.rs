//! Exports as lines of JSON: written page by page, read line by line.

use std::fmt::Write as _;
use std::io::{self, BufRead};

use super::StoreAdmin;
use super::line::{self, Line};
use super::record::{EXPORT_PAGE_BYTES, ExportRequest, Imported, LetterRecord};
use crate::dead_letter::sha256::sha256;
use crate::dead_letter::{Actor, Filter, Redactor};
use crate::error::{StoreError, StoreErrorKind};

/// Writes letters as lines of JSON, a page at a time: memory does not grow with their number.
///
/// The first line says what it is, then one line has one letter with all its payloads, history, parkings and events, and the
/// last line says how many there were. Every line has a checksum, and the last one the checksum of them all. The lines of an
/// import into an empty store are the same, byte for byte: what is a store's own - numbers, lease, name of the
/// writer, when it took a parking - is not on them, and what is derived - fingerprint, sizes, hashes - is derived again.
///
/// ```
/// use std::time::SystemTime;
/// use retry_runtime::StopReason;
/// use retry_runtime::dead_letter::{Actor, DeadLetter, DeadLetterSink, Exporter, Filter, Importer, MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// store.submit(DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now())).await;
/// let mut lines = String::new();
/// let mut exporter = Exporter::new(&store, Filter::all());
/// while let Some(some) = exporter.next().await? {
///     lines.push_str(&some); // usually written to a file
/// }
///
/// let other = MemoryStore::new();
/// let report = Importer::new(&other, Actor::new("ann", "moving house")).read(lines.as_bytes()).await?;
/// assert_eq!((report.new, report.is_whole), (1, true));
/// # Ok(())
/// # }
/// ```
pub struct Exporter<A> {
    admin: A,
    request: ExportRequest,
    redactor: Option<Redactor>,
    chain: Chain,
    letters: u64,
    stage: Stage,
}

#[derive(PartialEq)]
enum Stage {
    Start,
    Letters,
    End,
}

impl<A: StoreAdmin> Exporter<A> {
    /// Of the letters that match.
    pub fn new(admin: A, filter: Filter) -> Self {
        let request = ExportRequest::new(filter);
        Self { admin, request, redactor: None, chain: Chain::default(), letters: 0, stage: Stage::Start }
    }

    /// Takes secrets out of payloads and texts, by these rules. The export says so, and each letter says that its payload was
    /// altered: where it is imported, replays pass over it.
    #[must_use]
    pub fn redacted(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// The next lines, each with its end; `None` when that was all.
    ///
    /// # Errors
    /// What the store said. The same lines may be asked for again.
    pub async fn next(&mut self) -> Result<Option<String>, StoreError> {
        if self.stage == Stage::End {
            return Ok(None);
        }
        let page = self.admin.export(self.request.clone()).await?;
        let mut lines = String::new();
        if self.stage == Stage::Start {
            self.add(&mut lines, &line::start(page.schema, self.redactor.is_some()));
            self.stage = Stage::Letters;
        }
        for mut record in page.records {
            if let Some(redactor) = &self.redactor {
                record.redact(redactor);
            }
            self.letters += 1;
            self.add(&mut lines, &line::letter(&record));
        }
        match page.next {
            Some(next) => self.request.after = Some(next),
            None => {
                lines.push_str(&line::end(self.letters, &self.chain.to_string()));
                self.stage = Stage::End;
            }
        }
        Ok(Some(lines))
    }

    fn add(&mut self, lines: &mut String, line: &str) {
        self.chain.add(line.trim_end_matches('\n').as_bytes());
        lines.push_str(line);
    }
}

/// The checksum of all lines so far: that of the checksum before and the next line.
#[derive(Default)]
struct Chain([u8; 32]);

impl Chain {
    fn add(&mut self, line: &[u8]) {
        let of_line = sha256(line);
        self.0 = sha256(&[self.0, of_line].concat());
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            write!(text, "{byte:02x}")?;
        }
        f.write_str(&text)
    }
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Letters of jobs that had none here.
    pub new: u64,
    /// Letters that joined the one of their job.
    pub merged: u64,
    /// Letters of which every parking was known: nothing was changed.
    pub known: u64,
    /// Lines that were not taken: number and reason, at most the first 1,000.
    pub refused: Vec<(u64, String)>,
    /// How many lines were not taken.
    pub refused_lines: u64,
    /// The export was redacted: replays pass over its letters.
    pub redacted: bool,
    /// Every line was there as it was written, up to the last: nothing is missing, doubled, or in another order.
    pub is_whole: bool,
}

/// So many refused lines are told one by one.
const TOLD: usize = 1_000;

/// Reads what an [`Exporter`] wrote into a store. The same lines again change nothing, and neither do the lines of the store
/// itself. A line that cannot be read is refused, with its number, and the rest is taken.
pub struct Importer<A> {
    admin: A,
    actor: Actor,
    report: ImportReport,
    waiting: Vec<(u64, LetterRecord)>,
    bytes: usize,
    chain: Chain,
    lines: u64,
    letters: u64,
    started: bool,
    ended: bool,
}

impl<A: StoreAdmin> Importer<A> {
    /// Into a store, by somebody.
    pub fn new(admin: A, actor: Actor) -> Self {
        Self {
            admin,
            actor,
            report: ImportReport::default(),
            waiting: Vec::new(),
            bytes: 0,
            chain: Chain::default(),
            lines: 0,
            letters: 0,
            started: false,
            ended: false,
        }
    }

    /// Takes all lines of a reader.
    ///
    /// # Errors
    /// What the store said, or the reader as `Unavailable`. What was taken before stays, and all lines can be imported again.
    pub async fn read(mut self, mut reader: impl BufRead) -> Result<ImportReport, StoreError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(|error| unreadable(self.lines + 1, error))?;
            if read == 0 {
                return self.finish().await;
            }
            self.line(line.strip_suffix(b"\n").unwrap_or(&line)).await?;
        }
    }

    /// Takes one line, without its end.
    ///
    /// # Errors
    /// What the store said of the letters so far.
    pub async fn line(&mut self, line: &[u8]) -> Result<(), StoreError> {
        self.lines += 1;
        // A way through other systems may have put one there; no exported line ends so.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line::parse(line) {
            Ok(Line::Start { redacted, .. }) => {
                self.started = self.lines == 1;
                self.report.redacted |= redacted;
            }
            Ok(Line::Letter(record)) => {
                self.letters += 1;
                self.bytes += record.size();
                self.waiting.push((self.lines, *record));
            }
            Ok(Line::End { letters, sha256 }) => {
                let whole = self.started && letters == self.letters && sha256 == self.chain.to_string();
                self.report.is_whole = whole && !self.ended;
                self.ended = true;
                return Ok(());
            }
            Err(why) => self.refuse(self.lines, why),
        }
        if self.ended {
            // Something comes after the end.
            self.report.is_whole = false;
        }
        self.chain.add(line);
        if self.waiting.len() >= 100 || self.bytes >= EXPORT_PAGE_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Takes what still waits.
    ///
    /// # Errors
    /// What the store said.
    pub async fn finish(mut self) -> Result<ImportReport, StoreError> {
        self.flush().await?;
        self.report.refused.sort();
        Ok(self.report)
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        let (lines, records): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().unzip();
        self.bytes = 0;
        if records.is_empty() {
            return Ok(());
        }
        let answers = self.admin.import(records, self.actor.clone()).await?;
        for (line, answer) in lines.into_iter().zip(answers) {
            match answer {
                Imported::New => self.report.new += 1,
                Imported::Merged => self.report.merged += 1,
                Imported::Known => self.report.known += 1,
                Imported::Refused(why) => self.refuse(line, why),
            }
        }
        Ok(())
    }

    fn refuse(&mut self, line: u64, why: String) {
        self.report.refused_lines += 1;
        if self.report.refused.len() < TOLD {
            self.report.refused.push((line, why));
        }
    }
}

fn unreadable(line: u64, error: io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, format!("cannot read line {line} of the export")).with_source(error)
}
