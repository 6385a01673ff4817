//! Points, boxes, curves and paths.

/// A place, in pixels from the upper left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A box.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) w: f64,
    pub(crate) h: f64,
}

/// A cubic curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve(pub(crate) [Point; 4]);

impl Point {
    pub(crate) fn distance(self, other: Point) -> f64 {
        // Not `hypot`, which takes care of numbers that no picture has, and its time for that.
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}

impl Rect {
    /// The smallest box around some points.
    pub(crate) fn around(points: &[Point]) -> Rect {
        let least = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::MAX, f64::min);
        let most = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::MIN, f64::max);
        let (x, y) = (least(|point| point.x), least(|point| point.y));
        Rect { x, y, w: most(|point| point.x) - x, h: most(|point| point.y) - y }
    }

    pub(crate) fn grown(self, by: f64) -> Rect {
        Rect { x: self.x - by, y: self.y - by, w: self.w + 2.0 * by, h: self.h + 2.0 * by }
    }

    pub(crate) fn holds(self, p: Point) -> bool {
        p.x > self.x && p.x < self.x + self.w && p.y > self.y && p.y < self.y + self.h
    }

    pub(crate) fn overlaps(self, other: Rect) -> bool {
        self.x < other.x + other.w
            && other.x < self.x + self.w
            && self.y < other.y + other.h
            && other.y < self.y + self.h
    }
}

impl Curve {
    pub(crate) fn at(&self, t: f64) -> Point {
        let [a, b, c, d] = self.0;
        let u = 1.0 - t;
        let mix = |a: f64, b: f64, c: f64, d: f64| {
            u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
        };
        Point { x: mix(a.x, b.x, c.x, d.x), y: mix(a.y, b.y, c.y, d.y) }
    }
}

/// How far apart the points are by which a path is judged.
const PIECE: f64 = 7.0;
/// How round the corners of a path are.
const CORNER: f64 = 14.0;

/// Curves, each of which begins where the one before ends. There is at least one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path(pub(crate) Vec<Curve>);

impl Path {
    /// Straight lines through some points, with round corners.
    pub(crate) fn through(points: &[Point]) -> Path {
        let line =
            |a: Point, b: Point| Curve([a, towards(a, b, 1.0 / 3.0), towards(b, a, 1.0 / 3.0), b]);
        let mut curves = Vec::new();
        let Some((mut at, last)) = points.first().copied().zip(points.last().copied()) else {
            return Path(vec![Curve([Point::default(); 4])]);
        };
        for corner in points.windows(3) {
            let [before, middle, after] = [corner[0], corner[1], corner[2]];
            let round = |end: Point| {
                let distance = middle.distance(end).max(0.001);
                towards(middle, end, (CORNER / distance).min(0.5))
            };
            let (enter, leave) = (round(before), round(after));
            if at != enter {
                curves.push(line(at, enter));
            }
            if enter != leave {
                curves.push(Curve([enter, middle, middle, leave]));
            }
            at = leave;
        }
        curves.push(line(at, last));
        Path(curves)
    }

    pub(crate) fn start(&self) -> Point {
        self.0[0].0[0]
    }

    pub(crate) fn end(&self) -> Point {
        self.0[self.0.len() - 1].0[3]
    }

    /// From where it arrives at its end.
    pub(crate) fn arrival(&self) -> Point {
        self.0[self.0.len() - 1].0[2]
    }

    pub(crate) fn shift(&mut self, by: Point) {
        for point in self.0.iter_mut().flat_map(|curve| &mut curve.0) {
            point.x += by.x;
            point.y += by.y;
        }
    }

    /// Points along it, close enough together that nothing slips through between them.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for curve in &self.0 {
            let [a, b, c, d] = curve.0;
            let length = a.distance(b) + b.distance(c) + c.distance(d);
            let pieces = (length / PIECE).ceil().max(1.0) as usize;
            points.extend((0..pieces).map(|piece| curve.at(piece as f64 / pieces as f64)));
        }
        points.push(self.end());
        points
    }
}

/// The point at a share of the way from one to another.
fn towards(from: Point, to: Point, share: f64) -> Point {
    Point { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}
