//! A problem in words, for people and for other solvers.

use std::io::{self, Write};

use isolario_model::{History, KeyId, Point};

use super::explain::Explainer;
use super::problem::{Arc, Precedes, Problem};
use super::registers::Version;
use super::saturate::Settled;
use crate::weak::Dependencies;

/// Writes all nodes, known edges and choices, a line each.
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
    (0..problem.registers.key_count())
        .try_for_each(|key| choices(history, problem, KeyId::at(key), out))
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
    let versions: Vec<Version> = problem.registers.versions(key).collect();
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
    let label = |version| history.txn_label(problem.registers.writer(version));
    write!(out, " {} before {}", label(precedes.first), label(precedes.second))?;
    problem.arcs(precedes).try_for_each(|(from, to): Arc| write!(out, " {from}>{to}"))
}
