//! A log (WAL) in which pages are damaged. SQLite reads it up to the first of them, and drops every commit behind it
//! without a word. Each page carries a checksum that begins with the one before, so the others can be told to be well.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// What the first four bytes of a log say, where the checksums are of little-endian words; one more: of big-endian words.
const MAGIC: u32 = 0x377F_0682;

/// How a log was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// Pages in it.
    pub(super) pages: u64,
    /// Pages that are damaged, or that no whole commit follows.
    pub(super) lost: u64,
    /// SQLite itself reads less of it than there is.
    pub(super) is_damaged: bool,
}

/// A checksum of SQLite's log, as far as it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum(u32, u32);

impl Sum {
    fn add(self, bytes: &[u8], little: bool) -> Self {
        let word = |four: &[u8; 4]| if little { u32::from_le_bytes(*four) } else { u32::from_be_bytes(*four) };
        let Self(mut one, mut other) = self;
        for pair in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
            let [first, second] = pair;
            one = one.wrapping_add(word(first)).wrapping_add(other);
            other = other.wrapping_add(word(second)).wrapping_add(one);
        }
        Self(one, other)
    }
}

/// The number at a place of a header.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_be_bytes(*four))
}

/// What all pages of a log have in common.
struct Kind {
    page: usize,
    salts: (u32, u32),
    little: bool,
    /// What the first page's checksum begins with; `None` where the header is damaged.
    begins: Option<Sum>,
}

impl Kind {
    fn of(header: &[u8; HEADER], frames: &[u8], page: usize) -> Self {
        let little = number(header, 0) & 1 == 0;
        let sum = Sum(0, 0).add(header.get(..24).unwrap_or_default(), little);
        let is_whole = number(header, 0) & !1 == MAGIC && sum == Sum(number(header, 24), number(header, 28));
        if is_whole {
            let page = usize::try_from(number(header, 8)).unwrap_or(page);
            let salts = (number(header, 16), number(header, 20));
            return Self { page, salts, little, begins: Some(sum) };
        }
        // Its first page says which pages are of the same life of the log.
        let salts = (number(frames, 8), number(frames, 12));
        Self { page, salts, little: cfg!(target_endian = "little"), begins: None }
    }

    fn header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER);
        let page = u32::try_from(self.page).unwrap_or(0);
        for part in [MAGIC | u32::from(!self.little), 3_007_000, page, 0, self.salts.0, self.salts.1] {
            header.extend(part.to_be_bytes());
        }
        let Sum(a, b) = Sum(0, 0).add(&header, self.little);
        header.extend(a.to_be_bytes());
        header.extend(b.to_be_bytes());
        header
    }
}

/// Reads a log of pages of this size; where pages are damaged, writes those that are well, up to the last whole commit among
/// them, to `to`.
pub(super) fn mend(from: &Path, to: &Path, page: usize) -> io::Result<Log> {
    let mut file = BufReader::new(File::open(from)?);
    let length = file.get_ref().metadata()?.len();
    let (mut header, mut first) = ([0; HEADER], [0; FRAME]);
    if length < (HEADER + FRAME) as u64 {
        return Ok(Log::default());
    }
    file.read_exact(&mut header)?;
    file.read_exact(&mut first)?;
    let kind = Kind::of(&header, &first, page);
    let frame = FRAME + kind.page;
    let pages = (length - HEADER as u64) / frame as u64;
    let last = last_of_this_life(&mut file, &kind, pages)?;
    let mut log = Log { pages: last, lost: 0, is_damaged: kind.begins.is_none() };

    let mut out = BufWriter::new(File::create(to)?);
    out.write_all(&kind.header())?;
    let mut sum = Sum(0, 0).add(kind.header().get(..24).unwrap_or_default(), kind.little);
    let (mut before, mut written, mut whole) = (kind.begins, 0_u64, 0_u64);
    let mut bytes = vec![0; frame];
    file.seek(SeekFrom::Start(HEADER as u64))?;
    for _ in 0..last {
        file.read_exact(&mut bytes)?;
        let (head, data) = bytes.split_at_mut(FRAME);
        let said = Sum(number(head, 16), number(head, 20));
        let found = |from: Sum| from.add(head.get(..8).unwrap_or_default(), kind.little).add(data, kind.little);
        // Nothing is known of the first page of a log without a header.
        let is_well = (number(head, 8), number(head, 12)) == kind.salts && before.is_none_or(|sum| found(sum) == said);
        before = Some(said);
        if !is_well {
            (log.lost, log.is_damaged) = (log.lost + 1, true);
            continue;
        }
        sum = found(sum);
        for (at, part) in [(16, sum.0), (20, sum.1)] {
            if let Some(place) = head.get_mut(at..at + 4) {
                place.copy_from_slice(&part.to_be_bytes());
            }
        }
        let commits = number(head, 4) != 0;
        out.write_all(&bytes)?;
        written += 1;
        if commits {
            whole = written;
        }
    }
    if log.is_damaged {
        log.lost += written - whole;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.set_len(HEADER as u64 + whole * frame as u64)?;
    Ok(log)
}

/// How many pages are of this life of the log: those behind are left from the one before. (A damaged page may say anything.)
fn last_of_this_life(file: &mut BufReader<File>, kind: &Kind, pages: u64) -> io::Result<u64> {
    let mut last = 0;
    let mut head = [0; FRAME];
    for at in 0..pages {
        file.seek(SeekFrom::Start(HEADER as u64 + at * (FRAME + kind.page) as u64))?;
        file.read_exact(&mut head)?;
        if (number(&head, 8), number(&head, 12)) == kind.salts {
            last = at + 1;
        }
    }
    Ok(last)
}
