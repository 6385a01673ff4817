//! Where everything stands, in pixels.

use super::geometry::Rect;
use super::order::Order;
use super::route::{Route, routes};
use super::{Node, Picture};

/// The width of a character of the fixed-width font, and the height of a line.
const CHARACTER: f64 = 7.3;
pub(crate) const LINE: f64 = 17.0;
pub(crate) const PADDING: f64 = 9.0;
const TITLE: f64 = 22.0;
const NARROWEST: f64 = 84.0;
/// Room between boxes for arrows and their labels.
const COLUMN_GAP: f64 = 92.0;
const ROW_GAP: f64 = 58.0;
const MARGIN: f64 = 46.0;
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
        let order = Order::of(picture);
        let sizes: Vec<(f64, f64)> = picture.nodes.iter().map(size).collect();
        let mut widths = vec![NARROWEST; order.column_count];
        let row_count = order.rows.iter().max().map_or(0, |row| row + 1);
        let mut heights = vec![0.0f64; row_count];
        for (at, (w, h)) in sizes.iter().enumerate() {
            let (column, row) = (order.columns[at], order.rows[at]);
            widths[column] = widths[column].max(*w);
            heights[row] = heights[row].max(*h);
        }
        let lefts = starts(&widths, COLUMN_GAP, MARGIN);
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
                headers.push((middle, format!("session {}", super::cut(name.clone()))));
            }
        }
        let end = |starts: &[f64], sizes: &[f64]| {
            starts.last().zip(sizes.last()).map_or(MARGIN, |(start, size)| start + size)
        };
        let (right, bottom) = (end(&lefts, &widths), end(&tops, &heights));
        let mut layout = Layout {
            width: right + MARGIN,
            height: bottom + MARGIN,
            routes: routes(picture, &boxes),
            boxes,
            headers,
        };
        layout.fit();
        layout
    }

    /// Moves everything so that arrows and labels that bulge out of the columns are inside.
    fn fit(&mut self) {
        let labels = self.routes.iter().map(|route| route.label);
        let (mut left, mut right, mut bottom) = (f64::MAX, self.width - MARGIN / 2.0, self.height);
        for rect in labels.chain(self.boxes.iter().copied()) {
            left = left.min(rect.x);
            right = right.max(rect.x + rect.w);
            bottom = bottom.max(rect.y + rect.h + PADDING);
        }
        for route in &self.routes {
            for t in 0..=10 {
                let p = route.curve.at(f64::from(t) / 10.0);
                left = left.min(p.x);
                right = right.max(p.x);
                bottom = bottom.max(p.y + PADDING);
            }
        }
        let shift = (PADDING - left).max(0.0);
        for rect in &mut self.boxes {
            rect.x += shift;
        }
        for (x, _) in &mut self.headers {
            *x += shift;
        }
        for route in &mut self.routes {
            route.shift(shift);
        }
        self.width = right + shift + PADDING;
        self.height = bottom;
    }
}

fn size(node: &Node) -> (f64, f64) {
    let texts = node.lines.iter().map(|line| line.text.chars().count());
    let widest = texts.chain([node.title.chars().count() + 1]).max().unwrap_or(0);
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
