//! What workers saw, in files outside the store: a worker that is killed has told everything up to that moment.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Event {
            $($(#[$doc])* $name,)*
        }

        impl Event {
            const ALL: &'static [Self] = &[$(Self::$name),*];

            const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

events! {
    /// A letter is about to be handed over: park id, attempts, `kind/job`.
    Sent = "sent",
    /// The store answered: park id, letter id.
    Parked = "parked",
    /// Park id, where.
    Spilled = "spilled",
    /// Park id, why.
    Lost = "lost",
    /// Letter id, fence, end of the lease in milliseconds; `kept` where the store itself extends it.
    Claimed = "claimed",
    /// A lease is about to be extended: letter id, fence.
    Extending = "extending",
    /// The handler did its work: letter id, fence, idempotency key.
    Ran = "ran",
    /// A result is about to be written: letter id, fence, `outcome attempts`.
    Finishing = "finishing",
    /// The store took it: letter id, fence, state.
    Finished = "finished",
    /// The store refused it as late: letter id, fence.
    Stale = "stale",
    /// Whether it was written is not known: letter id, fence, error kind.
    Unknown = "unknown",
    /// A lease is about to be given back: letter id, fence.
    Releasing = "releasing",
    /// An operator is about to take a lease away: letter id.
    Forcing = "forcing",
    /// An operator is about to park a closed letter again: letter id.
    Restoring = "restoring",
    /// An operator is about to discard a letter: letter id.
    Discarding = "discarding",
    /// An operator is about to say that a letter was resolved: letter id.
    Resolving = "resolving",
    /// An operator is about to edit a payload: letter id, the mark of the edit.
    Editing = "editing",
    /// A fault that workers bring about themselves: `lease` or `clock`.
    Met = "met",
    /// A verb failed: verb, error.
    Refused = "refused",
    /// The store said something it must never say: letter id, fence, what.
    Wrong = "wrong",
}

/// One line of a witness file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) event: Event,
    /// The park id or the letter id.
    pub(super) id: String,
    /// The fence; the attempts of a letter that is sent.
    pub(super) number: u64,
    /// The rest.
    pub(super) text: String,
}

impl Line {
    pub(super) fn of(event: Event, id: &str, number: u64, text: &str) -> Self {
        Self { event, id: id.to_owned(), number, text: text.replace(['\n', '\r'], " ") }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let event = words.next()?;
        let event = Event::ALL.iter().copied().find(|known| known.as_str() == event)?;
        let id = words.next()?.to_owned();
        let number = words.next()?.parse().ok()?;
        Some(Self { event, id, number, text: words.next()?.to_owned() })
    }
}

/// The file one life of a worker appends to.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
}

impl Witness {
    pub(super) fn open(place: &Path, worker: usize, life: u64) -> io::Result<Self> {
        let path = path_of(place, worker, life);
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    /// In one write: what is written is there, whenever the process is killed.
    pub(super) fn tell(&self, event: Event, id: &str, number: u64, text: &str) -> io::Result<()> {
        let line = Line::of(event, id, number, text);
        let text = format!("{} {} {} {}\n", event.as_str(), line.id, number, line.text);
        (&self.file).write_all(text.as_bytes())
    }
}

pub(super) fn path_of(place: &Path, worker: usize, life: u64) -> PathBuf {
    place.join(format!("witness-{worker}-{life:05}.log"))
}

/// Everything that was told by all lives. A last line that is not whole was not told.
pub(super) fn read_all(place: &Path) -> io::Result<Vec<Line>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(place)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("witness-")))
        .collect();
    paths.sort();
    let mut lines = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let told = Line::parse(line);
            lines.push(told.ok_or_else(|| io::Error::other(format!("`{}` holds `{line}`", path.display())))?);
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were_told() {
        for event in Event::ALL {
            let line = Line::of(*event, "id", 7, "two words\nand a break");
            let text = format!("{} {} {} {}", event.as_str(), line.id, line.number, line.text);
            assert_eq!(Line::parse(&text), Some(line));
        }
        assert_eq!(Line::parse("sent id 7"), None);
        assert_eq!(Line::parse("dreamt id 7 x"), None);
    }
}
