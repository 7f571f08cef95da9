//! The file of who may come in: a line for each, `name role sha256-of-the-token`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::identity::{Identity, Role};

/// How many lines such a file may have: each costs a comparison at each login.
const MOST: usize = 1_000;

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 512;

/// Those who may come in, and the hashes of their tokens. The tokens themselves are kept nowhere.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    known: Vec<(Identity, [u8; 32])>,
}

/// A file of tokens that cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TokensError {
    /// It cannot be read.
    Io(PathBuf, io::Error),
    /// Others than its owner may read or change it: its mode.
    TooOpen(PathBuf, u32),
    /// A line is none: its number, and what is wrong with it.
    Line(PathBuf, usize, String),
    /// Nobody could come in.
    Empty(PathBuf),
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot read the tokens in `{}`: {error}", path.display()),
            Self::TooOpen(path, mode) => write!(
                f,
                "`{0}` has mode {mode:04o}: others than its owner can get at it; `chmod 600 {0}` first",
                path.display()
            ),
            Self::Line(path, line, why) => {
                write!(f, "`{}`, line {line}: {why}; accepted is `name role sha256`", path.display())
            }
            Self::Empty(path) => {
                write!(f, "`{}` names nobody: add a line from `dlq serve --new-token NAME`", path.display())
            }
        }
    }
}

impl std::error::Error for TokensError {}

impl Tokens {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets somebody in by a token.
    #[must_use]
    pub fn with(mut self, identity: Identity, token: &str) -> Self {
        self.known.push((identity, digest(token)));
        self
    }

    /// Reads a file, which only its owner may read and change. Empty lines, and what follows a `#`, are passed over.
    ///
    /// # Errors
    /// [`TokensError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TokensError> {
        let path = path.as_ref();
        let failed = |error| TokensError::Io(path.to_owned(), error);
        check_mode(path, &fs::metadata(path).map_err(failed)?)?;
        let text = fs::read_to_string(path).map_err(failed)?;
        let mut tokens = Self::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let known = entry(line).map_err(|why| TokensError::Line(path.to_owned(), number, why))?;
            if tokens.known.len() >= MOST {
                return Err(TokensError::Line(path.to_owned(), number, format!("more than {MOST} tokens")));
            }
            tokens.known.push(known);
        }
        if tokens.known.is_empty() {
            return Err(TokensError::Empty(path.to_owned()));
        }
        Ok(tokens)
    }

    /// Whose token it is. Takes the same time whoever it is, and whether or not it is anybody's.
    pub fn identify(&self, token: &str) -> Option<Identity> {
        if token.len() > LONGEST {
            return None;
        }
        let given = digest(token);
        let mut found = None;
        for (identity, known) in &self.known {
            let same: Choice = known.ct_eq(&given);
            if bool::from(same) {
                found = Some(identity);
            }
        }
        found.cloned()
    }
}

#[cfg(unix)]
fn check_mode(path: &Path, meta: &fs::Metadata) -> Result<(), TokensError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = meta.permissions().mode() & 0o7777;
    let others = mode & 0o077;
    if others == 0 { Ok(()) } else { Err(TokensError::TooOpen(path.to_owned(), mode)) }
}

#[cfg(not(unix))]
fn check_mode(_path: &Path, _meta: &fs::Metadata) -> Result<(), TokensError> {
    Ok(())
}

fn entry(line: &str) -> Result<(Identity, [u8; 32]), String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(role), Some(hash), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err("three words are expected".to_owned());
    };
    let role = Role::parse(role).ok_or_else(|| format!("`{role}` is no role: viewer, operator, admin"))?;
    let hash = unhex(hash).ok_or_else(|| "the third word is no SHA-256 of 64 hexadecimal digits".to_owned())?;
    Ok((Identity::new(name, role), hash))
}

/// A new token, and the line for the file that lets it in. The token is shown once, and kept nowhere.
///
/// # Errors
/// `Err` where the system has no random numbers, or the name is none: one word without `#`, at most 100 bytes.
pub fn new_token(name: &str, role: Role) -> Result<(String, String), String> {
    let is_word = |c: char| !c.is_whitespace() && !c.is_control() && c != '#';
    if name.is_empty() || name.len() > 100 || !name.chars().all(is_word) {
        return Err(format!("`{}` is no name: accepted is one word of at most 100 bytes", name.escape_debug()));
    }
    let token = format!("dlq_{}", random()?);
    let line = format!("{name} {} {}", role.as_str(), hex(&digest(&token)));
    Ok((token, line))
}

/// 32 random bytes, as text.
pub(super) fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(hex(&bytes))
}

pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
pub(super) fn same(a: &str, b: &str) -> bool {
    digest(a).ct_eq(&digest(b)).into()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a text does not fail.
        let _written = write!(out, "{byte:02x}");
    }
    out
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(out)
}
