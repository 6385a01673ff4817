//! The files of a simplified finding: a script to try, its history, and a bug report.

use std::io;

use isolario_model::RunRecord;
use isolario_report::{Report, bug_report};
use isolario_sql::Product;

use super::cause::Cause;
use super::findings::FindingKind;
use super::folder::write_history;
use super::serial::Difference;
use super::simplify::Simplified;
use crate::run::RunError;
use crate::run::directory::Directory;

/// Writes the smallest script that shows a finding, what came of it, and a bug report. The record is that of the run
/// in which it was found.
pub(super) fn write(
    directory: &Directory,
    found: &Simplified,
    product: &Product,
    run: &RunRecord,
) -> Vec<RunError> {
    let Simplified { name, isolation, claim, .. } = found;
    let script = script(found, product, &run.database_version);
    let run = RunRecord {
        isolation: isolation.clone(),
        claim: claim.levels.clone(),
        claim_source: claim.source.clone(),
        ..run.clone()
    };
    let history = format!("{name}.iso");
    let written = [
        directory.write(&format!("{name}.sql"), |out| out.write_all(script.as_bytes())),
        write_history(directory, &history, &found.history),
        directory.write(&format!("{name}.md"), |out| {
            match &found.difference {
                Some(difference) => tell_difference(difference, out)?,
                None if found.kind == FindingKind::OldVersion => {
                    writeln!(out, "# {}\n\n{OLD_VERSION}", found.kind.title())?;
                }
                None => {
                    let results = std::slice::from_ref(&found.result);
                    let report = Report::new(&history, &found.history, results);
                    bug_report::write(&report, Some(&run), out)?;
                    write!(out, "\n{HOW_TO_READ}")?;
                }
            }
            writeln!(out, "\n## The statements\n\n```sql\n{script}```")
        }),
    ];
    written.into_iter().filter_map(Result::err).collect()
}

/// What a read of an old version is.
const OLD_VERSION: &str = "\
A transaction wrote a row after another one, which had committed meanwhile. Then it read the row, and got the version of its
snapshot, which the other transaction had overwritten: beside the version that it had written itself, or although it
had deleted the row. One statement can return both versions of one row. InnoDB keeps a row whose primary key was
changed under its old key and its new one; a snapshot from before the change finds it under the old one.";

/// What the names of rows and versions mean.
const HOW_TO_READ: &str = "\
## How rows and versions are called

Each table had two more columns when this was recorded: what a row is called by, and the list of statements that wrote
it. `t0/2` is the second row of `t0` in the schema, and `t0/1.3.2` the second row that statement 3 of T1 inserted.
`append t0/2 \"1.3\"` says that statement 3 of T1 wrote the row. The last transactions, which are not among the
statements below, read all tables when everything was over.
";

/// The script with everything that somebody needs who tries it.
fn script(found: &Simplified, product: &Product, version: &str) -> String {
    let mut lines = vec![format!("{}: {version} at {}.", found.kind.title(), found.isolation)];
    if found.cause != Cause::Other {
        lines.push(format!("What lets it happen: {}.", found.cause));
    }
    let (times, trials) = found.shown;
    lines.push(format!("Replayed {trials} times, it showed {times} times."));
    if found.is_cut_short {
        lines.push("Time was up before it was as small as it can be.".to_owned());
    }
    lines.push(String::new());
    lines.push("Make the schema, and open a terminal for each session.".to_owned());
    let settings = product.set_isolation(&found.isolation);
    if !settings.is_empty() {
        lines.push("In each of them, say first".to_owned());
        lines.extend(settings.iter().map(|sql| format!("  {sql};")));
    }
    lines.push("Send the statements in their order. What came back stands beside them.".to_owned());
    let mut text = comment(&lines);
    text.push('\n');
    text += &found.script.to_sql(product, Some(&found.replayed));
    if let Some(orders) = &found.orders {
        text.push('\n');
        text += &comment(&orders.lines());
    }
    text
}

fn comment(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{}\n", format!("-- {line}").trim_end())).collect()
}

/// A bug report on a wrong result.
fn tell_difference(difference: &Difference, out: &mut dyn io::Write) -> io::Result<()> {
    let Difference { txn, after, sql, observed, expected } = difference;
    writeln!(out, "# {}\n", FindingKind::WrongResult.title())?;
    writeln!(
        out,
        "Who read what whom wrote is as if the transactions below had been run one after the other. But \
         no order of them gives these answers.\n"
    )?;
    let who = match txn {
        Some(txn) => format!("T{txn} sent"),
        None => "in the end, somebody sent".to_owned(),
    };
    let after: Vec<String> = after.iter().map(|txn| format!("T{txn}")).collect();
    let after = if after.is_empty() {
        "at first".to_owned()
    } else {
        format!("after {}", after.join(", "))
    };
    writeln!(out, "For example, {who}\n\n```sql\n{sql}\n```\n")?;
    writeln!(out, "- and got {observed};")?;
    writeln!(out, "- one after the other, {after}, the answer is {expected}.")
}
