//! Tables for people, and the words around them.

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::text;

/// As wide as the terminal; 120 where there is none, so that what goes into a file does not depend on a window.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0)).max(40)
}

/// How a column stands.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    Left(&'static str),
    Right(&'static str),
    /// The last one takes what is left of the line.
    Rest(&'static str),
}

/// A table without lines. Cells are made safe here, and cut: whatever they hold, a row is a row.
pub(crate) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let most = width();
    let mut rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| row.into_iter().map(|cell| text::cut(&cell, most.max(text::LINE))).collect())
        .collect();
    let title = |column: &Column| match column {
        Column::Left(title) | Column::Right(title) | Column::Rest(title) => *title,
    };
    if let Some(rest) = columns.iter().position(|column| matches!(column, Column::Rest(_))) {
        let widest = |at: usize| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain(columns.get(at).map(|column| title(column).len())).max().unwrap_or(0)
        };
        let taken: usize = (0..columns.len()).filter(|at| *at != rest).map(|at| widest(at) + 2).sum();
        let left = most.saturating_sub(taken).max(20);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(rest)) {
            *cell = shorten(cell, left);
        }
    }
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(title));
    for row in rows {
        table.add_row(row.into_iter().map(Cell::new));
    }
    for (column, at) in columns.iter().zip(0..) {
        if let Some(shown) = table.column_mut(at) {
            shown.set_padding((0, 2));
            if matches!(column, Column::Right(_)) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Cuts what is safe already.
fn shorten(safe: &str, most: usize) -> String {
    if safe.chars().count() <= most {
        return safe.to_owned();
    }
    safe.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// `20 of 214 matching`: always said, so that nobody takes a page for everything.
pub(crate) fn matching(shown: u64, matching: u64) -> String {
    format!("{shown} of {matching} matching")
}

/// A style's words; whether they are coloured is decided where they are written.
pub(crate) fn styled(style: Style, words: &str) -> String {
    format!("{style}{words}{style:#}")
}

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const CAREFUL: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Numbers as a line of eight heights; nothing is a dot, so that a gap is not an end.
pub(crate) fn sparkline(values: &[u64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0);
    let height = |n: u64| {
        let at = u128::from(n).saturating_mul(HEIGHTS.len() as u128 - 1) / u128::from(most.max(1));
        usize::try_from(at).ok().and_then(|at| HEIGHTS.get(at).copied()).unwrap_or('█')
    };
    values.iter().map(|n| if *n == 0 { '·' } else { height(*n) }).collect()
}

/// Sizes for people.
pub(crate) fn bytes(n: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if n >= 1 << shift {
            let tenths = (n >> (shift - 10)).saturating_mul(10) >> 10;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{n} B")
}

/// `1 letter`, `2 letters`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_tell_nothing_from_little() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), "·▁▄█");
        assert_eq!(sparkline(&[u64::MAX, 1]), "█▁");
        assert_eq!((sparkline(&[]), sparkline(&[0, 0])), (String::new(), "··".to_owned()));
    }

    // Hostile text stays in its row.
    #[test]
    fn a_row_is_a_line_whatever_it_holds() {
        let rows = [
            vec!["1".to_owned(), format!("a\n\x1b[2J{}", "x".repeat(10 << 20))],
            vec!["22".to_owned(), "b".to_owned()],
        ];
        let shown = table(&[Column::Right("N"), Column::Rest("MESSAGE")], rows);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        assert!(lines.iter().all(|line| line.chars().count() <= width()), "{shown}");
        assert!(shown.contains("a\\n\\u{1b}[2Jxx") && shown.contains('…'), "{shown}");
    }
}
