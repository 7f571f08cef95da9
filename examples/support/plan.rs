//! What the server does to whom: scripted for tests, or seeded so that every run misbehaves alike.

use std::collections::HashMap;

/// One answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What was asked for: a Gemini answer, or an image of this many bytes.
    Good(usize),
    /// Google's JSON error with this code, status and message.
    Google(u16, &'static str, &'static str),
    /// 429 whose JSON carries a `google.rpc.RetryInfo` of this delay: `"53s"`, `"0.5s"`.
    RetryInfo(&'static str),
    /// 429 with this `Retry-After` header.
    RetryAfter(&'static str),
    /// A bare status.
    Status(u16),
    /// No answer at all.
    Hang,
    /// The start of a good answer, then a reset connection.
    Cut,
    /// 200 and an HTML page, where JSON or an image was expected.
    Html,
}

/// Answers per key, in order; the last one stays. A Gemini key is the prompt; an image has one key for each route,
/// `worker:URL` and `direct:PATH`.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    scripts: HashMap<String, Vec<Reply>>,
    seed: Option<u64>,
}

impl Plan {
    /// Everything is good, but for what [`script`](Self::script) adds.
    pub fn good() -> Self {
        Self::default()
    }

    /// Everybody else gets what the seed deals out.
    pub fn seeded(seed: u64) -> Self {
        Self { scripts: HashMap::new(), seed: Some(seed) }
    }

    /// The answers for one key.
    #[must_use]
    pub fn script(mut self, key: impl Into<String>, replies: impl Into<Vec<Reply>>) -> Self {
        self.scripts.insert(key.into(), replies.into());
        self
    }

    /// The answer to the `asked`-th request (from 0) for a key.
    pub fn reply(&self, key: &str, asked: usize) -> Reply {
        let dealt;
        let script = match (self.scripts.get(key), self.seed) {
            (Some(script), _) => script,
            (None, Some(seed)) => {
                dealt = deal(key, seed);
                &dealt
            }
            (None, None) => return Reply::Good(SIZE),
        };
        script.get(asked).or(script.last()).cloned().unwrap_or(Reply::Good(SIZE))
    }
}

/// Deals every fault out to the batches that the examples make when they are given none.
pub const SAMPLE_SEED: u64 = 4;

const SIZE: usize = 20_000;

/// Each way of failing for about one key in fifty; two in three are good at once.
fn deal(key: &str, seed: u64) -> Vec<Reply> {
    let good = Reply::Good(SIZE);
    let luck = mix(key, seed) % 48;
    if key.starts_with("worker:") {
        return match luck {
            0..4 => vec![Reply::Status(403)],
            4..6 => vec![Reply::Status(404)],
            6..8 => vec![Reply::Status(410)],
            8..10 => vec![Reply::Status(451)],
            10..12 => vec![Reply::Html],
            12..14 => vec![Reply::Status(503), good],
            14 => vec![Reply::Hang, good],
            15 => vec![Reply::Cut, good],
            16..20 => vec![Reply::Status(500)],
            _ => vec![good],
        };
    }
    if key.starts_with("direct:") {
        return match luck {
            0..6 => vec![Reply::Status(403)],
            6..8 => vec![Reply::Status(404)],
            8 => vec![Reply::Cut],
            _ => vec![Reply::Good(3 * SIZE)],
        };
    }
    match luck {
        0 => vec![Reply::Google(403, "PERMISSION_DENIED", "The caller does not have permission")],
        1 => vec![Reply::Google(400, "INVALID_ARGUMENT", "Request contains an invalid argument.")],
        2 => vec![Reply::Google(503, "UNAVAILABLE", "Stopped by the SAFETY filter")],
        3 => vec![Reply::Google(404, "NOT_FOUND", "models/none is not found")],
        4 => vec![Reply::Google(410, "NOT_FOUND", "This model was retired")],
        5 => vec![Reply::Google(500, "INTERNAL", "An internal error has occurred")],
        6 => vec![Reply::RetryInfo("0.5s"), Reply::RetryInfo("1s"), good],
        7 => vec![Reply::RetryAfter("1"), good],
        8 => vec![Reply::Google(503, "UNAVAILABLE", "The model is overloaded"), good],
        9 => vec![Reply::Google(504, "DEADLINE_EXCEEDED", "Deadline expired"), good],
        10 => vec![Reply::Google(418, "UNAVAILABLE", "short and stout"), good],
        11 => vec![Reply::Hang, good],
        12 => vec![Reply::Cut, good],
        13 => vec![Reply::Html, good],
        14 => vec![Reply::Status(502), Reply::Status(500), good],
        15 => vec![Reply::RetryAfter("3600")],
        _ => vec![good],
    }
}

/// FNV-1a over key and seed, stirred once more: neighbours differ.
fn mix(key: &str, seed: u64) -> u64 {
    let hash = key
        .bytes()
        .chain(seed.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 29)
}
