//! Lists, page by page.

use std::time::SystemTime;

use crate::dead_letter::LetterRow;

/// The order of a list. Letters equal in it follow their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// The newest failure first: for people.
    #[default]
    NewestFirst,
    /// The one longest unseen first: for replays.
    LongestUnseenFirst,
}

/// Which page of a list is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRequest {
    /// The order.
    pub order: Order,
    /// At most so many letters; 50 by default.
    pub limit: u32,
    /// Where the page before ended; `None` for the first page.
    pub after: Option<Cursor>,
}

impl PageRequest {
    /// The first page in an order.
    pub const fn first(order: Order, limit: u32) -> Self {
        Self { order, limit, after: None }
    }

    /// The page that starts after `cursor`.
    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self::first(Order::default(), 50)
    }
}

/// A place in a list: behind the letter with these keys. Works however deep the page is, and while letters come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The last letter's `last_seen`.
    pub last_seen: SystemTime,
    /// The last letter's `seq`.
    pub seq: u64,
}

impl Cursor {
    /// The place behind a letter.
    pub const fn behind(row: &LetterRow) -> Self {
        Self { last_seen: row.last_seen, seq: row.seq }
    }

    /// Whether a letter comes behind this place in `order`.
    pub fn precedes(&self, row: &LetterRow, order: Order) -> bool {
        match order {
            Order::NewestFirst => (row.last_seen, row.seq) < (self.last_seen, self.seq),
            Order::LongestUnseenFirst => (row.last_seen, row.seq) > (self.last_seen, self.seq),
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The letters.
    pub rows: Vec<LetterRow>,
    /// Where the next page starts; `None` when this is the last one.
    pub next: Option<Cursor>,
}

impl Page {
    /// The page of `rows`, which may hold one more than `limit`: that one says that there is a next page.
    pub fn of(mut rows: Vec<LetterRow>, limit: u32) -> Self {
        let limit = limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = if more { rows.last().map(Cursor::behind) } else { None };
        Self { rows, next }
    }
}
