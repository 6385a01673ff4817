//! How arrows run, and where their labels stand.
//!
//! Each arrow tries the curves between the sides of its two boxes and takes the one that is short,
//! goes through no box, and keeps clear of the arrows before it. Pictures are small, so trying is
//! cheap. Where every curve would go through a box, the arrow takes the lanes between columns and
//! rows, in which no box stands.

use super::Picture;
use super::geometry::{Curve, Path, Point, Rect};

/// The width of a character of a label, and its height.
const CHARACTER: f64 = 6.3;
const LABEL_HEIGHT: f64 = 15.0;
/// How far apart the places are at least where arrows meet one side of a box.
const PORT_GAP: f64 = 13.0;
/// How close to each other two arrows are hard to tell apart.
const NEAR: f64 = 7.0;
/// What it costs to go through a box: more than any way around it.
const THROUGH_A_BOX: f64 = 5000.0;
/// What it costs to begin where another arrow ends: the two would look like one with two heads.
const SHARED_PORT: f64 = 900.0;

/// How an arrow runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Route {
    pub(crate) path: Path,
    /// The box of its label.
    pub(crate) label: Rect,
}

impl Route {
    pub(super) fn shift(&mut self, by: Point) {
        self.path.shift(by);
        self.label.x += by.x;
        self.label.y += by.y;
    }
}

/// The lanes between columns and rows, where no box stands.
pub(super) struct Lanes {
    pub(super) xs: Vec<f64>,
    pub(super) ys: Vec<f64>,
}

/// A place on the edge of a box where an arrow may begin or end, and the direction away from the box.
#[derive(Clone, Copy)]
struct Port {
    at: Point,
    away: Point,
}

/// How wide the label of an arrow is.
pub(super) fn label_width(label: &str) -> f64 {
    label.chars().count() as f64 * CHARACTER + 8.0
}

pub(super) fn routes(picture: &Picture, boxes: &[Rect], lanes: &Lanes) -> Vec<Route> {
    let mut placed = Placed { boxes, lanes, routes: Vec::new(), drawn: Vec::new() };
    for link in &picture.links {
        let route = placed.best(link.from, link.to, label_width(&link.label));
        placed.drawn.push(Drawn::new(route.path.points()));
        placed.routes.push(route);
    }
    placed.routes
}

/// A route on a given path, for layouts that know their paths.
pub(super) fn along(path: Path, width: f64, boxes: &[Rect]) -> Route {
    let lanes = Lanes { xs: Vec::new(), ys: Vec::new() };
    let alone = Placed { boxes, lanes: &lanes, routes: Vec::new(), drawn: Vec::new() };
    let (_, label) = alone.label_place(&path.points(), width);
    Route { path, label }
}

/// What stands already.
struct Placed<'p> {
    boxes: &'p [Rect],
    lanes: &'p Lanes,
    routes: Vec<Route>,
    /// The same routes as points.
    drawn: Vec<Drawn>,
}

/// A route as points, and where others are near it at most.
struct Drawn {
    points: Vec<Point>,
    reach: Rect,
}

impl Drawn {
    fn new(points: Vec<Point>) -> Drawn {
        let reach = Rect::around(&points).grown(NEAR);
        Drawn { points, reach }
    }

    /// Whether a point is so near that the two arrows could be taken for one.
    fn is_near(&self, point: Point) -> bool {
        self.reach.holds(point) && self.points.iter().any(|own| own.distance(point) < NEAR)
    }
}

