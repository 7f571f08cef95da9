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

/// How many letters one page, or one claim, looks at unless it is told otherwise.
pub const LOOK_AT: u64 = 50_000;

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
    /// At most so many letters are looked at, [`LOOK_AT`] by default: a filter that no index serves alone
    /// ([`Filter::split`](crate::dead_letter::Filter::split)) may match few of very many. 0 counts as 1.
    pub look_at: u64,
}

impl PageRequest {
    /// The first page in an order.
    pub const fn first(order: Order, limit: u32) -> Self {
        Self { order, limit, after: None, look_at: LOOK_AT }
    }

    /// The page that starts after `cursor`.
    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }

    /// The page for which at most so many letters are looked at.
    #[must_use]
    pub const fn looking_at(mut self, letters: u64) -> Self {
        self.look_at = letters;
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
///
/// ```
/// use retry_runtime::dead_letter::{DeadLetterStore, Filter, MemoryStore, Order, PageRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = MemoryStore::new();
/// let mut after = None;
/// loop {
///     let page = store.list(Filter::parked(), PageRequest::first(Order::NewestFirst, 50).after(after)).await?;
///     for row in &page.rows {
///         println!("{} {}", row.kind, row.error_class);
///     }
///     after = page.next; // also behind a page without letters that is not complete
///     if after.is_none() {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The letters.
    pub rows: Vec<LetterRow>,
    /// Where the next page starts; `None` when this is the last one. Behind the last letter shown, or, where the page is not
    /// complete, behind the last one looked at: going on shows no letter twice and leaves none out.
    pub next: Option<Cursor>,
    /// `false`: [`PageRequest::look_at`] letters were looked at, and neither the page was full nor the list at its end. There
    /// may be more letters that match, also where `rows` is empty.
    pub complete: bool,
    /// How many letters were looked at, those shown included.
    pub looked_at: u64,
}

impl Page {
    /// The page of `rows`, which may hold one more than `limit`: that one says that there is a next page.
    pub fn of(mut rows: Vec<LetterRow>, limit: u32) -> Self {
        let looked_at = rows.len() as u64;
        let limit = limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = if more { rows.last().map(Cursor::behind) } else { None };
        Self { rows, next, complete: true, looked_at }
    }

    /// The page of what was found by looking at `looked_at` letters; `stopped` where it was not looked further: behind the
    /// last one looked at.
    #[must_use]
    pub fn looked(rows: Vec<LetterRow>, limit: u32, looked_at: u64, stopped: Option<Cursor>) -> Self {
        let page = Self { looked_at, ..Self::of(rows, limit) };
        match stopped {
            Some(_) if page.next.is_none() => Self { next: stopped, complete: false, ..page },
            _ => page,
        }
    }
}
