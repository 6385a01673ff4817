//! Several histories in one page: a table of them, which anomalies each has, and what is behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use isolario_model::{AnomalyKind, RunRecord};

use super::embed::PAGE;
use super::{class_of, head, lattice, part, scripts, summary};
use crate::marks::Part;
use crate::names::{counted, grouped};
use crate::report::Report;
use crate::sentences::headline;
use crate::xml::Escaped;

/// A page that grows by a history at a time and can be written after each. What is behind the table is what
/// a page on one history has; all of them together are about as large as one such page may become.
#[derive(Debug, Default)]
pub struct ReportCollection {
    /// How many histories are expected.
    expected: usize,
    rows: Vec<Row>,
    /// What is behind the table.
    body: Vec<u8>,
}

#[derive(Debug)]
struct Row {
    name: String,
    /// How the answer looks, and in words.
    class: &'static str,
    verdict: String,
    transactions: Option<u64>,
    /// How many findings there are, and how many go by each name: some have several.
    anomalies: u64,
    kinds: BTreeMap<AnomalyKind, u64>,
}

impl ReportCollection {
    /// A page for so many histories.
    pub fn for_histories(expected: usize) -> ReportCollection {
        ReportCollection { expected, ..ReportCollection::default() }
    }

    /// Adds the report on a history, and on the run that recorded it where there was one.
    pub fn add(&mut self, report: &Report<'_>, run: Option<&RunRecord>) -> io::Result<()> {
        let (class, verdict) = match run {
            Some(run) => {
                let (text, judgement) = headline(report, run);
                (class_of(judgement), text)
            }
            None => summary::verdict(report),
        };
        let found = report.found();
        let mut kinds: BTreeMap<AnomalyKind, u64> = BTreeMap::new();
        for finding in &found.findings {
            let names: BTreeSet<_> = finding.anomalies().map(|anomaly| anomaly.kind).collect();
            names.into_iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
        }
        self.rows.push(Row {
            name: report.name.to_owned(),
            class,
            verdict,
            transactions: Some(report.size.transactions),
            anomalies: found.total() as u64,
            kinds,
        });
        self.open(report.name, class)?;
        let (number, room) = (self.rows.len() as u32, PAGE / self.expected.max(self.rows.len()));
        part(report, run, Part(number), room, &mut self.body)?;
        writeln!(self.body, "</details>")
    }

    /// Adds that there is no answer about a history, and why.
    pub fn add_failure(&mut self, name: &str, error: &str) -> io::Result<()> {
        self.rows.push(Row {
            name: name.to_owned(),
            class: "open",
            verdict: "Not checked.".to_owned(),
            transactions: None,
            anomalies: 0,
            kinds: BTreeMap::new(),
        });
        self.open(name, "open")?;
        writeln!(self.body, "<p>{}</p>\n</details>", Escaped(error))
    }

    fn open(&mut self, name: &str, class: &str) -> io::Result<()> {
        let number = self.rows.len();
        writeln!(
            self.body,
            "<details class=\"drill part\" id=\"h{number}\" data-part=\"h{number}-\"><summary><h2 \
             class=\"{class}\">{number}. <bdi>{}</bdi></h2></summary>",
            Escaped(name)
        )
    }

    /// Writes the page with the histories so far.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let script = scripts::script();
        let heading = self.heading();
        head(&heading, &scripts::policy(&script), out)?;
        writeln!(
            out,
            "<header>\n<p class=\"brand\">Isolario report</p>\n<h1>{}</h1>\n<nav aria-label=\"Sections\">\
             <a href=\"#index\">Histories</a> <a href=\"#matrix\">Anomalies</a> \
             <a href=\"#drill\">One by one</a>\n<button type=\"button\" id=\"theme\" hidden>Colours: as \
             the system has it</button></nav>\n</header>\n<main>",
            Escaped(&heading)
        )?;
        self.index(out)?;
        self.matrix(out)?;
        writeln!(
            out,
            "<section id=\"drill\" aria-labelledby=\"drill-title\">\n<h2 id=\"drill-title\">One by one\
             </h2>"
        )?;
        out.write_all(&self.body)?;
        writeln!(
            out,
            "</section>\n</main>\n<script type=\"module\">{script}</script>\n</body>\n</html>"
        )
    }

    fn heading(&self) -> String {
        let of = |class: &str| self.rows.iter().filter(|row| row.class == class).count() as u64;
        let all = counted(self.rows.len() as u64, "history");
        let parts = [("violated", "violated"), ("satisfied", "satisfied"), ("open", "not decided")];
        let parts = parts.map(|(class, word)| (of(class), word));
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", grouped(*count)))
            .collect();
        format!("{all}: {}", parts.join(", "))
    }

    fn index(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "<section id=\"index\" aria-labelledby=\"index-title\">\n<h2 id=\"index-title\">Histories\
             </h2>\n<table class=\"index\">\n<caption>What was checked, and what it came to</caption>\n\
             <tr><th scope=\"col\">#</th><th scope=\"col\">History</th><th scope=\"col\">Answer</th>\
             <th scope=\"col\">Transactions</th><th scope=\"col\">Anomalies</th></tr>"
        )?;
        for (number, row) in (1..).zip(&self.rows) {
            let class = if row.class == "open" { "undecided" } else { row.class };
            writeln!(
                out,
                "<tr><td>{number}</td><td><a href=\"#h{number}\"><bdi>{}</bdi></a></td><td \
                 class=\"{class}\"><span aria-hidden=\"true\">{}</span> {}</td><td \
                 class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
                Escaped(&row.name),
                lattice::mark(class),
                Escaped(&row.verdict),
                row.transactions.map_or("–".to_owned(), grouped),
                grouped(row.anomalies)
            )?;
        }
        writeln!(out, "</table>\n</section>")
    }

    fn matrix(&self, out: &mut dyn Write) -> io::Result<()> {
        let kinds: BTreeSet<AnomalyKind> =
            self.rows.iter().flat_map(|row| row.kinds.keys().copied()).collect();
        writeln!(
            out,
            "<section id=\"matrix\" aria-labelledby=\"matrix-title\">\n<h2 id=\"matrix-title\">Anomalies \
             by history</h2>"
        )?;
        if kinds.is_empty() {
            return writeln!(out, "<p>None.</p>\n</section>");
        }
        let titles = kinds.iter().map(|kind| format!("<th scope=\"col\">{}</th>", kind.title()));
        writeln!(
            out,
            "<div class=\"matrix\" tabindex=\"0\" role=\"region\" aria-label=\"How often each anomaly was found\">\n\
             <table>\n<caption>How often each was found</caption>\n<tr><th scope=\"col\">History</th>{}\
             </tr>",
            titles.collect::<String>()
        )?;
        for (number, row) in (1..).zip(&self.rows) {
            let cell = |kind: &AnomalyKind| match row.kinds.get(kind) {
                Some(count) => format!("<td class=\"violated\">{}</td>", grouped(*count)),
                None => "<td>·</td>".to_owned(),
            };
            writeln!(
                out,
                "<tr><th scope=\"row\"><a href=\"#h{number}\"><bdi>{}</bdi></a></th>{}</tr>",
                Escaped(&row.name),
                kinds.iter().map(cell).collect::<String>()
            )?;
        }
        writeln!(out, "</table>\n</div>\n</section>")
    }
}
