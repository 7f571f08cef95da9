//! How payloads are kept: as they are, compressed, or in a file of their own.
//!
//! A payload that is small stands in its row as it is, where the view `dead_letter` shows it. A large one is compressed; one
//! that is large even then goes into a file beside the database ([`blobs`]), because large rows fragment the file. The row
//! says which of these it is, and has the size and the hash of the payload as it was: what is read back is what was
//! written, or an error.

pub(crate) mod blobs;
pub(crate) mod codec;
pub(crate) mod collect;

use retry_runtime::dead_letter::Payload;
use retry_runtime::observe::Notice;
use rusqlite::{Row, params};
use sha2::{Digest, Sha256};

use crate::rows::{Tx, number, stored};
use blobs::{BlobError, Blobs};
use codec::{PLAIN, ZSTD};

/// Payloads of so many bytes and more are compressed.
const COMPRESSED_FROM: usize = 64 << 10;

/// Rows hold no more than this, whatever is asked for: SQLite has a limit of its own a little above.
pub(crate) const MOST_IN_A_ROW: u64 = 512 << 20;

/// What is needed to write payloads and to read them.
#[derive(Debug)]
pub(crate) struct Payloads {
    pub(crate) blobs: Blobs,
    /// What is larger than this after compression gets a file.
    pub(crate) file_above: u64,
}

/// A large payload, ready for its row.
#[derive(Debug)]
pub(crate) struct Encoded {
    encoding: &'static str,
    bytes: Vec<u8>,
    /// The name of the file that holds the bytes.
    blob: Option<String>,
}

impl Payloads {
    /// For tests of statements that write none.
    #[cfg(test)]
    pub(crate) fn nowhere() -> &'static Self {
        static NOWHERE: std::sync::LazyLock<Payloads> =
            std::sync::LazyLock::new(|| Payloads { blobs: Blobs::beside("nowhere".as_ref()), file_above: u64::MAX });
        &NOWHERE
    }

    /// Compresses a large payload and writes its file, before the transaction of its row is begun: that one is short then.
    /// `None` where there is nothing to prepare, or a file could not be written; [`write`] tries again, and says why.
    pub(crate) fn prepare(&self, payload: &Payload) -> Option<Encoded> {
        match payload {
            Payload::Json(json) if json.len() >= COMPRESSED_FROM => self.encode(json).ok(),
            _ => None,
        }
    }

    fn encode(&self, json: &str) -> Result<Encoded, BlobError> {
        let (encoding, bytes) = match codec::compress(json.as_bytes()) {
            Ok(bytes) => (ZSTD, bytes),
            // It is kept in any case.
            Err(_) => (PLAIN, json.as_bytes().to_vec()),
        };
        let large = bytes.len() as u64 > self.file_above.min(MOST_IN_A_ROW);
        let blob = if large { Some(self.blobs.put(&bytes)?) } else { None };
        Ok(Encoded { encoding, bytes, blob })
    }
}

/// What is written of a payload besides itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) seq: u64,
    pub(crate) revision: u32,
    /// `park`, `edit`, `import`.
    pub(crate) source: &'a str,
    pub(crate) actor: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
}

