//! One finding as Markdown: for bug reports, and for whoever copies a card of the page.

use std::fmt::Write;

use isolario_model::{Edge, Evidence, OpId, TxnId};

use crate::finding::Finding;
use crate::involved::InvolvedTxn;
use crate::markdown::{block, code, table, text};
use crate::names::{Names, counted};
use crate::sentences::{
    ArgumentStep, HOW_TO_READ_CASES, acknowledged, advice, alike, asked_for, began, breaks,
    capitalised, case, down_in_words, happened, in_time, other_names_of_finding, refutation,
    supposed, title_of, told,
};
use crate::txn_facts::TxnFacts;

/// How many cases are spelt out.
const MOST_CASES: usize = 3;
/// Of a larger anomaly, nobody draws a picture.
const MOST_DRAWN: usize = 20;

/// A finding as Markdown: its names, what happened, who took part with statements, errors and times, the
/// picture, and the argument. The page offers it as "copy as Markdown", and bug reports are made of it.
pub fn card(names: Names<'_>, finding: &Finding<'_>) -> String {
    // Writing to a string does not fail, here and below.
    let mut card = String::new();
    let _ = writeln!(card, "### {}\n", text(&title_of(finding.anomaly)));
    let other = other_names_of_finding(finding).join(", ");
    let _ = writeln!(card, "{}; {}.\n", text(&other), breaks(finding.kind(), finding.rules_out));
    let _ = writeln!(card, "{}\n", text(&happened(names, finding.anomaly)));
    let mut involved = finding.involved.clone();
    involved.sort_by_key(|part| part.txn);
    card += &transactions(names.about(&finding.keys), &involved);
    let txns: Vec<TxnId> = involved.iter().map(|part| part.txn).collect();
    let in_time = in_time(names, &txns);
    if !in_time.is_empty() {
        let _ = writeln!(card, "\nIn time: {}.", text(&in_time.join("; ")));
    }
    if let Some(durability) = finding.durability {
        let _ = writeln!(card, "\n{}.", text(&asked_for(durability)));
    }
    let edges = finding.anomaly.evidence.edges();
    card += &picture(names.about(&finding.keys), edges, &involved);
    if let Evidence::Lost { write, down, found, .. } = finding.anomaly.evidence {
        card += &sequence(names, write, down, found);
    }
    card += &argument(names, &finding.anomaly.evidence);
    for paragraph in advice(names.history(), finding.anomaly) {
        let _ = writeln!(card, "\nWhere to look: {}", text(&paragraph));
    }
    card
}

fn transactions(names: Names<'_>, involved: &[InvolvedTxn]) -> String {
    let began = began(names.history());
    let (mut rows, mut details) = (Vec::new(), String::new());
    for part in involved {
        let facts = TxnFacts::of(names, part.txn, began);
        let name = text(&names.txn(part.txn));
        let mut ops: Vec<String> = part.ops.iter().map(|op| code(&names.op(*op))).collect();
        if part.omitted > 0 {
            ops.push(format!("… {}", counted(part.omitted as u64, "more operation")));
        }
        let time = text(facts.time.as_deref().unwrap_or_default());
        rows.push([name.clone(), text(&facts.origin), time, ops.join(" ")]);
        for (label, note) in facts.notes().iter().filter(|(label, _)| *label != "time") {
            let _ = writeln!(details, "\n- {name}, {label}: {}", code(note));
        }
        if !facts.sql.is_empty() {
            let statements: Vec<&str> = facts.sql.iter().map(|(_, sql)| *sql).collect();
            let _ = write!(details, "\n{name}:\n\n{}", block("sql", &statements.join("\n")));
        }
    }
    table(["Transaction", "Where", "When", "Operations that matter"], &rows) + &details
}

/// A graph in the language of Mermaid, which the pages of code hosts draw.
fn picture(names: Names<'_>, edges: &[Edge], involved: &[InvolvedTxn]) -> String {
    let drawn: Vec<TxnId> = edges.iter().flat_map(|edge| [edge.from, edge.to]).collect();
    if edges.is_empty() || edges.len() > MOST_DRAWN {
        return String::new();
    }
    let node = |txn: TxnId| match txn.is_init() {
        true => "init".to_owned(),
        false => format!("t{}", txn.0),
    };
    let mut graph = String::from("graph LR\n");
    for txn in drawn.iter().filter(|txn| txn.is_init()).take(1) {
        let _ = writeln!(graph, "  {}[\"{}\"]", node(*txn), label(&names.txn(*txn)));
    }
    for part in involved.iter().filter(|part| drawn.contains(&part.txn)) {
        let ops: Vec<String> = part.ops.iter().map(|op| label(&names.op(*op))).collect();
        let title = label(&names.txn(part.txn));
        let lines = [vec![title], ops].concat().join("<br>");
        let _ = writeln!(graph, "  {}[\"{lines}\"]", node(part.txn));
    }
    for edge in edges {
        let key = edge.reason.key().map_or(String::new(), |key| format!(" {}", names.key(key)));
        let why = label(&format!("{}{key}", edge.reason.kind().name()));
        let _ = writeln!(graph, "  {} -->|\"{why}\"| {}", node(edge.from), node(edge.to));
    }
    format!("\n{}", block("mermaid", &graph))
}

