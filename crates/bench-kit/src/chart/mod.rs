//! Line charts with logarithmic axes, as SVG.

mod scale;

use std::fmt::Write;

use scale::{Scale, label};

/// A line chart. The vertical axis is logarithmic, and the horizontal one, too, unless it is said
/// to be even: with both, growth by a power is a straight line.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What the horizontal axis counts.
    pub x: String,
    /// Whether equal distances on the horizontal axis are equal differences.
    pub even: bool,
    /// What the vertical axis counts.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Where they come from.
    pub origin: Origin,
}

/// Where the points of a line come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They were measured here.
    Measured,
    /// Others measured them elsewhere. They are no line: what lies between them was not told.
    Published,
    /// They only guide the eye.
    Guide,
}

impl Series {
    /// What was measured.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, origin: Origin::Measured }
    }

    /// What others say that they measured.
    pub fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, origin: Origin::Published }
    }

    /// What growth by a power would be, beginning at the first point of another line; where that was too short
    /// to be measured, at the first one that was not.
    pub fn power(exponent: f64, beside: &Series) -> Option<Series> {
        let &(x, y) = beside.points.iter().find(|(_, y)| *y > 0.0)?;
        let &(last, _) = beside.points.last()?;
        let points = vec![(x, y), (last, y * (last / x).powf(exponent))];
        let name = if exponent == 1.0 { "linear".to_owned() } else { format!("n^{exponent}") };
        Some(Series { name, points, origin: Origin::Guide })
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
/// The field of the lines, within the whole: left, top, right, bottom.
const FIELD: (f64, f64, f64, f64) = (80.0, 50.0, 550.0, 380.0);
/// Colours that people who see few colours can tell apart (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const GREY: &str = "#888";

impl Chart {
    /// The chart as a complete SVG file.
    pub fn to_svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let plane = Plane {
            x: match self.even {
                true => Scale::even(points().map(|(x, _)| *x)),
                false => Scale::around(points().map(|(x, _)| *x)),
            },
            y: Scale::around(points().map(|(_, y)| *y)),
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let (left, top, right, bottom) = FIELD;
        let middle = (left + right) / 2.0;
        text(&mut svg, (middle, top - 22.0), "middle", "font-size=\"15\"", &self.title);
        text(&mut svg, (middle, bottom + 42.0), "middle", "", &self.x);
        let turned = format!("transform=\"rotate(-90 22 {})\"", (top + bottom) / 2.0);
        text(&mut svg, (22.0, (top + bottom) / 2.0), "middle", &turned, &self.y);
        plane.draw_axes(&mut svg);
        let mut colours = COLOURS.iter().cycle();
        for (at, series) in self.series.iter().enumerate() {
            let colour = match series.origin {
                Origin::Guide => GREY,
                Origin::Measured | Origin::Published => colours.next().copied().unwrap_or(GREY),
            };
            plane.draw_line(&mut svg, series, colour);
            draw_legend(&mut svg, at, series, colour);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

struct Plane {
    x: Scale,
    y: Scale,
}

impl Plane {
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (left, top, right, bottom) = FIELD;
        let along = |from: f64, to: f64, share: f64| from + share * (to - from);
        (along(left, right, self.x.place(x)), along(bottom, top, self.y.place(y)))
    }

    fn draw_axes(&self, svg: &mut String) {
        let (left, top, right, bottom) = FIELD;
        for mark in self.x.marks() {
            let x = left + self.x.place(mark) * (right - left);
            line(svg, &[(x, top), (x, bottom)], "#ddd", "");
            text(svg, (x, bottom + 18.0), "middle", "", &label(mark));
        }
        for mark in self.y.marks() {
            let y = bottom - self.y.place(mark) * (bottom - top);
            line(svg, &[(left, y), (right, y)], "#ddd", "");
            text(svg, (left - 8.0, y + 4.0), "end", "", &label(mark));
        }
        line(svg, &[(left, top), (left, bottom), (right, bottom)], "black", "");
    }

    fn draw_line(&self, svg: &mut String, series: &Series, colour: &str) {
        let drawable = series.points.iter().filter(|(x, y)| self.x.has(*x) && self.y.has(*y));
        let places: Vec<(f64, f64)> = drawable.map(|point| self.place(*point)).collect();
        draw_points(svg, &places, series.origin, colour);
    }
}

fn draw_points(svg: &mut String, places: &[(f64, f64)], origin: Origin, colour: &str) {
    match origin {
        Origin::Guide => line(svg, places, colour, "stroke-dasharray=\"5 4\""),
        Origin::Published => places.iter().for_each(|place| square(svg, *place, colour)),
        Origin::Measured => {
            line(svg, places, colour, "stroke-width=\"2\"");
            places.iter().for_each(|place| dot(svg, *place, colour));
        }
    }
}

fn draw_legend(svg: &mut String, at: usize, series: &Series, colour: &str) {
    let (x, y) = (FIELD.2 + 18.0, FIELD.1 + 14.0 + 22.0 * at as f64);
    let (middle, ends) = ((x + 13.0, y), [(x, y), (x + 26.0, y)]);
    match series.origin {
        Origin::Guide => draw_points(svg, &ends, series.origin, colour),
        Origin::Published => draw_points(svg, &[middle], series.origin, colour),
        Origin::Measured => {
            line(svg, &ends, colour, "stroke-width=\"2\"");
            dot(svg, middle, colour);
        }
    }
    text(svg, (x + 34.0, y + 4.0), "start", "", &series.name);
}

// Writing to a string cannot fail.

fn line(svg: &mut String, places: &[(f64, f64)], colour: &str, style: &str) {
    let places: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let places = places.join(" ");
    let _ =
        writeln!(svg, "<polyline points=\"{places}\" fill=\"none\" stroke=\"{colour}\" {style}/>");
}

fn dot(svg: &mut String, (x, y): (f64, f64), colour: &str) {
    let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
}

fn square(svg: &mut String, (x, y): (f64, f64), colour: &str) {
    let (left, top) = (x - 5.0, y - 5.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"10\" height=\"10\" fill=\"none\" \
         stroke=\"{colour}\" stroke-width=\"2\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Chart {
        let measured = Series::measured("a < b", vec![(10.0, 0.1), (1000.0, 10.0)]);
        let guide = Series::power(1.5, &measured).unwrap();
        Chart {
            title: "Growth".into(),
            x: "n".into(),
            even: false,
            y: "seconds".into(),
            series: vec![measured, guide],
        }
    }

    #[test]
    fn points_stand_where_the_axes_say() {
        let svg = example().to_svg();
        // The axes go from 10 to 1000 and, for the guide's last point, from 0.1 to 100.
        assert!(svg.contains("points=\"80.0,380.0 550.0,160.0\""), "{svg}");
        assert!(svg.contains("points=\"80.0,380.0 550.0,50.0\""), "{svg}");
    }

    #[test]
    fn words_cannot_break_the_file() {
        let svg = example().to_svg();
        assert!(svg.contains(">a &lt; b</text>") && !svg.contains("a < b"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn guides_are_dashed_and_have_no_dots() {
        let svg = example().to_svg();
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        // Two points and one in the legend.
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn a_guide_begins_where_something_was_measured() {
        let measured = Series::measured("quick", vec![(1.0, 0.0), (10.0, 2.0), (100.0, 20.0)]);
        let guide = Series::power(1.0, &measured).unwrap();
        assert_eq!(guide.points, [(10.0, 2.0), (100.0, 20.0)]);
        let immeasurable = Series::measured("quick", vec![(1.0, 0.0)]);
        assert!(Series::power(1.0, &immeasurable).is_none());
    }

    #[test]
    fn what_others_published_is_squares_without_a_line() {
        let published = Series::published("elsewhere", vec![(10.0, 1.0), (1000.0, 5.0)]);
        let svg = Chart { series: vec![published], ..example() }.to_svg();
        // Two points and one in the legend.
        assert_eq!(svg.matches("width=\"10\"").count(), 3);
        assert!(!svg.contains("<circle"), "{svg}");
    }

    #[test]
    fn an_empty_chart_is_a_chart() {
        let svg = Chart { series: Vec::new(), ..example() }.to_svg();
        assert!(svg.contains("Growth"));
    }
}
