//! `google.rpc.RetryInfo` in the binary details of a gRPC status.

use std::time::Duration;

/// The wait that a gRPC status asks for: the `google.rpc.RetryInfo` in its details, which are a `google.rpc.Status` in the
/// format of protocol buffers (`tonic::Status::details`, or the decoded header `grpc-status-details-bin`). A negative wait
/// and bytes that are no such message are no hint.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::hints::rpc_retry_info;
///
/// let info = [&b"\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x35"[..]].concat();
/// assert_eq!(rpc_retry_info(&info), Some(Duration::from_secs(53)));
/// assert_eq!(rpc_retry_info(b"anything"), None);
/// ```
pub fn rpc_retry_info(details: &[u8]) -> Option<Duration> {
    // Status { code = 1, message = 2, details = 3: Any { type_url = 1, value = 2 } }
    fields(details).filter(|(number, _)| *number == 3).find_map(|(_, any)| {
        let any = any.bytes()?;
        let kind = bytes_of(any, 1)?;
        kind.ends_with(b"/google.rpc.RetryInfo").then(|| retry_delay(bytes_of(any, 2)?))?
    })
}

/// `RetryInfo { retry_delay = 1: Duration { seconds = 1, nanos = 2 } }`
fn retry_delay(info: &[u8]) -> Option<Duration> {
    let delay = bytes_of(info, 1)?;
    let number =
        |wanted| fields(delay).filter(|(number, _)| *number == wanted).last().map_or(Some(0), |(_, it)| it.int());
    let (seconds, nanos) = (number(1)?, number(2)?);
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(u64::try_from(seconds).ok()?, nanos))
}

fn bytes_of(message: &[u8], wanted: u64) -> Option<&[u8]> {
    fields(message).find(|(number, _)| *number == wanted).and_then(|(_, value)| value.bytes())
}

/// The value of a field: what is not looked at has none.
enum Value<'m> {
    Int(u64),
    Bytes(&'m [u8]),
    Other,
}

impl<'m> Value<'m> {
    fn bytes(self) -> Option<&'m [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// As the signed number it stands for.
    fn int(self) -> Option<i64> {
        if let Self::Int(int) = self { Some(i64::from_le_bytes(int.to_le_bytes())) } else { None }
    }
}

/// The fields of a message up to the first byte that fits none, each with its number.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || {
        let (tag, after) = varint(rest)?;
        let (value, after) = match tag & 7 {
            0 => varint(after).map(|(int, after)| (Value::Int(int), after))?,
            1 => (Value::Other, after.get(8..)?),
            2 => {
                let (length, after) = varint(after)?;
                let (bytes, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
                (Value::Bytes(bytes), after)
            }
            5 => (Value::Other, after.get(4..)?),
            _ => return None,
        };
        rest = after;
        Some((tag >> 3, value))
    })
}

/// Seven bits a byte, the lowest first, at most ten bytes.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(7 * at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}
