//! The smallest part of the history that shows what is wrong: what a reader wants to see first.

use std::collections::BTreeMap;
use std::io::{self, Write};

use isolario_model::{RunRecord, TxnId};

use super::section;
use crate::excerpt::{Cell, Excerpt, SessionTable};
use crate::marks::Part;
use crate::names::{Names, counted};
use crate::report::Report;
use crate::sentences::{happened, title};
use crate::xml::Escaped;

pub(super) fn write(
    report: &Report<'_>,
    excerpt: &Excerpt<'_>,
    run: Option<&RunRecord>,
    part: Part,
    out: &mut dyn Write,
) -> io::Result<()> {
    section("smallest", "The smallest part that shows it", part, out)?;
    writeln!(out, "<p>{}.</p>", Escaped(&excerpt.size(report)))?;
    if let Some(finding) = excerpt.finding() {
        let words = happened(Names::new(excerpt.history), finding.anomaly);
        let title = title(finding.kind());
        writeln!(
            out,
            "<h3>{}</h3>\n<p class=\"happened\">{}</p>",
            Escaped(&title),
            Escaped(&words)
        )?;
    }
    if let Some(sessions) = excerpt.sessions() {
        table(&sessions, &excerpt.in_whole(report.history), part, out)?;
    }
    if let Some(script) = excerpt.script(run) {
        let terminals = counted(script.terminals.len() as u64, "terminal");
        writeln!(out, "<h3>To try it by hand, in {terminals}</h3>")?;
        if !script.setup.is_empty() {
            let setup = Escaped(&script.setup.join("\n")).to_string();
            writeln!(out, "<p>First of all:</p>\n<pre class=\"command copied\">{setup}</pre>")?;
        }
        writeln!(
            out,
            "<p>{}</p>\n<pre class=\"terminals\" tabindex=\"0\">{}</pre>",
            script.lead(),
            Escaped(&script.side_by_side())
        )?;
        for (at, terminal) in script.terminals.iter().enumerate() {
            let statements = script.of_terminal(at);
            writeln!(
                out,
                "<details><summary>All of {}</summary>\n<pre class=\"command copied\">{}</pre></details>",
                Escaped(terminal),
                Escaped(&statements)
            )?;
        }
    }
    writeln!(
        out,
        "<details><summary>As a history, for <code>isolario check --level {} shrunk.txt</code></summary>\n\
         <pre class=\"command copied\">{}</pre></details>\n</section>",
        excerpt.result.level,
        Escaped(excerpt.text)
    )
}

/// The sessions beside each other. Transactions are links to where they are in the whole.
fn table(
    sessions: &SessionTable<'_>,
    in_whole: &BTreeMap<TxnId, TxnId>,
    part: Part,
    out: &mut dyn Write,
) -> io::Result<()> {
    let has_times = sessions.has_times();
    let heads = sessions.heads();
    let head: String = heads
        .iter()
        .map(|head| format!("<th scope=\"col\"><bdi>{}</bdi></th>", Escaped(head)))
        .collect();
    let when = if has_times { "<th scope=\"col\">When</th>" } else { "" };
    writeln!(
        out,
        "<table class=\"side-by-side\">\n<caption>Session by session, time downwards</caption>\n<tr>{when}\
         {head}</tr>"
    )?;
    for row in sessions.rows() {
        let when =
            if has_times { format!("<td class=\"when\">{}</td>", row.when) } else { String::new() };
        let what = match &row.what {
            Cell::Op(op) => format!("<code><bdi>{}</bdi></code>", Escaped(op)),
            Cell::Txn(txn, verb) => {
                let name = format!("<bdi>{}</bdi>", Escaped(&sessions.txn(*txn)));
                match in_whole.get(txn) {
                    Some(TxnId(id)) => {
                        format!(
                            "<a class=\"txn\" href=\"#{part}t{id}\" data-t=\"{id}\">{name}</a> {verb}"
                        )
                    }
                    None => format!("{name} {verb}"),
                }
            }
        };
        let cell = |column: usize| match column == row.column {
            true => format!("<td>{what}</td>"),
            false => "<td></td>".to_owned(),
        };
        let cells: String = (0..heads.len()).map(cell).collect();
        writeln!(out, "<tr>{when}{cells}</tr>")?;
    }
    writeln!(out, "</table>\n<p class=\"hint\">{}</p>", SessionTable::NOTE)
}
