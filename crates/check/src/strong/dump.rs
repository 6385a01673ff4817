//! A problem in words, for people and for other solvers.

use std::io::{self, Write};

use isolario_model::{History, KeyId, Point};

use super::explain::Explainer;
use super::problem::{Alternative, Precedes, Problem};
use super::saturate::Settled;
use super::sources::OpenRead;
use crate::resolved::Dependencies;
use crate::resolved::Version;

/// Writes all nodes, known edges, the orders of versions that lists show or somebody stated, and
/// choices, a line each.
pub(crate) fn write(
    dependencies: &Dependencies<'_>,
    problem: &Problem,
    out: &mut dyn Write,
) -> io::Result<()> {
    let settled = Settled::default();
    let explainer = Explainer { dependencies, problem, settled: &settled };
    let history = dependencies.history;
    writeln!(out, "problem {}", problem.layout.level)?;
    for node in 0..problem.nodes as u32 {
        writeln!(out, "node {node} {}", name(history, problem, node))?;
    }
    for (from, to) in &problem.known {
        let why = match explainer.known((*from, *to)) {
            Some(reason) => reason.kind().name(),
            None if problem.layout.txn(*from).zip(problem.layout.txn(*to)).is_some() => "within",
            None => "real-time",
        };
        writeln!(out, "known {from} {to} {why}")?;
    }
    dependencies.reads.version_order.iter().try_for_each(|edge| {
        let version = |writer| problem.versions.version(edge.key, writer);
        let Some((first, second)) = version(edge.before).zip(version(edge.after)) else {
            return Ok(());
        };
        write!(out, "given {}:", history.key_name(edge.key))?;
        alternative(history, problem, Precedes { first, second }, out)?;
        writeln!(out)
    })?;
    (0..problem.versions.key_count())
        .try_for_each(|key| choices(history, problem, KeyId::at(key), out))?;
    sources(history, problem, out)
}

/// The reads that may have seen one of several versions, and the transactions that may not be there.
fn sources(history: &History, problem: &Problem, out: &mut dyn Write) -> io::Result<()> {
    let sources = &problem.sources;
    for txn in sources.maybe() {
        writeln!(out, "maybe {}", history.txn_label(*txn))?;
    }
    for number in 0..sources.len() as u32 {
        let OpenRead { reader, key, if_there, .. } = sources.read(number);
        write!(out, "read {number} {}", history.key_name(key))?;
        if if_there.is_some() {
            write!(out, " if {}", history.txn_label(reader))?;
        }
        let mut separator = ":";
        for candidate in sources.candidates(number) {
            let writer = sources.version(candidate).map(|version| problem.versions.writer(version));
            let label = writer.map_or("init".to_owned(), |writer| history.txn_label(writer));
            write!(out, "{separator} {label}")?;
            edges(problem, Alternative::Source(candidate), out)?;
            separator = " or";
        }
        writeln!(out)?;
    }
    Ok(())
}

fn edges(problem: &Problem, alternative: Alternative, out: &mut dyn Write) -> io::Result<()> {
    problem.edges(alternative).into_iter().try_for_each(|(from, to)| write!(out, " {from}>{to}"))
}

fn name(history: &History, problem: &Problem, node: u32) -> String {
    let layout = problem.layout;
    match (layout.txn(node), layout.point(node)) {
        (Some(txn), _) if !layout.is_split() => history.txn_label(txn),
        (Some(_), Some(Point::Start(txn))) => format!("start of {}", history.txn_label(txn)),
        (Some(_), Some(Point::Commit(txn))) => format!("commit of {}", history.txn_label(txn)),
        _ => {
            let moment = problem.moments[node as usize - layout.txn_nodes()];
            format!("moment after {}", history.txn_label(moment))
        }
    }
}

/// Every pair of versions of a key is a choice.
fn choices(
    history: &History,
    problem: &Problem,
    key: KeyId,
    out: &mut dyn Write,
) -> io::Result<()> {
    let versions: Vec<Version> = problem.versions.of(key).collect();
    for (at, second) in versions.iter().enumerate() {
        for first in &versions[..at] {
            let precedes = Precedes { first: *first, second: *second };
            write!(out, "choice {}:", history.key_name(key))?;
            alternative(history, problem, precedes, out)?;
            write!(out, " or")?;
            alternative(history, problem, precedes.opposite(), out)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn alternative(
    history: &History,
    problem: &Problem,
    precedes: Precedes,
    out: &mut dyn Write,
) -> io::Result<()> {
    let label = |version| history.txn_label(problem.versions.writer(version));
    write!(out, " {} before {}", label(precedes.first), label(precedes.second))?;
    edges(problem, Alternative::Order(precedes), out)?;
    for candidate in problem.sources.of_version(precedes.first) {
        if let Some((from, to)) = problem.joint_arc(*candidate, precedes) {
            write!(out, " {from}>{to}?{}", problem.sources.read_of(*candidate))?;
        }
    }
    Ok(())
}
