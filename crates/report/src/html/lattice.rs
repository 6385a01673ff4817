//! The levels and how they relate, with the verdict on each: a small picture.

use std::io::{self, Write};

use isolario_model::Level;

use crate::implied::known_by_anomalies;
use crate::marks::Part;
use crate::report::Report;

/// What a telephone shows without shrinking it.
const NARROW: i32 = 330;
const BOX: (i32, i32) = (204, 26);
/// From column to column, and half of the way from row to row: some levels stand between two.
const COLUMN: i32 = 224;
const HALF_ROW: i32 = 23;
const COLUMNS: i32 = 4;
/// The column of the levels that every session sees in order.
const MAIN: i32 = 2;
/// Room for a line below the lowest level.
const BELOW: i32 = 14;

/// Where a level stands: its column, and its height in half rows. Levels of the main column stand on
/// the longest way down; the others where lines to their neighbours pass behind no box.
fn place(level: Level) -> (i32, i32) {
    match level {
        Level::StrongRepeatableRead => (0, 15),
        Level::StrongAdyaReadCommitted => (0, 6),
        Level::StrongReadUncommitted => (0, 2),
        Level::StrongSnapshotIsolation => (1, 14),
        Level::RepeatableRead => (1, 10),
        Level::Linearizable => (3, 16),
        Level::ParallelSnapshotIsolation => (3, 10),
        Level::ConsistentView => (3, 6),
        Level::CutIsolation => (3, 2),
        level => (MAIN, 2 * rank(level)),
    }
}

/// The longest way down.
fn rank(level: Level) -> i32 {
    level.weaker().iter().map(|weaker| rank(*weaker) + 1).max().unwrap_or(0)
}

/// A sign for a verdict, for those who do not see its colour.
pub(super) fn mark(verdict: &str) -> &'static str {
    match verdict {
        "satisfied" => "✓",
        "violated" => "✗",
        "undecided" => "?",
        _ => "–",
    }
}

/// The picture twice: as wide as the levels need, and in one column for narrow screens. `part`
/// keeps ids of several histories apart.
pub(super) fn write(report: &Report<'_>, part: Part, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<figure class=\"lattice\">")?;
    wide(report, part, out)?;
    narrow(report, part, out)?;
    writeln!(
        out,
        "<figcaption>✓ satisfied, ✗ violated, ? undecided, – does not apply; a level implies \
         those below it that a line leads to. Pale: follows from another level, or from what was \
         found. Without a mark: not asked.</figcaption>\n</figure>"
    )
}

fn wide(report: &Report<'_>, part: Part, out: &mut dyn Write) -> io::Result<()> {
    let top = Level::all().map(|level| place(level).1).max().unwrap_or(0);
    let (width, height) = (COLUMNS * COLUMN, (top + 2) * HALF_ROW + BELOW);
    let middle = |level: Level| {
        let (column, row) = place(level);
        (column * COLUMN + COLUMN / 2, (top - row) * HALF_ROW + HALF_ROW)
    };
    open("wide", (width, height), report, part, out)?;
    for level in Level::all() {
        for weaker in level.weaker() {
            writeln!(out, "<path d=\"{}\"/>", line(middle(level), middle(*weaker), height))?;
        }
    }
    for level in Level::all() {
        let (x, y) = middle(level);
        level_box(report, level, x, y, out)?;
    }
    writeln!(out, "</svg>")
}

/// Down within a column, from side to side between columns; past the main column below it.
fn line((x1, y1): (i32, i32), (x2, y2): (i32, i32), height: i32) -> String {
    let (across, up) = (BOX.0 / 2, BOX.1 / 2);
    let main = MAIN * COLUMN + COLUMN / 2;
    if x1 == x2 {
        return format!("M{x1} {}V{}", y1 + up, y2 - up);
    }
    if (x1 < main) != (x2 < main) && x1 != main && x2 != main {
        let (below, y1, y2) = (height - BELOW / 2, y1 + up, y2 + up);
        return format!("M{x1} {y1}V{below}H{x2}V{y2}");
    }
    let side = (x2 - x1).signum() * across;
    format!("M{} {y1}L{} {y2}", x1 + side, x2 - side)
}

/// One level per line, stronger ones above; what is not next to each other is joined at the left.
fn narrow(report: &Report<'_>, part: Part, out: &mut dyn Write) -> io::Result<()> {
    let mut levels: Vec<Level> = Level::all().collect();
    levels.sort_by_key(|level| std::cmp::Reverse(rank(*level)));
    let line = |level: Level| levels.iter().position(|other| *other == level).unwrap_or(0) as i32;
    let step = BOX.1 + 10;
    let y = |line: i32| line * step + step / 2;
    let left = NARROW - BOX.0 - 2;
    open("narrow", (NARROW, levels.len() as i32 * step), report, part, out)?;
    for level in &levels {
        for weaker in level.weaker() {
            let (above, below) = (line(*level), line(*weaker));
            let (y1, y2) = (y(above), y(below));
            match below - above {
                1 => {
                    let x = left + BOX.0 / 2;
                    writeln!(out, "<path d=\"M{x} {y1}V{y2}\"/>")?;
                }
                far => {
                    let x = left - 14 - (far * 9).min(left - 20);
                    writeln!(out, "<path d=\"M{left} {y1}C{x} {y1} {x} {y2} {left} {y2}\"/>")?;
                }
            }
        }
    }
    for level in &levels {
        level_box(report, *level, left + BOX.0 / 2, y(line(*level)), out)?;
    }
    writeln!(out, "</svg>")
}

fn open(
    class: &str,
    (width, height): (i32, i32),
    report: &Report<'_>,
    part: Part,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"{part}lattice-{class}\">\n\
         <title id=\"{part}lattice-{class}\">Isolation levels, stronger ones above; {}</title>",
        told(report)
    )
}

/// A level around a point, with the verdict on it.
fn level_box(
    report: &Report<'_>,
    level: Level,
    x: i32,
    y: i32,
    out: &mut dyn Write,
) -> io::Result<()> {
    let known = known_by_anomalies(report.results, level);
    let verdict = known.map_or("unasked", |known| known.verdict.name());
    let (class, why) = match known.and_then(|known| known.because(level)) {
        Some(why) => (" implied", format!("<title>{why}</title>")),
        None => ("", String::new()),
    };
    let (left, above, middle) = (x - BOX.0 / 2, y - BOX.1 / 2, y + 4);
    let (w, h) = BOX;
    let sign = if verdict == "unasked" { "" } else { mark(verdict) };
    writeln!(
        out,
        "<g class=\"{verdict}{class}\">{why}<rect x=\"{left}\" y=\"{above}\" width=\"{w}\" \
         height=\"{h}\" rx=\"5\"/><text x=\"{x}\" y=\"{middle}\">{sign} {}</text></g>",
        level.name()
    )
}

fn told(report: &Report<'_>) -> String {
    let one = |level: Level| {
        let known = known_by_anomalies(report.results, level)?;
        let why = known.because(level).map_or(String::new(), |why| format!(" ({why})"));
        Some(format!("{level} {}{why}", known.verdict.name()))
    };
    Level::all().filter_map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_levels_stand_above_weaker_ones_and_nobody_shares_a_place() {
        let places: Vec<_> = Level::all().map(place).collect();
        for level in Level::all() {
            for weaker in level.weaker() {
                assert!(place(level).1 > place(*weaker).1, "{level} and {weaker}");
            }
        }
        for (at, one) in places.iter().enumerate() {
            assert!(!places[at + 1..].contains(one), "{one:?} twice");
        }
    }
}
