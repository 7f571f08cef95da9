//! Payloads to bytes and back, without trust in what is read.

use std::io::Read;

use super::hash;

/// The JSON text as it is.
pub(super) const PLAIN: &str = "json";

/// The JSON text as one Zstandard frame.
pub(super) const ZSTD: &str = "json+zstd";

/// Zstandard's own default: JSON shrinks to a fraction at several hundred MB/s.
const LEVEL: i32 = 3;

pub(super) fn compress(json: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(json, LEVEL)
}

/// The most bytes a payload of `size` is stored in: compression makes what it cannot shrink a little larger.
pub(crate) fn largest(size: u64) -> u64 {
    size.saturating_add(size / 128).saturating_add(1 << 10)
}

/// The payload, if it is the one that was stored. No more than `size` bytes and one are ever unpacked: what claims to be small
/// and is not (damaged, or made to eat memory) is an error.
pub(crate) fn decode(encoding: &str, bytes: Vec<u8>, size: u64, sha256: &[u8]) -> Result<String, String> {
    let json = if encoding == ZSTD { unpack(&bytes, size)? } else { bytes };
    if json.len() as u64 != size {
        return Err(format!("it is not the {size} bytes that were stored"));
    }
    if hash(&json) != *sha256 {
        return Err("its hash is not that of what was stored".to_owned());
    }
    String::from_utf8(json).map_err(|_| "it is not UTF-8".to_owned())
}

fn unpack(bytes: &[u8], size: u64) -> Result<Vec<u8>, String> {
    let broken = |error: std::io::Error| format!("it cannot be unpacked: {error}");
    let decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(broken)?;
    // The size is not believed so far as to take the memory in advance.
    let mut json = Vec::new();
    decoder.take(size.saturating_add(1)).read_to_end(&mut json).map_err(broken)?;
    Ok(json)
}
