//! A bug report in Markdown: what a vendor asks for first, and nothing that has to be looked up.

use std::io::{self, Write};

use isolario_model::{AnomalyKind, RunRecord};

use crate::card::card;
use crate::excerpt::{Cell, Excerpt, SessionTable};
use crate::finding::{Finding, ReportFindings};
use crate::markdown::{block, code, table, table_of, text};
use crate::names::{Names, counted, grouped};
use crate::provenance::{Provenance, Utc, shell_word};
use crate::report::Report;
use crate::sentences::{at_least, level_name, product, verdict};

/// What stands in place of what nobody told.
const TO_FILL_IN: &str = "_to be filled in_";
/// Whoever asks for more levels than this asks for all.
const MOST_LEVELS: usize = 6;

/// Writes a bug report on what was found in a history, and on the run that recorded it where there was
/// one. What is not known is listed to be filled in.
pub fn write(report: &Report<'_>, run: Option<&RunRecord>, out: &mut dyn Write) -> io::Result<()> {
    let found = report.found();
    writeln!(out, "# {}\n", text(&heading(report, &found, run)))?;
    write!(out, "{}", what_was_tested(report, run))?;
    writeln!(out, "\n## What was found\n\n{}\n", verdicts(report, &found))?;
    let names = Names::new(report.history);
    let lost = found.findings.first().filter(|first| first.kind() == AnomalyKind::LostCommit);
    if let Some(first) = lost {
        let count = report.lost.map_or(0, |lost| lost.total());
        let count = counted(count, "acknowledged commit");
        writeln!(out, "## What is lost\n\n{count}. The first:\n\n{}", card(names, first))?;
    }
    let excerpt = report.excerpt.and_then(|excerpt| Some((excerpt, excerpt.finding()?)));
    if let Some((excerpt, finding)) = &excerpt {
        smallest_part(report, excerpt, finding, run, out)?;
    }
    let shown = found.in_full(report.max_anomalies.max(1));
    let is_told = |finding: &&Finding<'_>| {
        excerpt.as_ref().is_none_or(|(excerpt, _)| !excerpt.shows(report.history, finding))
    };
    let told = shown.iter().skip(usize::from(lost.is_some())).filter(is_told);
    let told: Vec<&Finding<'_>> = told.collect();
    if excerpt.is_some() && !told.is_empty() {
        writeln!(out, "## What else is in the history\n")?;
    }
    for finding in &told {
        writeln!(out, "{}", card(names, finding))?;
    }
    let more = found.total() - shown.len();
    if more > 0 {
        writeln!(out, "… and {}.\n", counted(more as u64, "more anomaly"))?;
    }
    how_to_repeat(report, run, out)
}

/// The part that whoever gets the report reads: what happened, who did what when, and how to try it.
fn smallest_part(
    report: &Report<'_>,
    excerpt: &Excerpt<'_>,
    finding: &Finding<'_>,
    run: Option<&RunRecord>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "## The smallest part that shows it\n\n{}.\n", text(&excerpt.size(report)))?;
    writeln!(out, "{}", card(Names::new(excerpt.history), finding))?;
    if let Some(sessions) = excerpt.sessions() {
        writeln!(out, "### Session by session\n\n{}", side_by_side(&sessions))?;
    }
    if let Some(script) = excerpt.script(run) {
        let setup = script.setup.join("\n");
        let terminals = counted(script.terminals.len() as u64, "terminal");
        writeln!(out, "### To try it by hand, in {terminals}\n")?;
        if !setup.is_empty() {
            writeln!(out, "First of all:\n\n{}", block("sql", &setup))?;
        }
        writeln!(out, "{}\n\n{}", script.lead(), block("sql", &script.side_by_side()))?;
        for (at, terminal) in script.terminals.iter().enumerate() {
            let statements = block("sql", &script.of_terminal(at));
            writeln!(out, "All of {}:\n\n{statements}", text(terminal))?;
        }
    }
    writeln!(
        out,
        "### As a history\n\nSave it as `shrunk.txt`, and `isolario check --level {} shrunk.txt` finds the \
         same:\n\n{}",
        excerpt.result.level,
        block("text", excerpt.text)
    )
}

fn side_by_side(sessions: &SessionTable<'_>) -> String {
    let has_times = sessions.has_times();
    let when = has_times.then(|| "When".to_owned());
    let head: Vec<String> =
        when.into_iter().chain(sessions.heads().iter().map(|head| text(head))).collect();
    let rows = sessions.rows().into_iter().map(|row| {
        let mut cells = vec![String::new(); head.len()];
        let what = match &row.what {
            Cell::Txn(txn, verb) => text(&format!("{} {verb}", sessions.txn(*txn))),
            Cell::Op(op) => code(op),
        };
        cells[row.column + usize::from(has_times)] = what;
        if has_times {
            cells[0] = row.when;
        }
        cells
    });
    let note = format!("\n{}\n", SessionTable::NOTE);
    table_of(&head, &rows.collect::<Vec<_>>()) + &note
}

