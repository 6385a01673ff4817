//! Anomalies for Graphviz: one graph, in which every anomaly is a cluster, and every session in it.
//!
//! One graph per file, because many tools read only the first graph of a file.

use std::fmt;
use std::io::{self, Write};

use isolario_model::{Anomaly, EdgeKind};

use crate::names::Names;
use crate::picture::{Case, Link, Node, Picture, Shown};
use crate::report::Report;

/// Writes the anomalies that a report shows in full; of an argument by cases, every case.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let shown = report.reported_anomalies();
    let shown: Vec<_> = (1..).zip(shown.into_iter().take(report.max_anomalies)).collect();
    graph(Names::new(report.history), &shown, out)
}

/// Writes one anomaly.
pub(crate) fn one(names: Names<'_>, anomaly: &Anomaly, out: &mut dyn Write) -> io::Result<()> {
    graph(names, &[(1, anomaly)], out)
}

fn graph(names: Names<'_>, anomalies: &[(usize, &Anomaly)], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "digraph anomalies {{")?;
    writeln!(out, "  graph [fontname=sans labelloc=t];")?;
    writeln!(out, "  node [shape=box style=rounded fontname=monospace];")?;
    writeln!(out, "  edge [fontname=sans fontsize=11];")?;
    if anomalies.is_empty() {
        writeln!(out, "  label=\"no anomalies\";")?;
    }
    for (number, anomaly) in anomalies {
        for picture in Picture::all_of(names, anomaly, Shown::Relevant) {
            let case = picture.case.map_or(String::new(), |case| format!("c{}", case.number));
            let title = format!("{number} {}", anomaly.kind);
            cluster(&format!("a{number}{case}"), &title, &picture, out)?;
        }
    }
    writeln!(out, "}}")
}

/// One picture. `id` is what the names of its nodes begin with.
fn cluster(id: &str, title: &str, picture: &Picture, out: &mut dyn Write) -> io::Result<()> {
    let about = &picture.about;
    let label = match picture.case {
        Some(case) => format!("{title}, {case}{}: {about}", undrawn(case)),
        None => format!("{title}: {about}"),
    };
    writeln!(out, "  subgraph cluster_{id} {{\n    label={}; color=gray;", Quoted(&label))?;
    let mut sessions: Vec<_> =
        picture.nodes.iter().filter_map(|node| node.session.clone()).collect();
    sessions.sort_unstable();
    sessions.dedup();
    for (session, name) in sessions {
        writeln!(out, "    subgraph cluster_{id}_s{} {{", session.0)?;
        writeln!(out, "      label={}; color=gray;", Quoted(&format!("session {name}")))?;
        for (at, node) in picture.nodes.iter().enumerate() {
            if node.session.as_ref().is_some_and(|(of, _)| *of == session) {
                writeln!(out, "      {id}t{at} [label={}];", Label(node))?;
            }
        }
        writeln!(out, "    }}")?;
    }
    for (at, node) in picture.nodes.iter().enumerate().filter(|(_, node)| node.session.is_none()) {
        writeln!(out, "    {id}t{at} [label={} style=dashed];", Label(node))?;
    }
    for link in &picture.links {
        let Link { from, to, .. } = link;
        let (label, why, style) = (Quoted(&link.label), Quoted(&link.why), style(link));
        writeln!(out, "    {id}t{from} -> {id}t{to} [label={label} tooltip={why} {style}];")?;
    }
    writeln!(out, "  }}")
}

fn undrawn(case: Case) -> String {
    match case.undrawn() {
        0 => String::new(),
        more => format!(" ({more} are not drawn)"),
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
