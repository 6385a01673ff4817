//! Pictures of anomalies as SVG: boxes for transactions, columns for sessions, arrows for reasons.
//!
//! Colour is never the only sign: kinds of arrows are named on their labels, inferred ones are
//! dashed, those of the cycle are thick.

use std::fmt::Write as _;
use std::io::{self, Write};

use isolario_model::{Anomaly, EdgeKind};

use crate::names::{Names, counted};
use crate::picture::{Layout, Link, Node, Picture, Point, Rect, Route, Shown};
use crate::report::Report;
use crate::sentences::{breaks, happened};
use crate::wrap::wrap;
use crate::xml::Escaped;

/// What pictures look like, on paper and alone.
const STYLE: &str = include_str!("html/assets/picture.css");
const GAP: f64 = 34.0;
const CAPTION_LINE: f64 = 18.0;
const CAPTION_WIDTH: usize = 92;
const NARROWEST: f64 = 760.0;
/// A page shows pictures no smaller than this, and scrolls them where there is less room.
const SMALLEST: f64 = 0.8;

/// Writes the anomalies that a report shows in full, one below the other; of an argument by cases,
/// every case.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let names = Names::new(report.history);
    let all = report.reported_anomalies();
    let shown = &all[..all.len().min(report.max_anomalies)];
    let parts: Vec<Part> = shown.iter().flat_map(|anomaly| Part::all_of(names, anomaly)).collect();
    let width = parts.iter().map(|part| part.layout.width).fold(NARROWEST, f64::max);
    let height = parts.iter().map(Part::height).sum::<f64>() + GAP;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" class=\"picture\" role=\"img\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>",
        Escaped(&format!("{}: {}", report.name, counted(shown.len() as u64, "anomaly")))
    )?;
    if parts.is_empty() {
        writeln!(out, "<text class=\"caption\" x=\"12\" y=\"22\">No anomalies.</text>")?;
    }
    let mut top = GAP / 2.0;
    for part in &parts {
        part.write(top, out)?;
        top += part.height();
    }
    writeln!(out, "</svg>")
}

/// One anomaly with its caption, or one case of its argument.
struct Part {
    title: String,
    caption: Vec<String>,
    picture: Picture,
    layout: Layout,
}

impl Part {
    fn all_of(names: Names<'_>, anomaly: &Anomaly) -> Vec<Part> {
        let (kind, levels) = (anomaly.kind, anomaly.rules_out);
        let part = |picture: Picture| {
            let (title, text) = match picture.case {
                None => (
                    format!("{}: {}", kind.title(), breaks(kind, levels)),
                    happened(names, anomaly),
                ),
                Some(case) => {
                    let text = match (case.number, case.undrawn()) {
                        (1, 0) => happened(names, anomaly),
                        (1, more) => {
                            format!("{} {more} of them are not drawn.", happened(names, anomaly))
                        }
                        _ => String::new(),
                    };
                    (format!("{}, {case}: {}", kind.title(), breaks(kind, levels)), text)
                }
            };
            let caption = wrap(&text, CAPTION_WIDTH, "", "").lines().map(str::to_owned).collect();
            Part { title, caption, layout: Layout::of(&picture), picture }
        };
        Picture::all_of(names, anomaly, Shown::Relevant).into_iter().map(part).collect()
    }

    fn caption_height(&self) -> f64 {
        (self.caption.len() + 1) as f64 * CAPTION_LINE + 14.0
    }

    fn height(&self) -> f64 {
        self.caption_height() + self.layout.height + GAP
    }

    fn write(&self, top: f64, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<g transform=\"translate(0 {top:.0})\">")?;
        writeln!(out, "<text class=\"title\" x=\"12\" y=\"14\">{}</text>", Escaped(&self.title))?;
        for (line, text) in (1..).zip(&self.caption) {
            let y = 16.0 + f64::from(line) * CAPTION_LINE;
            writeln!(out, "<text class=\"caption\" x=\"12\" y=\"{y}\">{}</text>", Escaped(text))?;
        }
        writeln!(out, "<g transform=\"translate(0 {:.0})\">", self.caption_height())?;
        body(&self.picture, &self.layout, out)?;
        writeln!(out, "</g>\n</g>")
    }
}

/// A picture for a page that has the styles and the words.
pub(crate) fn figure(picture: &Picture, shown: Shown, out: &mut dyn Write) -> io::Result<()> {
    let layout = Layout::of(picture);
    let (width, height) = (layout.width, layout.height);
    let class = if shown == Shown::All { "picture all" } else { "picture" };
    writeln!(
        out,
        "<svg class=\"{class}\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" style=\"min-width:{:.0}px\" role=\"img\" aria-label=\"{}\">",
        width * SMALLEST,
        Escaped(&format!("Graph: {}", told(picture)))
    )?;
    body(picture, &layout, out)?;
    writeln!(out, "</svg>")
}