fn heading(report: &Report<'_>, found: &ReportFindings<'_>, run: Option<&RunRecord>) -> String {
    let what = found.findings.first().map_or("No anomaly", |finding| finding.kind().title());
    match run {
        Some(run) => report.headline(run),
        None => format!("{what} in {}", report.name),
    }
}

fn what_was_tested(report: &Report<'_>, run: Option<&RunRecord>) -> String {
    let known = |value: String| match value.is_empty() {
        true => TO_FILL_IN.to_owned(),
        false => text(&value),
    };
    let of_run = |value: fn(&RunRecord) -> String| known(run.map_or_else(String::new, value));
    let Provenance { unix_s, digest, .. } = &report.provenance;
    let date = run.map(|run| run.began_unix_s).filter(|seconds| *seconds > 0).or(*unix_s);
    let mut rows = [
        ["Database", &of_run(product)],
        ["Isolation setting", &of_run(|run| run.isolation.clone())],
        ["What it claims to give", &of_run(claimed)],
        ["Source of the claim", &of_run(|run| run.claim_source.clone())],
        ["Nodes", &of_run(|run| run.urls.join(", "))],
        ["Workload", &of_run(workload)],
        ["Seed", &of_run(|run| run.seed.clone())],
        ["History", &text(&size(report))],
        ["Date", &known(date.map_or(String::new(), |seconds| Utc::of(seconds).to_string()))],
        ["Isolario", &text(Provenance::VERSION)],
        ["Configuration, hardware, operating system", TO_FILL_IN],
    ]
    .map(|[label, value]| [label.to_owned(), value.to_owned()])
    .to_vec();
    let to_fill_in = rows.len() - 1;
    let digest = digest.as_ref().map(|digest| ["Digest of the history".to_owned(), code(digest)]);
    rows.splice(to_fill_in..to_fill_in, digest);
    let durability = run.map(|run| text(&run.durability)).filter(|text| !text.is_empty());
    rows.extend(durability.map(|text| ["Durability that the server was set to".to_owned(), text]));
    table(["What was tested", ""], &rows)
}

fn size(report: &Report<'_>) -> String {
    let size = &report.size;
    format!(
        "{}: {} ({} committed), {}, {}",
        report.name,
        counted(size.transactions, "transaction"),
        grouped(size.committed),
        counted(size.sessions, "session"),
        counted(size.keys, "key")
    )
}

fn claimed(run: &RunRecord) -> String {
    match &run.claim[..] {
        [] => "nothing".to_owned(),
        levels => levels.iter().map(|level| level_name(*level)).collect::<Vec<_>>().join(" and "),
    }
}

fn workload(run: &RunRecord) -> String {
    let shape = &run.workload;
    if shape.kind == "sql" {
        // Statements over tables that change from round to round: there are no keys to choose from.
        return format!("{}: at most {} each", shape.kind, counted(shape.ops.into(), "statement"));
    }
    format!(
        "{}: {}, {} each, {} ({})",
        shape.kind,
        counted(u64::from(shape.sessions), "session"),
        counted(u64::from(shape.ops), "operation"),
        counted(u64::from(shape.keys), "key"),
        shape.distribution
    )
}

fn verdicts(report: &Report<'_>, found: &ReportFindings<'_>) -> String {
    let at_least = at_least(found.exact);
    let count = counted(found.total() as u64, "anomaly");
    let verdict =
        verdict(report).map_or(String::new(), |verdict| format!("The history {verdict}. "));
    let answers: Vec<String> = (report.results.iter())
        .map(|result| format!("- {}: {}", result.level, result.verdict.name().replace('-', " ")))
        .collect();
    let found = format!("{verdict}There is {at_least}{count}.");
    let found =
        if count.starts_with("1 ") { found } else { found.replace("There is", "There are") };
    format!("{}\n\n{}", text(&found), answers.join("\n"))
}

/// The flag that asks for the same levels; nothing where none was asked for.
fn levels(report: &Report<'_>) -> String {
    match report.results.len() {
        _ if report.asked.weakest_only => String::new(),
        0 => String::new(),
        many if many > MOST_LEVELS => "--level all ".to_owned(),
        _ => {
            let names: Vec<&str> =
                report.results.iter().map(|result| result.level.name()).collect();
            format!("--level {} ", names.join(","))
        }
    }
}

