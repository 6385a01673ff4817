//! Where everything stands, in pixels.

use super::geometry::{Point, Rect};
use super::order::Order;
use super::route::{Lanes, Route, label_width, routes};
use super::{Node, Picture, wrapped};

/// The width of a character of the fixed-width font, and the height of a line.
const CHARACTER: f64 = 7.3;
pub(crate) const LINE: f64 = 17.0;
pub(crate) const PADDING: f64 = 9.0;
const TITLE: f64 = 22.0;
const NARROWEST: f64 = 84.0;
/// Room between boxes for arrows and their labels.
const COLUMN_GAP: f64 = 92.0;
const ROW_GAP: f64 = 58.0;
/// The widest gap that a label gets between its columns.
const WIDEST_GAP: f64 = 200.0;
pub(super) const MARGIN: f64 = 46.0;
const HEADER: f64 = 34.0;

/// Where a picture's parts stand.
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// One per node.
    pub(crate) boxes: Vec<Rect>,
    /// The names of the sessions, over the middle of their columns.
    pub(crate) headers: Vec<(f64, String)>,
    /// One per link.
    pub(crate) routes: Vec<Route>,
}

impl Layout {
    pub(crate) fn of(picture: &Picture) -> Layout {
        if picture.is_long { wrapped::layout(picture) } else { columns(picture) }
    }

    /// Moves everything so that arrows and labels that bulge out of the columns are inside.
    fn fit(&mut self) {
        let points = self.routes.iter().flat_map(|route| route.path.points());
        let dots = points.map(|p| Rect { x: p.x, y: p.y, w: 0.0, h: 0.0 });
        let labels = self.routes.iter().map(|route| route.label);
        let (mut left, mut top) = (f64::MAX, f64::MAX);
        let (mut right, mut bottom) = (self.width - MARGIN / 2.0, self.height);
        for rect in labels.chain(dots).chain(self.boxes.iter().copied()) {
            (left, top) = (left.min(rect.x), top.min(rect.y));
            right = right.max(rect.x + rect.w);
            bottom = bottom.max(rect.y + rect.h + PADDING);
        }
        let by = Point { x: (PADDING - left).max(0.0), y: (HEADER - top).max(0.0) };
        for rect in &mut self.boxes {
            rect.x += by.x;
            rect.y += by.y;
        }
        for (x, _) in &mut self.headers {
            *x += by.x;
        }
        for route in &mut self.routes {
            route.shift(by);
        }
        self.width = right + by.x + PADDING;
        self.height = bottom + by.y;
    }
}

/// Sessions as columns, time downwards.
fn columns(picture: &Picture) -> Layout {
    let order = Order::of(picture);
    let sizes: Vec<(f64, f64)> = picture.nodes.iter().map(|node| size(node, false)).collect();
    let mut widths = vec![NARROWEST; order.column_count];
    let row_count = order.rows.iter().max().map_or(0, |row| row + 1);
    let mut heights = vec![0.0f64; row_count];
    for (at, (w, h)) in sizes.iter().enumerate() {
        let (column, row) = (order.columns[at], order.rows[at]);
        widths[column] = widths[column].max(*w);
        heights[row] = heights[row].max(*h);
    }
    // Between boxes of one row there is nothing but the gap.
    let level = picture.links.iter().filter(|link| order.rows[link.from] == order.rows[link.to]);
    let labels = level.map(|link| label_width(&link.label) + 24.0);
    let gap = labels.fold(COLUMN_GAP, f64::max).min(WIDEST_GAP);
    let lefts = starts(&widths, gap, MARGIN);
    let tops = starts(&heights, ROW_GAP, HEADER + MARGIN / 2.0);
    let boxes: Vec<Rect> = (sizes.iter().enumerate())
        .map(|(at, (w, h))| {
            let (column, row) = (order.columns[at], order.rows[at]);
            let x = lefts[column] + (widths[column] - w) / 2.0;
            let y = tops[row] + (heights[row] - h) / 2.0;
            Rect { x, y, w: *w, h: *h }
        })
        .collect();
    let mut headers: Vec<(f64, String)> = Vec::new();
    for (node, at) in picture.nodes.iter().zip(&order.columns) {
        let Some((_, name)) = &node.session else { continue };
        let middle = lefts[*at] + widths[*at] / 2.0;
        if !headers.iter().any(|(x, _)| *x == middle) {
            headers.push((middle, format!("session {}", super::cut(name))));
        }
    }
    let end = |starts: &[f64], sizes: &[f64]| {
        starts.last().zip(sizes.last()).map_or(MARGIN, |(start, size)| start + size)
    };
    let (right, bottom) = (end(&lefts, &widths), end(&tops, &heights));
    let lanes = Lanes { xs: lanes(&lefts, &widths, gap), ys: lanes(&tops, &heights, ROW_GAP) };
    let mut layout = Layout {
        width: right + MARGIN,
        height: bottom + MARGIN,
        routes: routes(picture, &boxes, &lanes),
        boxes,
        headers,
    };
    layout.fit();
    layout
}

/// Two lanes in each gap between columns or rows, and beyond the outer ones.
fn lanes(starts: &[f64], sizes: &[f64], gap: f64) -> Vec<f64> {
    let after = starts.iter().zip(sizes).map(|(start, size)| start + size);
    let before = starts.first().map(|start| start - gap);
    let gaps = before.into_iter().chain(after);
    gaps.flat_map(|start| [start + gap * 0.36, start + gap * 0.64]).collect()
}

/// How large a box is; `named`: whether its session stands beside its title.
pub(super) fn size(node: &Node, named: bool) -> (f64, f64) {
    let texts = node.lines.iter().map(|line| line.text.chars().count());
    let beside = node.place().filter(|_| named).map_or(0, |place| place.chars().count());
    let widest = texts.chain([node.title.chars().count() + 1 + beside]).max().unwrap_or(0);
    let width = (widest as f64 * CHARACTER + 2.0 * PADDING).max(NARROWEST);
    let lines = node.lines.len() as f64 * LINE;
    (width, TITLE + lines + if node.lines.is_empty() { 8.0 } else { PADDING })
}

/// Where each of a row of things begins.
fn starts(sizes: &[f64], gap: f64, first: f64) -> Vec<f64> {
    let mut at = first;
    let next = |size: &f64| {
        let start = at;
        at += size + gap;
        start
    };
    sizes.iter().map(next).collect()
}
