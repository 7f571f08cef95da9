//! Tables for people, and the words around them.

use std::io::IsTerminal as _;

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::text;

/// As wide as the terminal on stdout. `None`: a pipe or a file, where nothing is cut.
pub(crate) fn window() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    Some(terminal_size::terminal_size_of(stdout).map_or(120, |(width, _)| usize::from(width.0)).max(40))
}

/// So wide may a line of sentences be.
pub(crate) fn width() -> usize {
    window().unwrap_or(WIDEST)
}

/// The most of one cell, in characters: whatever a server sent, a row stays a row that can be read.
const WIDEST: usize = 4_096;

/// Less than this is no room for a message: it gets a line of its own.
const ROOM: usize = 32;

/// No column is made narrower.
const NARROWEST: usize = 8;

/// How a column stands.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    Left(&'static str),
    Right(&'static str),
    /// The last one takes what is left of the line.
    Rest(&'static str),
}

/// A table without lines. Cells are made safe here, and in a terminal it is as wide as that: the column that takes the rest
/// goes on a line of its own where there is little room beside the others.
pub(crate) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let safe = |row: Vec<String>| row.into_iter().map(|cell| text::cut(&cell, WIDEST)).collect();
    within(window(), columns, rows.into_iter().map(safe).collect())
}

fn title(column: &Column) -> &'static str {
    match column {
        Column::Left(title) | Column::Right(title) | Column::Rest(title) => title,
    }
}

/// A table of safe cells, within so many characters.
fn within(most: Option<usize>, columns: &[Column], mut rows: Vec<Vec<String>>) -> String {
    let Some(most) = most else { return drawn(columns, rows) };
    let is_rest = |column: &Column| matches!(column, Column::Rest(_));
    let rest = columns.iter().position(is_rest);
    let mut widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain(columns.get(at).map(|column| title(column).len())).max().unwrap_or(0)
        })
        .collect();
    let widest_rest = rest.and_then(|rest| widths.get_mut(rest).map(std::mem::take)).unwrap_or(0);
    let taken = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    let is_below = rest.is_some() && most.saturating_sub(taken(&widths)) < widest_rest.min(ROOM);
    while taken(&widths) > most {
        // The widest one gives.
        let Some(widest) = widths.iter_mut().filter(|width| **width > NARROWEST).max() else { break };
        *widest -= 1;
    }
    let left = if is_below { most.saturating_sub(4) } else { most.saturating_sub(taken(&widths)) };
    for row in &mut rows {
        for (at, cell) in row.iter_mut().enumerate() {
            let room = if Some(at) == rest { left } else { widths.get(at).copied().unwrap_or(left) };
            *cell = shorten(cell, room);
        }
    }
    let Some(rest) = rest.filter(|_| is_below) else { return drawn(columns, rows) };
    let below: Vec<String> =
        rows.iter_mut().map(|row| if rest < row.len() { row.remove(rest) } else { String::new() }).collect();
    let columns: Vec<Column> = columns.iter().filter(|column| !is_rest(column)).copied().collect();
    let drawn = drawn(&columns, rows);
    let mut lines = drawn.lines();
    let mut out: Vec<String> = lines.next().map(str::to_owned).into_iter().collect();
    for (line, below) in lines.zip(below) {
        out.push(line.to_owned());
        if !below.is_empty() {
            out.push(format!("    {below}"));
        }
    }
    out.join("\n")
}

fn drawn(columns: &[Column], rows: Vec<Vec<String>>) -> String {
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

/// `1 letter`, `2 letters`, `2 classes`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    match (n, what.ends_with('s')) {
        (1, _) => format!("1 {what}"),
        (_, true) => format!("{n} {what}es"),
        (_, false) => format!("{n} {what}s"),
    }
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

    #[test]
    fn one_is_one_and_others_are_more() {
        assert_eq!((counted(1, "class"), counted(2, "class")), ("1 class".to_owned(), "2 classes".to_owned()));
        assert_eq!((counted(0, "letter"), counted(1, "letter")), ("0 letters".to_owned(), "1 letter".to_owned()));
    }

    // Hostile text stays in its row.
    #[test]
    fn a_row_is_a_line_whatever_it_holds() {
        let rows = vec![
            vec!["1".to_owned(), format!("a\n\x1b[2J{}", "x".repeat(10 << 20))],
            vec!["22".to_owned(), "b".to_owned()],
        ];
        let shown = table(&[Column::Right("N"), Column::Rest("MESSAGE")], rows);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines.len(), 3, "{shown}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDEST + 8), "{shown}");
        assert!(shown.contains("a\\n\\u{1b}[2Jxx") && shown.contains('…'), "{shown}");
    }

    // As wide as the terminal, with room for the message; in a pipe nothing is cut.
    #[test]
    fn a_message_has_room() {
        let columns = [Column::Left("JOB"), Column::Left("CLASS"), Column::Rest("MESSAGE")];
        let rows = || vec![vec!["job-".repeat(9), "exhausted:timeout".to_owned(), "m".repeat(150)]; 2];
        let widest = |shown: &str| shown.lines().map(|line| line.chars().count()).max();
        let beside = within(Some(120), &columns, rows());
        assert_eq!((widest(&beside), beside.lines().count()), (Some(118), 3), "{beside}");
        let below = within(Some(80), &columns, rows());
        assert_eq!((widest(&below), below.lines().count()), (Some(80), 5), "{below}");
        assert!(below.lines().nth(2).is_some_and(|line| line.starts_with("    mmmm")), "{below}");
        let narrow = within(Some(40), &columns, rows());
        assert_eq!(widest(&narrow), Some(40), "{narrow}");
        assert!(within(None, &columns, rows()).contains(&"m".repeat(150)));
    }
}
