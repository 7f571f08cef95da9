//! Words that were given, each at most once; a second one is reported here and nowhere else.

use super::parse::Item;
use super::table::Word;
use crate::diag::Diag;

/// The words of one case, or of the type.
pub(super) struct Slots<'d> {
    items: Vec<Item>,
    broken: bool,
    diag: &'d Diag,
}

impl<'d> Slots<'d> {
    pub(super) fn new(diag: &'d Diag) -> Self {
        Self { items: Vec::new(), broken: false, diag }
    }

    /// Adds words; one that is there already is an error at the second.
    pub(super) fn fill(&mut self, items: Vec<Item>) {
        for item in items {
            if self.get(item.entry.word).is_some() {
                self.diag.error(&item.key, format!("`{}` is given twice; once is enough", item.entry.name));
                self.broken = true;
            } else {
                self.items.push(item);
            }
        }
    }

    pub(super) fn get(&self, word: Word) -> Option<&Item> {
        self.items.iter().find(|item| item.entry.word == word)
    }

    /// The words that decide, in the order written.
    pub(super) fn decisions(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| {
            let word = item.entry.word;
            word.is_disposition() || matches!(word, Word::Transparent | Word::With | Word::Status | Word::Message)
        })
    }

    /// Whether a word was given twice.
    pub(super) fn broken(&self) -> bool {
        self.broken
    }

    pub(super) fn into_items(self) -> Vec<Item> {
        self.items
    }
}
