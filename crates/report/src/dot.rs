//! Anomalies as graphs for Graphviz: a graph per anomaly, a cluster per session.

use std::fmt;
use std::io::{self, Write};

use isolario_model::EdgeKind;

use crate::names::Names;
use crate::picture::{Case, Link, Node, Picture, Shown};
use crate::report::Report;

/// Writes the anomalies that a report shows in full: a graph each, and a graph for every case where
/// the argument goes by cases.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let names = Names::new(report.history);
    let shown = report.shown_anomalies();
    if shown.is_empty() {
        return writeln!(out, "digraph \"no anomalies\" {{\n}}");
    }
    for (number, anomaly) in (1..).zip(shown.iter().take(report.max_anomalies)) {
        for picture in Picture::all_of(names, anomaly, Shown::Relevant) {
            let (kind, case) = (anomaly.kind, picture.case);
            let case = case.map_or(String::new(), |case| format!(", {case}"));
            graph(&format!("{number} {kind}{case}"), &picture, out)?;
        }
    }
    Ok(())
}

fn graph(name: &str, picture: &Picture, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "digraph {} {{", Quoted(name))?;
    let label = match picture.case {
        Some(case) => format!("{}: {case}{}", picture.about, undrawn(case)),
        None => picture.about.clone(),
    };
    writeln!(out, "  label={}; labelloc=t; fontname=sans;", Quoted(&label))?;
    writeln!(out, "  node [shape=box style=rounded fontname=monospace];")?;
    writeln!(out, "  edge [fontname=sans fontsize=11];")?;
    let mut sessions: Vec<_> =
        picture.nodes.iter().filter_map(|node| node.session.clone()).collect();
    sessions.sort_unstable();
    sessions.dedup();
    for (id, session) in sessions {
        writeln!(out, "  subgraph cluster_{} {{", id.0)?;
        writeln!(out, "    label={}; color=gray;", Quoted(&format!("session {session}")))?;
        for (at, node) in picture.nodes.iter().enumerate() {
            if node.session.as_ref().is_some_and(|(of, _)| *of == id) {
                writeln!(out, "    t{at} [label={}];", Label(node))?;
            }
        }
        writeln!(out, "  }}")?;
    }
    for (at, node) in picture.nodes.iter().enumerate().filter(|(_, node)| node.session.is_none()) {
        writeln!(out, "  t{at} [label={} style=dashed];", Label(node))?;
    }
    for link in &picture.links {
        let Link { from, to, .. } = link;
        let (label, why, style) = (Quoted(&link.label), Quoted(&link.why), style(link));
        writeln!(out, "  t{from} -> t{to} [label={label} tooltip={why} {style}];")?;
    }
    writeln!(out, "}}")
}

fn undrawn(case: Case) -> String {
    match case.undrawn() {
        0 => String::new(),
        more => format!("; {more} are not drawn"),
    }
}

fn style(link: &Link) -> String {
    let colour = match link.kind {
        EdgeKind::WriteRead => "#0b5cad",
        EdgeKind::WriteWrite => "#8a4b08",
        EdgeKind::ReadWrite => "#a81b1b",
        EdgeKind::RealTime => "#6b3fa0",
        EdgeKind::CommitOrder => "#0a6b5c",
        _ => "#4a5560",
    };
    let line = match link.kind {
        _ if link.is_supposed => "dotted",
        EdgeKind::CommitOrder => "dashed",
        EdgeKind::RealTime => "dotted",
        _ => "solid",
    };
    let width = if link.behind.is_none() { "2.2" } else { "1" };
    format!("color=\"{colour}\" fontcolor=\"{colour}\" style={line} penwidth={width}")
}

/// A text as a quoted identifier: nothing in it ends the quotes or is taken for an escape.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", escaped(self.0))
    }
}

/// The lines of a box, each flush left.
struct Label<'a>(&'a Node);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\\l", escaped(&self.0.title))?;
        for line in &self.0.lines {
            write!(f, "{}\\l", escaped(&line.text))?;
        }
        f.write_str("\"")
    }
}

fn escaped(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.collect::<String>().replace('\\', "\\\\").replace('"', "\\\"")
}
