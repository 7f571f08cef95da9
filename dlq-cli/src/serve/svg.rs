//! Small pictures, drawn here, so that they need no script. Nothing but numbers gets into them.

use std::fmt::Write as _;

/// Bars of the parkings per hour. The last one is the present hour.
pub(super) fn sparkline(values: &[u64], said: &str) -> String {
    let (width, height) = (values.len().max(1) * 5, 24_u64);
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let mut out = format!(
        "<svg class=\"spark\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{said}\"><title>{said}</title>"
    );
    for (at, value) in values.iter().enumerate() {
        // One letter is seen beside a million.
        let tall = if *value == 0 { 1 } else { (scaled(*value, most, height)).max(2) };
        let class = if *value == 0 { "none" } else { "some" };
        let (x, y) = (at * 5, height - tall);
        // Writing to a text does not fail.
        let _written = write!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"4\" height=\"{tall}\"/>");
    }
    out.push_str("</svg>");
    out
}

/// A day's bars, with the line above which a day is degraded.
pub(super) fn days(values: &[u64], above: Option<u64>, said: &str) -> String {
    let (step, height) = (12_usize, 120_u64);
    let width = values.len().max(1) * step;
    let most = values.iter().copied().chain(above).max().unwrap_or(0).max(1);
    let mut out = format!(
        "<svg class=\"days\" viewBox=\"0 0 {width} {height}\" role=\"img\" preserveAspectRatio=\"none\" \
         aria-label=\"{said}\"><title>{said}</title>"
    );
    for (at, value) in values.iter().enumerate() {
        let tall = if *value == 0 { 1 } else { scaled(*value, most, height - 4).max(2) };
        let class = match above {
            Some(above) if *value > above => "bad",
            _ if *value == 0 => "none",
            _ => "some",
        };
        let (x, y, wide) = (at * step, height - tall, step - 2);
        let _written = write!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{tall}\"/>");
    }
    if let Some(above) = above {
        let y = height - scaled(above, most, height - 4);
        let _written = write!(out, "<line class=\"limit\" x1=\"0\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    out.push_str("</svg>");
    out
}

/// How far something is: what went well, what failed, and the rest.
pub(super) fn progress(good: u64, bad: u64, all: u64, said: &str) -> String {
    let wide = |n: u64| match scaled(n.min(all), all, 1_000) {
        // One failure is seen beside a million.
        0 if n > 0 => 4,
        wide => wide,
    };
    let bad = wide(bad);
    let good = wide(good).min(1_000 - bad.min(1_000));
    format!(
        "<svg class=\"progress\" viewBox=\"0 0 1000 16\" role=\"img\" preserveAspectRatio=\"none\" aria-label=\"{said}\">\
         <title>{said}</title><rect class=\"rest\" width=\"1000\" height=\"16\"/><rect class=\"some\" width=\"{good}\" \
         height=\"16\"/><rect class=\"bad\" x=\"{good}\" width=\"{bad}\" height=\"16\"/></svg>"
    )
}

fn scaled(value: u64, most: u64, height: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(height) / u128::from(most.max(1))).unwrap_or(height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_is_seen_beside_many_and_nothing_overflows() {
        let drawn = sparkline(&[0, 1, u64::MAX], "parkings");
        assert!(drawn.contains("height=\"2\"") && drawn.contains("y=\"0\" width=\"4\" height=\"24\""), "{drawn}");
        assert!(sparkline(&[], "").ends_with("</svg>"));
    }

    #[test]
    fn one_failure_of_many_is_seen_in_the_bar() {
        let drawn = progress(999_999, 1, 1_000_000, "replay");
        assert!(drawn.contains("class=\"bad\" x=\"996\" width=\"4\""), "{drawn}");
        assert!(progress(0, 0, 0, "").contains("class=\"some\" width=\"0\""));
        assert!(progress(14, 14, 28, "").contains("class=\"some\" width=\"500\""));
    }

    #[test]
    fn a_day_above_the_line_is_marked_and_the_line_is_drawn() {
        let drawn = days(&[1, 10, 5], Some(5), "bytes");
        assert_eq!(drawn.matches("class=\"bad\"").count(), 1, "exactly at the threshold is well: {drawn}");
        assert!(drawn.contains("class=\"limit\"") && drawn.contains("y1=\"62\""), "{drawn}");
        assert!(!days(&[1], None, "bytes").contains("limit"));
    }
}
