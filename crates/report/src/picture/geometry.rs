//! Points, boxes and curves.

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
        (self.x - other.x).hypot(self.y - other.y)
    }
}

impl Rect {
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
