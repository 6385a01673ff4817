//! Long cycles: a box after the other along lines that run to and fro, as an ox ploughs.
//!
//! A column for each session would make a long cycle wider than any screen. Here neighbours in the
//! cycle are neighbours in the picture, every box names its session, and the number of lines is even,
//! so that the last arrow goes back to the first box along the left edge.

use super::Picture;
use super::geometry::{Path, Point, Rect};
use super::layout::{Layout, MARGIN, size};
use super::route::{Route, along, label_width};

/// How wide the picture should be at most: what a page shows without shrinking it.
const WIDEST: f64 = 1080.0;
const ROW_GAP: f64 = 54.0;
/// Room on both sides of a label.
const AROUND_LABEL: f64 = 44.0;
/// Room for the arrow back to the beginning, beside half of its label.
const BACK: f64 = 30.0;

pub(super) fn layout(picture: &Picture) -> Layout {
    let sizes: Vec<(f64, f64)> = picture.nodes.iter().map(|node| size(node, true)).collect();
    let widest = sizes.iter().map(|size| size.0).fold(0.0, f64::max);
    let labels = picture.links.iter().map(|link| label_width(&link.label));
    let label = labels.fold(0.0, f64::max);
    let gap = label + AROUND_LABEL;
    let left = BACK + label / 2.0 + MARGIN / 2.0;
    let grid = Grid::of(picture.nodes.len(), ((WIDEST - left) / (widest + gap)) as usize);
    let mut heights = vec![0.0f64; grid.rows];
    for (at, (_, h)) in sizes.iter().enumerate() {
        let (row, _) = grid.place(at);
        heights[row] = heights[row].max(*h);
    }
    let mut tops = Vec::new();
    let mut bottom = MARGIN / 2.0;
    for height in &heights {
        tops.push(bottom);
        bottom += height + ROW_GAP;
    }
    let boxes: Vec<Rect> = (sizes.iter().enumerate())
        .map(|(at, (w, h))| {
            let (row, column) = grid.place(at);
            let x = left + column as f64 * (widest + gap) + (widest - w) / 2.0;
            Rect { x, y: tops[row] + (heights[row] - h) / 2.0, w: *w, h: *h }
        })
        .collect();
    let lane = BACK / 2.0 + label / 2.0;
    let routes = picture.links.iter().map(|link| {
        let path = path(boxes[link.from], boxes[link.to], lane);
        along(path, label_width(&link.label), &boxes)
    });
    let routes: Vec<Route> = routes.collect();
    let width = left + grid.columns as f64 * (widest + gap) - gap + MARGIN;
    let height = bottom - ROW_GAP + MARGIN / 2.0;
    Layout { width, height, boxes, headers: Vec::new(), routes }
}

/// Straight to a neighbour; along the left edge to any other.
fn path(from: Rect, to: Rect, lane: f64) -> Path {
    let middle = |rect: Rect| Point { x: rect.x + rect.w / 2.0, y: rect.y + rect.h / 2.0 };
    let (a, b) = (middle(from), middle(to));
    let p = |x: f64, y: f64| Point { x, y };
    if (a.y - b.y).abs() < from.h.max(to.h) / 2.0 {
        let y = (a.y + b.y) / 2.0;
        return match a.x < b.x {
            true => Path::through(&[p(from.x + from.w, y), p(to.x, y)]),
            false => Path::through(&[p(from.x, y), p(to.x + to.w, y)]),
        };
    }
    if (a.x - b.x).abs() < 1.0 && a.y < b.y && b.y - a.y < from.h + to.h + 2.0 * ROW_GAP {
        return Path::through(&[p(a.x, from.y + from.h), p(b.x, to.y)]);
    }
    Path::through(&[p(from.x, a.y), p(lane, a.y), p(lane, b.y), p(to.x, b.y)])
}

/// How boxes are spread over lines.
struct Grid {
    rows: usize,
    columns: usize,
}

impl Grid {
    fn of(count: usize, most_columns: usize) -> Grid {
        let most = most_columns.max(2);
        let rows = 2 * count.div_ceil(2 * most).max(1);
        Grid { rows, columns: count.div_ceil(rows).max(1) }
    }

    /// The row and the column of a box. Every other row runs backwards.
    fn place(&self, at: usize) -> (usize, usize) {
        let (row, along) = (at / self.columns, at % self.columns);
        (row, if row % 2 == 0 { along } else { self.columns - 1 - along })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_the_cycle_are_neighbours_in_the_picture() {
        for count in 8..60 {
            let grid = Grid::of(count, 5);
            assert!(grid.columns <= 5, "{count}");
            for at in 1..count {
                let ((row, column), (before, beside)) = (grid.place(at), grid.place(at - 1));
                let steps = row.abs_diff(before) + column.abs_diff(beside);
                assert_eq!(steps, 1, "box {at} of {count}");
            }
        }
    }
}