/// The arrows of the argument, for those who do not see them.
fn told(picture: &Picture) -> String {
    let main = picture.links.iter().filter(|link| link.behind.is_none());
    let arrow = |link: &Link| {
        let name = |at: usize| &picture.nodes[at].title;
        format!("{} before {} ({})", name(link.from), name(link.to), link.label)
    };
    match main.map(arrow).collect::<Vec<_>>().join(", ") {
        arrows if arrows.is_empty() => picture.about.clone(),
        arrows => arrows,
    }
}

/// The picture itself, without a frame. Parts have numbers by which scripts find them.
pub(crate) fn body(picture: &Picture, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    for (x, name) in &layout.headers {
        let (x, bottom) = (x.round(), layout.height - 12.0);
        writeln!(out, "<path class=\"lane\" d=\"M{x} 30V{bottom:.0}\"/>")?;
        writeln!(out, "<text class=\"session\" x=\"{x}\" y=\"20\">{}</text>", Escaped(name))?;
    }
    for (at, node) in picture.nodes.iter().enumerate() {
        write_node(at, node, picture.is_long, layout.boxes[at], out)?;
    }
    for (at, link) in picture.links.iter().enumerate() {
        write_link(at, link, &layout.routes[at], out)?;
    }
    Ok(())
}

/// `named`: whether its session stands beside its title, for want of a column.
fn write_node(
    at: usize,
    node: &Node,
    named: bool,
    rect: Rect,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Rect { x, y, w, h } = rect;
    let aside = if node.is_aside { " aside" } else { "" };
    let of = match node.txn.is_init() {
        true => String::new(),
        false => format!(" data-t=\"{}\"", node.txn.0),
    };
    let init = if node.session.is_none() { " init" } else { "" };
    writeln!(
        out,
        "<g class=\"node{aside}{init}\" data-node=\"{at}\"{of}><rect x=\"{x:.1}\" y=\"{y:.1}\" \
         width=\"{w:.1}\" height=\"{h:.1}\" rx=\"6\"/><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + 9.0,
        y + 17.0,
        Escaped(&node.title)
    )?;
    if let Some(place) = node.place().filter(|_| named) {
        writeln!(
            out,
            "<text class=\"place\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + w - 9.0,
            y + 17.0,
            Escaped(&place)
        )?;
    }
    for (line, text) in (0..).zip(&node.lines) {
        let class = if text.matters { "op" } else { "op other" };
        let below = y + 36.0 + f64::from(line) * crate::picture::LINE;
        writeln!(
            out,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{below:.1}\">{}</text>",
            x + crate::picture::PADDING,
            Escaped(&text.text)
        )?;
    }
    writeln!(out, "</g>")
}

fn write_link(at: usize, link: &Link, route: &Route, out: &mut dyn Write) -> io::Result<()> {
    let behind = link.behind.map_or(String::new(), |other| format!(" data-behind=\"{other}\""));
    let role = if link.behind.is_some() { "reason" } else { "cycle" };
    let supposed = if link.is_supposed { " supposed" } else { "" };
    let Rect { x, y, w, h } = route.label;
    writeln!(
        out,
        "<g class=\"link {role} {}{supposed}\" data-link=\"{at}\" data-from=\"{}\" data-to=\"{}\"{behind}>\
         <title>{}</title><path class=\"line\" d=\"{}\"/><path class=\"head\" d=\"{}\"/>\
         <rect class=\"tag\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"3\"/>\
         <text class=\"tag\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        class_of(link.kind),
        link.from,
        link.to,
        Escaped(&link.why),
        line(route),
        head(route),
        x + w / 2.0,
        y + 11.5,
        Escaped(&link.label)
    )
}

fn class_of(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::RealTime => "real-time",
        kind => kind.name(),
    }
}

fn line(route: &Route) -> String {
    let start = route.path.start();
    let mut path = format!("M{:.1} {:.1}", start.x, start.y);
    for curve in &route.path.0 {
        let [_, b, c, d] = curve.0;
        // Writing to a string does not fail.
        let _ = write!(path, "C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}", b.x, b.y, c.x, c.y, d.x, d.y);
    }
    path
}

/// The point of the arrow: a triangle in the direction in which the curve arrives.
fn head(route: &Route) -> String {
    let (c, d) = (route.path.arrival(), route.path.end());
    let length = c.distance(d).max(0.001);
    let (dx, dy) = ((d.x - c.x) / length, (d.y - c.y) / length);
    let corner =
        |side: f64| Point { x: d.x - dx * 10.0 - dy * side, y: d.y - dy * 10.0 + dx * side };
    let (a, b) = (corner(4.5), corner(-4.5));
    format!("M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z", d.x, d.y, a.x, a.y, b.x, b.y)
}
