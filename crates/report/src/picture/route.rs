//! How arrows run, and where their labels stand.
//!
//! Each arrow tries the curves between the sides of its two boxes and takes the one that is short,
//! goes through no box, and keeps clear of the arrows before it. Pictures are small, so trying is
//! cheap, and there are no special cases for arrows that go up, stay in a column or skip one.

use super::Picture;
use super::geometry::{Curve, Point, Rect};

/// How many pieces a curve is looked at in.
const PIECES: usize = 20;
/// The width of a character of a label, and its height.
const CHARACTER: f64 = 6.3;
const LABEL_HEIGHT: f64 = 15.0;

/// How an arrow runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Route {
    pub(crate) curve: Curve,
    /// The box of its label.
    pub(crate) label: Rect,
}

impl Route {
    pub(super) fn shift(&mut self, by: f64) {
        self.curve.0.iter_mut().for_each(|point| point.x += by);
        self.label.x += by;
    }
}

/// A place on the edge of a box where an arrow may begin or end, and the direction away from the box.
#[derive(Clone, Copy)]
struct Port {
    at: Point,
    away: Point,
}

pub(super) fn routes(picture: &Picture, boxes: &[Rect]) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for link in &picture.links {
        let label = link.label.chars().count() as f64 * CHARACTER + 8.0;
        routes.push(best(boxes, link.from, link.to, label, &routes));
    }
    routes
}

fn best(boxes: &[Rect], from: usize, to: usize, label: f64, before: &[Route]) -> Route {
    let mut best: Option<(f64, Route)> = None;
    for start in ports(boxes[from]) {
        for end in ports(boxes[to]) {
            let curve = curve(start, end);
            let cost = curve_cost(&curve, boxes, before);
            if best.is_some_and(|(least, _)| cost >= least) {
                continue;
            }
            let (label_cost, label) = label_place(&curve, label, boxes, before);
            if best.is_none_or(|(least, _)| cost + label_cost < least) {
                best = Some((cost + label_cost, Route { curve, label }));
            }
        }
    }
    // Every box has ports, so there is a best one.
    let nowhere = Route { curve: Curve([Point::default(); 4]), label: Rect::default() };
    best.map_or(nowhere, |(_, route)| route)
}

/// Three on each side.
fn ports(rect: Rect) -> Vec<Port> {
    let Rect { x, y, w, h } = rect;
    let mut ports = Vec::new();
    for share in [0.5, 0.25, 0.75] {
        for (at, away) in [
            ((x + w * share, y + h), (0.0, 1.0)),
            ((x + w * share, y), (0.0, -1.0)),
            ((x + w, y + h * share), (1.0, 0.0)),
            ((x, y + h * share), (-1.0, 0.0)),
        ] {
            let point = |(x, y)| Point { x, y };
            ports.push(Port { at: point(at), away: point(away) });
        }
    }
    ports
}

/// Leaves and arrives at right angles.
fn curve(start: Port, end: Port) -> Curve {
    let reach = (start.at.distance(end.at) * 0.45).clamp(34.0, 150.0);
    let away = |port: Port| Point {
        x: port.at.x + port.away.x * reach,
        y: port.at.y + port.away.y * reach,
    };
    Curve([start.at, away(start), away(end), end.at])
}

fn points(curve: &Curve) -> impl Iterator<Item = Point> + '_ {
    (1..PIECES).map(|piece| curve.at(piece as f64 / PIECES as f64))
}

fn curve_cost(curve: &Curve, boxes: &[Rect], before: &[Route]) -> f64 {
    let mut cost = 0.0;
    let mut last = curve.0[0];
    for point in points(curve).chain([curve.0[3]]) {
        cost += last.distance(point);
        last = point;
    }
    for point in points(curve) {
        cost += 600.0 * boxes.iter().filter(|rect| rect.holds(point)).count() as f64;
        cost += 60.0 * before.iter().filter(|route| route.label.holds(point)).count() as f64;
    }
    for route in before {
        // Two arrows may cross, but not run along each other or meet at one point of a box.
        let near = |point: Point| points(&route.curve).any(|other| other.distance(point) < 7.0);
        cost += 12.0 * points(curve).filter(|point| near(*point)).count() as f64;
        let ends = [route.curve.0[0], route.curve.0[3]];
        let meet = |end: Point| ends.iter().any(|other| other.distance(end) < 6.0);
        cost += 70.0 * [curve.0[0], curve.0[3]].into_iter().filter(|end| meet(*end)).count() as f64;
    }
    cost
}

/// The place on a curve where its label is least in the way.
fn label_place(curve: &Curve, width: f64, boxes: &[Rect], before: &[Route]) -> (f64, Rect) {
    let mut best = (f64::MAX, Rect::default());
    for t in [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74] {
        let middle = curve.at(t);
        let rect = Rect {
            x: middle.x - width / 2.0,
            y: middle.y - LABEL_HEIGHT / 2.0,
            w: width,
            h: LABEL_HEIGHT,
        };
        let on_boxes = boxes.iter().filter(|other| other.grown(3.0).overlaps(rect)).count();
        let on_labels = before.iter().filter(|other| other.label.overlaps(rect)).count();
        let on_curves = before
            .iter()
            .map(|other| points(&other.curve).filter(|point| rect.holds(*point)).count())
            .sum::<usize>();
        let cost = 200.0 * on_boxes as f64
            + 160.0 * on_labels as f64
            + 25.0 * on_curves as f64
            + 20.0 * (t - 0.5f64).abs();
        if cost < best.0 {
            best = (cost, rect);
        }
    }
    best
}