impl Placed<'_> {
    fn best(&self, from: usize, to: usize, label: f64) -> Route {
        let mut best: Option<(f64, Route)> = None;
        for start in ports(self.boxes[from]) {
            for end in ports(self.boxes[to]) {
                self.consider(Path(vec![curve(start, end)]), label, &mut best);
            }
        }
        if best.as_ref().is_none_or(|(cost, _)| *cost >= THROUGH_A_BOX) {
            for path in self.along_lanes(self.boxes[from], self.boxes[to]) {
                self.consider(path, label, &mut best);
            }
        }
        // Every box has ports, so there is a best one.
        let nowhere = Route { path: Path::through(&[]), label: Rect::default() };
        best.map_or(nowhere, |(_, route)| route)
    }

    fn consider(&self, path: Path, label: f64, best: &mut Option<(f64, Route)>) {
        let least = best.as_ref().map_or(f64::MAX, |(least, _)| *least);
        let points = path.points();
        let length: f64 = points.windows(2).map(|pair| pair[0].distance(pair[1])).sum();
        if length >= least {
            return;
        }
        let Some(cost) = self.cost(&path, &points, length, least) else { return };
        let (label_cost, label) = self.label_place(&points, label);
        if cost + label_cost < least {
            *best = Some((cost + label_cost, Route { path, label }));
        }
    }

    /// What a path of some length costs; nothing if that is not less than what another one costs. Most paths are
    /// given up early.
    fn cost(&self, path: &Path, points: &[Point], length: f64, least: f64) -> Option<f64> {
        let mut cost = length;
        let inner = &points[1..points.len().max(2) - 1];
        for point in inner {
            if self.boxes.iter().any(|rect| rect.holds(*point)) {
                cost += THROUGH_A_BOX;
            } else if self.boxes.iter().any(|rect| rect.grown(5.0).holds(*point)) {
                cost += 8.0;
            }
            cost += 25.0 * self.labels().filter(|label| label.holds(*point)).count() as f64;
            if cost >= least {
                return None;
            }
        }
        for (route, drawn) in self.routes.iter().zip(&self.drawn) {
            cost += shared_ports(path, &route.path);
            // Two arrows may cross, but not run along each other.
            cost += 5.0 * inner.iter().filter(|point| drawn.is_near(**point)).count() as f64;
            if cost >= least {
                return None;
            }
        }
        Some(cost)
    }

    fn labels(&self) -> impl Iterator<Item = Rect> + '_ {
        self.routes.iter().map(|route| route.label)
    }

    /// Ways along the lanes: out of the box above or below, along its row, along a column, along the
    /// row of the other box, and in.
    fn along_lanes(&self, from: Rect, to: Rect) -> Vec<Path> {
        let beside = |rect: Rect, below: bool| {
            let edge = if below { rect.y + rect.h } else { rect.y };
            let lanes = self.lanes.ys.iter().copied();
            let lanes = lanes.filter(|y| if below { *y > edge } else { *y < edge });
            lanes.min_by(|a, b| (a - edge).abs().total_cmp(&(b - edge).abs())).map(|y| (edge, y))
        };
        let mut paths = Vec::new();
        for (share, other) in [(0.5, 0.5), (0.3, 0.7), (0.7, 0.3), (0.15, 0.15), (0.85, 0.85)] {
            let (x1, x2) = (from.x + from.w * share, to.x + to.w * other);
            for below in [[true, false], [false, true], [true, true], [false, false]] {
                let ends = beside(from, below[0]).zip(beside(to, below[1]));
                let Some(((start, y1), (end, y2))) = ends else { continue };
                for lane in &self.lanes.xs {
                    let p = |x: f64, y: f64| Point { x, y };
                    let corners = [p(x1, y1), p(*lane, y1), p(*lane, y2), p(x2, y2)];
                    let all = [&[p(x1, start)], &corners[..], &[p(x2, end)]].concat();
                    paths.push(Path::through(&all));
                }
            }
        }
        paths
    }

    /// The place on a path where its label is least in the way.
    fn label_place(&self, points: &[Point], width: f64) -> (f64, Rect) {
        let mut best = (f64::MAX, Rect::default());
        for t in [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82] {
            let middle = points[((points.len() - 1) as f64 * t).round() as usize];
            let rect = Rect {
                x: middle.x - width / 2.0,
                y: middle.y - LABEL_HEIGHT / 2.0,
                w: width,
                h: LABEL_HEIGHT,
            };
            let on_boxes = self.boxes.iter().filter(|other| other.grown(3.0).overlaps(rect));
            let on_labels = self.labels().filter(|label| label.overlaps(rect));
            let crossed = self.drawn.iter().filter(|drawn| drawn.reach.overlaps(rect));
            let on_paths =
                crossed.flat_map(|drawn| &drawn.points).filter(|point| rect.holds(**point));
            let cost = 200.0 * on_boxes.count() as f64
                + 160.0 * on_labels.count() as f64
                + 12.0 * on_paths.count() as f64
                + 20.0 * (t - 0.5f64).abs();
            if cost < best.0 {
                best = (cost, rect);
            }
        }
        best
    }
}

/// What it costs that two paths begin or end at the same place.
fn shared_ports(path: &Path, other: &Path) -> f64 {
    let meet = |a: Point, b: Point| a.distance(b) < PORT_GAP - 1.0;
    let prices = [
        (path.start(), other.end(), SHARED_PORT),
        (path.end(), other.start(), SHARED_PORT),
        (path.start(), other.start(), SHARED_PORT / 4.0),
        (path.end(), other.end(), SHARED_PORT / 4.0),
    ];
    prices.into_iter().filter(|(one, other, _)| meet(*one, *other)).map(|(_, _, price)| price).sum()
}

/// Places on each side, the middle first; as many as there is room for.
fn ports(rect: Rect) -> Vec<Port> {
    let Rect { x, y, w, h } = rect;
    let port =
        |x, y, away: (f64, f64)| Port { at: Point { x, y }, away: Point { x: away.0, y: away.1 } };
    let mut ports = Vec::new();
    for offset in [0.0, -2.0, 2.0, -1.0, 1.0, -3.0, 3.0] {
        let (dx, dy) = (offset * (w / 8.0).max(PORT_GAP), offset * (h / 8.0).max(PORT_GAP));
        if dx.abs() < w / 2.0 - 6.0 {
            ports.push(port(x + w / 2.0 + dx, y + h, (0.0, 1.0)));
            ports.push(port(x + w / 2.0 + dx, y, (0.0, -1.0)));
        }
        if dy.abs() < h / 2.0 - 6.0 {
            ports.push(port(x + w, y + h / 2.0 + dy, (1.0, 0.0)));
            ports.push(port(x, y + h / 2.0 + dy, (-1.0, 0.0)));
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