/// Encodes a payload, in the transaction of the row that names it, and has it written: its encoding, and its bytes or the
/// name of its file.
pub(crate) fn with_columns(
    tx: Tx<'_>,
    json: &str,
    prepared: Option<&Encoded>,
    write: impl FnOnce(&str, Option<&[u8]>, Option<&str>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let fresh;
    let encoded = match prepared {
        Some(encoded) => Some(encoded),
        None if json.len() >= COMPRESSED_FROM => {
            fresh = tx.payloads.encode(json).map_err(BlobError::into_sqlite)?;
            Some(&fresh)
        }
        None => None,
    };
    let (encoding, bytes, blob) = match encoded {
        None => (PLAIN, Some(json.as_bytes()), None),
        Some(Encoded { encoding, bytes, blob: None }) => (*encoding, Some(bytes.as_slice()), None),
        Some(Encoded { encoding, bytes, blob: Some(blob) }) => {
            // Files are collected under the lock that this transaction holds: one that is there now stays, because the row
            // that names it is there when the lock is free again. One that was collected since it was written is written
            // again.
            if !tx.payloads.blobs.is_there(blob, bytes.len() as u64) {
                tx.payloads.blobs.put(bytes).map_err(BlobError::into_sqlite)?;
            }
            (*encoding, None, Some(blob.as_str()))
        }
    };
    write(encoding, bytes, blob)
}

/// Writes a revision of a letter's payload, in the transaction of its letter.
pub(crate) fn write(tx: Tx<'_>, about: About<'_>, json: &str, prepared: Option<&Encoded>) -> rusqlite::Result<()> {
    with_columns(tx, json, prepared, |encoding, bytes, blob| {
        tx.connection
        .prepare_cached(
            "INSERT INTO payload(seq, revision, encoding, size, bytes, blob, sha256, source, actor, reason, created_at)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            stored(about.seq),
            about.revision,
            encoding,
            stored(json.len() as u64),
            bytes,
            blob,
            hash(json.as_bytes()),
            about.source,
            about.actor,
            about.reason,
            tx.millis()
        ])?;
        Ok(())
    })
}

/// The hash a row has of its payload, as it was.
pub(crate) fn hash(json: &[u8]) -> [u8; 32] {
    Sha256::digest(json).into()
}

/// The columns [`Raw::read`] reads, of `payload p` joined to `letter l`.
pub(crate) const COLUMNS: &str = "p.encoding, p.size, p.bytes, p.blob, p.sha256, l.payload_error";

/// A payload as its row has it. Reading it cannot fail for what is in it; decoding it comes later, outside of transactions.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    encoding: Option<String>,
    size: u64,
    bytes: Option<Vec<u8>>,
    blob: Option<String>,
    sha256: Vec<u8>,
    error: Option<String>,
}

impl Raw {
    /// Reads [`COLUMNS`], all but the last NULL where there is no payload.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            encoding: row.get(0)?,
            size: row.get::<_, Option<i64>>(1)?.map_or(0, number),
            bytes: row.get(2)?,
            blob: row.get(3)?,
            sha256: row.get::<_, Option<Vec<u8>>>(4)?.unwrap_or_default(),
            error: row.get(5)?,
        })
    }

    /// Whether decoding it takes time: it is compressed, or in a file.
    pub(crate) fn is_large(&self) -> bool {
        self.blob.is_some() || self.encoding.as_deref() == Some(ZSTD)
    }

    /// The payload. One that cannot be read is said aloud, and is no reason to fail: its letter is there.
    pub(crate) fn decode(self, payloads: &Payloads, letter_id: &str) -> Payload {
        let Some(encoding) = self.encoding else {
            return self.error.map_or(Payload::None, Payload::Unserializable);
        };
        let found = match (self.blob, self.bytes) {
            _ if encoding != PLAIN && encoding != ZSTD => {
                return Payload::Unserializable(format!("stored in an encoding unknown here: `{encoding}`"));
            }
            (None, Some(bytes)) if encoding == PLAIN => {
                return String::from_utf8(bytes).map_or_else(
                    |_| Payload::Unserializable("the stored payload is not UTF-8".to_owned()),
                    Payload::Json,
                );
            }
            (None, Some(bytes)) => codec::decode(&encoding, bytes, self.size, &self.sha256),
            (Some(blob), _) => payloads
                .blobs
                .get(&blob, codec::largest(self.size))
                .map_err(|error| error.to_string())
                .and_then(|bytes| codec::decode(&encoding, bytes, self.size, &self.sha256)),
            (None, None) => Err("its row has neither bytes nor the name of a file".to_owned()),
        };
        found.map_or_else(
            |why| {
                let message = format!("the payload of letter {letter_id} cannot be read: {why}");
                Notice::error("payload_unreadable", "", message.clone()).say();
                Payload::Unserializable(message)
            },
            Payload::Json,
        )
    }
}

#[cfg(test)]
mod tests;