fn how_to_repeat(
    report: &Report<'_>,
    run: Option<&RunRecord>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "## How to repeat it\n")?;
    match run.filter(|run| !run.replay.is_empty()) {
        Some(run) => writeln!(out, "The run:\n\n{}", block("sh", &run.replay))?,
        None => writeln!(out, "How the history was recorded: {TO_FILL_IN}\n")?,
    }
    let check = format!("isolario check {}{}", levels(report), shell_word(report.name));
    writeln!(
        out,
        "The check of what was recorded, without a database:\n\n{}",
        block("sh", &check)
    )?;
    match &report.provenance.verify {
        Some(command) => write!(
            out,
            "The proof, by a verifier that shares no code with the checkers:\n\n{}",
            block("sh", command)
        ),
        None => writeln!(out, "No proof was written; `isolario check --proof FILE` writes one."),
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::{
        Anomaly, Attempt, Batch, Evidence, Findings, KeyId, Level, LevelResult, Op, OpId, OpNotes,
        Outcome, Reason, RunShape, RunVerdict, TxnEnd, TxnId, TxnSink, TxnStart, Verdict,
        VerdictKind, VersionOrder,
    };

    use super::*;
    use crate::testing::{edge, int, text as name};

    const KEY: &str = "x|`<b>`\n# y";

    /// A lost update on a key of a hostile name, between transactions of such.
    fn history() -> isolario_model::History {
        let mut batch = Batch::new();
        for at in 0..2 {
            let id = Some(name(if at == 0 { "</pre><script>" } else { "[a](http://e)" }));
            batch.begin(&TxnStart { session: int(at), id, line: None }).unwrap();
            let read = Op::Read { key: name(KEY), value: Some(int(0)) };
            let sql = OpNotes { sql: Some("SELECT 1 -- ```\n| x |"), ..OpNotes::default() };
            batch.op_with(&read, &sql).unwrap();
            batch.op(&Op::Write { key: name(KEY), value: int(at + 1) }).unwrap();
            let (start, finish) = (Some(at * 5_000_000), Some(at * 5_000_000 + 2_000_000));
            let error = (at == 1).then_some("``gone`` <i>");
            let end = TxnEnd { start, finish, error, ..TxnEnd::new(Outcome::Committed) };
            batch.end(&end).unwrap();
        }
        batch.build().unwrap()
    }

    fn results() -> [LevelResult; 1] {
        let rw = |from, to, read| {
            let (key, known) = (KeyId(0), VersionOrder::Initial);
            let (read, writer) = (OpId(read), TxnId::INIT);
            edge(from, to, Reason::AntiDependency { key, read, writer, known })
        };
        let evidence = Evidence::Cycle { edges: vec![rw(0, 1, 0), rw(1, 0, 2)] };
        let lost = Anomaly::new(AnomalyKind::LostUpdate, evidence);
        let verdict = Verdict::Violated(Findings::new(vec![lost], true));
        [LevelResult { level: Level::SnapshotIsolation, decided_by: Attempt::Versions, verdict }]
    }

    fn run() -> RunRecord {
        RunRecord {
            schema: RunRecord::SCHEMA.to_owned(),
            began_unix_s: 951_827_696,
            urls: vec!["postgres://u@h/db".to_owned()],
            database: "postgres".to_owned(),
            database_version: "PostgreSQL 15.4 <x>".to_owned(),
            isolation: "repeatable-read".to_owned(),
            workload: RunShape { kind: "mini".to_owned(), sessions: 8, ..RunShape::default() },
            seed: "7".to_owned(),
            replay: "isolario run --db postgres://u@h/db --seed 7".to_owned(),
            claim: vec![Level::SnapshotIsolation],
            claim_source: "the manual, 13.2.2".to_owned(),
            verdicts: vec![RunVerdict {
                level: Level::SnapshotIsolation,
                verdict: VerdictKind::Violated,
                anomalies: vec![AnomalyKind::LostUpdate],
            }],
            ..RunRecord::default()
        }
    }

    fn written(run: Option<&RunRecord>) -> String {
        let (history, results) = (history(), results());
        let provenance = Provenance::new()
            .with_digest("sha256:00ff")
            .with_verify("isolario verify runs/7/history.iso runs/7/proof");
        let report =
            Report::new("runs/7/history.iso", &history, &results).with_provenance(provenance);
        let mut out = Vec::new();
        write(&report, run, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_bug_report_has_what_a_vendor_asks_for() {
        insta::assert_snapshot!(written(Some(&run())));
    }

    #[test]
    fn what_is_not_known_is_to_be_filled_in() {
        let text = written(None);
        for unknown in ["Database", "Isolation setting", "Source of the claim", "Seed"] {
            assert!(text.contains(&format!("| {unknown} | {TO_FILL_IN} |")), "{unknown}: {text}");
        }
        assert!(text.starts_with("# Lost update in runs/7/history.iso\n"), "{text}");
        assert!(text.contains("isolario verify runs/7/history.iso runs/7/proof"), "{text}");
    }

    #[test]
    fn nothing_from_outside_is_markup() {
        let text = written(Some(&run()));
        // Outside of code, which shows everything as it is.
        let mut fence = None;
        for line in text.lines() {
            let ticks = line.len() - line.trim_start_matches('`').len();
            match fence {
                None if ticks >= 3 => fence = Some(ticks),
                Some(open) if line.trim_end_matches('`').is_empty() && ticks >= open => {
                    fence = None;
                }
                Some(_) => {}
                None => {
                    let plain: String = line.split('`').step_by(2).collect();
                    assert!(!plain.contains('<'), "{line}");
                    assert!(!plain.replace("\\]", "").contains("](http"), "{line}");
                }
            }
        }
        assert_eq!(fence, None);
        assert!(!text.contains("\n# y"), "{text}");
    }
}
