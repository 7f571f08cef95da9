//! How much of a letter's history is kept: never reset, and never without bound.
//!
//! Beyond the bounds entries are taken out of the middle. The oldest half says how it began, the newest half how it stands;
//! how many are missing in between is counted.

use crate::dead_letter::HistoryEntry;

/// How many attempts of one letter are kept.
pub const MAX_HISTORY_ENTRIES: u64 = 1_000;

/// How many bytes of messages the attempts of one letter may have together. (Each has at most
/// [`MAX_MESSAGE`](crate::attempt::MAX_MESSAGE).)
pub const MAX_HISTORY_BYTES: u64 = 256 << 10;

/// How large a letter's history is, and what was cut out of it: the bounds as a pure rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistorySize {
    /// Attempts that are kept.
    pub entries: u64,
    /// Bytes of their messages.
    pub bytes: u64,
    /// Attempts that were cut out.
    pub cut: u64,
    /// How many attempts are kept from before the cut; settled by the first cut.
    pub cut_at: u64,
}

impl HistorySize {
    /// A size as a store has kept it.
    pub const fn new(entries: u64, bytes: u64, cut: u64, cut_at: u64) -> Self {
        Self { entries, bytes, cut, cut_at }
    }

    /// Counts further attempts.
    pub fn add(&mut self, entries: &[HistoryEntry]) {
        self.entries = self.entries.saturating_add(entries.len() as u64);
        self.bytes = self.bytes.saturating_add(entries.iter().map(message_size).sum());
    }

    /// Whether one has to be cut out. The newest one never is.
    pub const fn is_over(&self) -> bool {
        (self.entries > MAX_HISTORY_ENTRIES || self.bytes > MAX_HISTORY_BYTES)
            && self.entries > self.cut_at.saturating_add(1)
    }

    /// How many are cut out at once: the one at place [`cut_at`](Self::cut_at), and those behind it.
    pub const fn excess(&self) -> u64 {
        match self.entries.saturating_sub(MAX_HISTORY_ENTRIES) {
            0 => 1,
            excess => excess,
        }
    }

    /// Settles where to cut, before the first cut: behind the oldest attempts, as many as fill half of either bound.
    /// `sizes` are the messages' sizes, the oldest attempt's first; no more than 500 are looked at.
    pub fn settle(&mut self, sizes: impl IntoIterator<Item = u64>) {
        let mut bytes = 0_u64;
        let oldest = sizes.into_iter().take(usize::try_from(MAX_HISTORY_ENTRIES / 2).unwrap_or(usize::MAX));
        let kept = oldest.take_while(|size| {
            bytes = bytes.saturating_add(*size);
            bytes <= MAX_HISTORY_BYTES / 2
        });
        self.cut_at = kept.count() as u64;
    }

    /// One was cut out, whose message had so many bytes.
    pub const fn took_out(&mut self, bytes: u64) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.cut = self.cut.saturating_add(1);
    }

    /// Cuts a history that is wholly in memory. `self` counts it already.
    pub fn cut(&mut self, history: &mut Vec<HistoryEntry>) {
        if self.cut == 0 && self.is_over() {
            self.settle(history.iter().map(message_size));
        }
        while self.is_over() {
            let first = usize::try_from(self.cut_at).unwrap_or(usize::MAX).min(history.len());
            let last = first.saturating_add(usize::try_from(self.excess()).unwrap_or(usize::MAX)).min(history.len());
            if first == last {
                break;
            }
            for entry in history.drain(first..last) {
                self.took_out(message_size(&entry));
            }
        }
    }
}

/// What an attempt's message counts for.
pub fn message_size(entry: &HistoryEntry) -> u64 {
    entry.message.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::MAX_MESSAGE;
    use crate::dead_letter::AttemptOutcome;
    use proptest::prelude::*;
    use std::time::SystemTime;

    fn entry(number: u32, size: usize) -> HistoryEntry {
        let mut entry = HistoryEntry::bare(1, AttemptOutcome::Failed, SystemTime::UNIX_EPOCH, "x".repeat(size));
        entry.attempt = number;
        entry
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        // D78: within the bounds, the two ends kept, in order, everything accounted for.
        #[test]
        fn the_middle_is_what_goes(batches in proptest::collection::vec((1..40_u32, 0..=MAX_MESSAGE), 1..70)) {
            let (mut size, mut history, mut number) = (HistorySize::default(), Vec::new(), 0_u32);
            let mut oldest: Option<Vec<HistoryEntry>> = None;
            for (count, bytes) in batches {
                let new: Vec<_> = (0..count).map(|n| entry(number + n, (bytes * (n as usize + 1)) % (MAX_MESSAGE + 1))).collect();
                number += count;
                size.add(&new);
                let newest = new.last().cloned();
                history.extend(new);
                size.cut(&mut history);
                prop_assert_eq!(size.entries, history.len() as u64);
                prop_assert_eq!(size.bytes, history.iter().map(message_size).sum::<u64>());
                prop_assert!(size.entries <= MAX_HISTORY_ENTRIES && size.bytes <= MAX_HISTORY_BYTES);
                prop_assert_eq!(size.entries + size.cut, u64::from(number));
                prop_assert_eq!(history.last(), newest.as_ref());
                prop_assert!(history.is_sorted_by_key(|entry| entry.attempt));
                if size.cut > 0 {
                    let at = usize::try_from(size.cut_at).unwrap_or(usize::MAX);
                    let before = history.get(..at).unwrap_or_default();
                    // Never touched again.
                    prop_assert_eq!(oldest.get_or_insert_with(|| before.to_vec()).as_slice(), before);
                    // What is missing is missing there, and nowhere else.
                    let gap = |pair: &[HistoryEntry]| matches!(pair, [a, b] if b.attempt != a.attempt + 1);
                    let gaps: Vec<_> = history.windows(2).enumerate().filter(|(_, pair)| gap(pair)).map(|(n, _)| n + 1).collect();
                    prop_assert_eq!(gaps, if at == 0 { vec![] } else { vec![at] });
                }
            }
        }
    }

    #[test]
    fn short_messages_are_cut_by_their_number() {
        let (mut size, mut history) = (HistorySize::default(), Vec::new());
        let new: Vec<_> = (0..1_500).map(|n| entry(n, 1)).collect();
        size.add(&new);
        history.extend(new);
        size.cut(&mut history);
        assert_eq!((size.entries, size.cut, size.cut_at), (1_000, 500, 500));
        let numbers: Vec<_> = history.iter().map(|entry| entry.attempt).collect();
        assert_eq!(numbers, (0..500).chain(1_000..1_500).collect::<Vec<_>>());
    }
}