/// A lost commit as a sequence of messages between clients and the server, in the language of Mermaid.
fn sequence(names: Names<'_>, write: OpId, down: [i64; 2], found: OpId) -> String {
    let history = names.history();
    let client = |op: OpId| label(&names.txn_of(op));
    let (writer, reader) = (client(write), client(found));
    let acknowledged = acknowledged(history, write).unwrap_or_else(|| "acknowledged".to_owned());
    let lines = [
        "sequenceDiagram".to_owned(),
        format!("  participant w as {writer}"),
        "  participant s as server".to_owned(),
        format!("  participant r as {reader}"),
        format!("  w->>s: {}", label(&names.op(write))),
        format!("  s-->>w: {}", label(&acknowledged)),
        format!("  note over s: {}", label(&down_in_words(history, down))),
        "  r->>s: read".to_owned(),
        format!("  s-->>r: {}", label(&names.op(found))),
    ];
    format!("\n{}", block("mermaid", &(lines.join("\n") + "\n")))
}

/// Text in a graph: whatever could be more than text is written as its number.
fn label(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars() {
        match c.is_alphanumeric() || " .,:=_-".contains(c) {
            true => label.push(c),
            false => {
                let _ = write!(label, "#{};", u32::from(c));
            }
        }
    }
    label
}

fn argument(names: Names<'_>, evidence: &Evidence) -> String {
    let mut lines = String::new();
    match evidence {
        Evidence::Cases { cycles } if cycles.len() > 1 => {
            let supposed = supposed(names, cycles);
            let mut told = 0;
            let _ = writeln!(lines, "\nWhy this is impossible: {HOW_TO_READ_CASES}");
            for alike in alike(cycles).iter().take(MOST_CASES) {
                let case = case(told + 1, alike, cycles.len(), &supposed[alike.case]);
                let _ = write!(lines, "\n{case}:\n{}", cycle_of(names, &cycles[alike.case]));
                if let Some(likewise) = alike.likewise(names) {
                    let _ = writeln!(lines, "{}.", text(&capitalised(&likewise)));
                }
                told += alike.count();
            }
            if cycles.len() > told {
                let more = counted((cycles.len() - told) as u64, "more case");
                let _ = writeln!(lines, "\n… and {more}, which the proof has.");
            }
        }
        Evidence::Cycle { .. } | Evidence::Cases { .. } => {
            let _ =
                write!(lines, "\nWhy this is impossible:\n{}", cycle_of(names, evidence.edges()));
        }
        evidence if evidence.edges().is_empty() => {}
        evidence => {
            lines += "\nWhy this is impossible:\n\n";
            steps(&told(names, evidence.edges()), names, 0, &mut lines);
        }
    }
    lines
}

fn cycle_of(names: Names<'_>, edges: &[Edge]) -> String {
    let Some((argument, conclusion)) = refutation(names, edges) else { return String::new() };
    let mut lines = String::from("\n");
    steps(&argument, names, 0, &mut lines);
    let _ = writeln!(lines, "\nSo {}.", text(&conclusion));
    lines
}

/// Numbered steps, as deep as `told` goes, which is not far.
fn steps(steps_of: &[ArgumentStep], names: Names<'_>, depth: usize, out: &mut String) {
    let indent = " ".repeat(3 * depth);
    for (number, step) in (1..).zip(steps_of) {
        let key = step.key.map_or(String::new(), |key| format!(" {}", names.key(key)));
        let (from, to) = (names.txn(step.from), names.txn(step.to));
        let told = format!("{from} → {to} ({}{key}): {}", step.kind.name(), step.sentence);
        let _ = writeln!(out, "{indent}{number}. {}", text(&told));
        steps(&step.because, names, depth + 1, out);
        if let Some(conclusion) = &step.conclusion {
            let _ = writeln!(out, "{indent}   … {}", text(conclusion));
        }
    }
}
