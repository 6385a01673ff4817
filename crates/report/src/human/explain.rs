//! Pages on levels and anomalies, for people.

use std::io;

use isolario_model::{AnomalyKind, Level};

use super::{Human, Palette};
use crate::explain::{Page, Topic, forbidding, newly_forbidden};
use crate::names::listed;
use crate::sentences::{applies_to, other_names};
use crate::wrap::{WIDTH, wrap};

impl Human {
    /// Writes the page of a level or an anomaly.
    pub fn explain(&self, topic: Topic, out: &mut dyn io::Write) -> io::Result<()> {
        let palette = Palette::of(self.style, self.width());
        let page = topic.page();
        let what = match topic {
            Topic::Level(_) => "an isolation level",
            Topic::Anomaly(kind) => kind.title(),
            Topic::Edge(_) => "an arrow from one transaction to another",
            Topic::LostCommit => "an acknowledged transaction that is gone",
        };
        writeln!(out, "{}: {what}\n", palette.heading(topic.name()))?;
        paragraphs(&page.meaning, out)?;
        match topic {
            Topic::Level(level) => level_facts(level, out)?,
            Topic::Anomaly(kind) => anomaly_facts(kind, out)?,
            Topic::LostCommit => {}
            Topic::Edge(_) => return Ok(()),
        }
        example(topic, &page, &palette, out)?;
        seen(&page, &palette, out)?;
        writeln!(out, "\n{}\n", palette.heading("What to look at"))?;
        paragraphs(&page.advice, out)
    }

    /// Writes the names of all levels, anomalies and other findings, with what each is in a line.
    pub fn explain_all(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let palette = Palette::of(self.style, self.width());
        writeln!(out, "{}\n", palette.heading("Levels, weaker ones first"))?;
        self.candidates(Level::all().map(Topic::Level), out)?;
        writeln!(out, "\n{}\n", palette.heading("Anomalies"))?;
        self.candidates(AnomalyKind::all().map(Topic::Anomaly), out)?;
        writeln!(out, "\n{}\n", palette.heading("After faults, at any level"))?;
        self.candidates([Topic::LostCommit], out)
    }

    /// Writes what a name may mean.
    pub fn candidates(
        &self,
        topics: impl IntoIterator<Item = Topic>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        for topic in topics {
            let others = match topic {
                Topic::Level(level) => level.aliases().join(", "),
                Topic::Anomaly(kind) => other_names(kind).join(", "),
                Topic::Edge(_) | Topic::LostCommit => String::new(),
            };
            let others = if others.is_empty() { others } else { format!(" ({others})") };
            writeln!(out, "{}", wrap(&format!("{}{others}", topic.name()), WIDTH, "  ", "    "))?;
            writeln!(out, "{}", wrap(topic.gist(), WIDTH, "    ", "    "))?;
        }
        Ok(())
    }
}

fn paragraphs(paragraphs: &[String], out: &mut dyn io::Write) -> io::Result<()> {
    for (index, paragraph) in paragraphs.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", wrap(paragraph, WIDTH, "  ", "  "))?;
    }
    Ok(())
}

/// The facts of the tables, set off from the text.
fn facts(facts: &[(&str, String)], out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out)?;
    for (label, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        let first = format!("  {label:<14}");
        writeln!(out, "{}", wrap(text, WIDTH, &first, &" ".repeat(first.len())))?;
    }
    Ok(())
}

fn level_facts(level: Level, out: &mut dyn io::Write) -> io::Result<()> {
    let names = |levels: &[Level]| -> Vec<_> {
        levels.iter().map(|level| level.name().to_owned()).collect()
    };
    let mut forbids: Vec<_> =
        newly_forbidden(level).iter().map(|kind| kind.name().to_owned()).collect();
    if !level.weaker().is_empty() {
        let weaker = listed(&names(level.weaker()));
        let verb = if level.weaker().len() == 1 { "forbids" } else { "forbid" };
        forbids.push(format!("what {weaker} {verb}"));
    }
    facts(
        &[
            ("promises", level.promise().to_owned()),
            ("forbids", listed(&forbids)),
            ("implies", listed(&names(level.weaker()))),
            ("applies to", applies_to(level)),
            ("also called", level.aliases().join(", ")),
        ],
        out,
    )
}

fn anomaly_facts(kind: AnomalyKind, out: &mut dyn io::Write) -> io::Result<()> {
    let forbidding = forbidding(kind);
    // Of transactions, linearizability says nothing: what it does not forbid, it does not allow.
    let allowing = Level::all()
        .filter(|level| !forbidding.contains(level) && *level != Level::Linearizable)
        .collect::<Vec<_>>();
    let names = |levels: &[Level]| -> String {
        listed(&levels.iter().map(|level| level.name().to_owned()).collect::<Vec<_>>())
    };
    facts(
        &[
            ("forbidden by", names(&forbidding)),
            ("allowed by", names(&allowing)),
            ("also called", called(kind)),
        ],
        out,
    )
}

/// Everybody's names for an anomaly, with whose they are.
fn called(kind: AnomalyKind) -> String {
    let names = kind.names();
    let own = |name: Option<&str>| name.map(str::to_owned);
    let mut called: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, who) in [
        (kind.pattern(), "Plume"),
        (names.mtc.map(String::from), "MTC"),
        (own(names.adya), "Adya"),
        (own(names.elle), "Elle"),
        (own(names.isorel), "IsoRel"),
    ] {
        let Some(name) = name else { continue };
        match called.iter_mut().find(|(known, _)| *known == name) {
            Some((_, whose)) => whose.push(who),
            None => called.push((name, vec![who])),
        }
    }
    let shown = called.iter().map(|(name, whose)| format!("{name} ({})", whose.join(", ")));
    shown.collect::<Vec<_>>().join(", ")
}

fn example(
    topic: Topic,
    page: &Page,
    palette: &Palette,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let title = match topic {
        Topic::Level(level) if level.weaker().is_empty() => "A history that it forbids",
        Topic::Level(_) => "A history that it forbids, and that weaker levels allow",
        _ => "A history that shows it",
    };
    writeln!(out, "\n{}\n", palette.heading(title))?;
    for line in page.history.lines() {
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    Ok(())
}

fn seen(page: &Page, palette: &Palette, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "\n{}\n", palette.heading("Seen in real databases"))?;
    if page.seen.is_empty() {
        let none = "The papers that Isolario builds on report no case of their own.";
        return writeln!(out, "{}", wrap(none, WIDTH, "  ", "  "));
    }
    for item in &page.seen {
        writeln!(out, "{}", wrap(item, WIDTH, "  - ", "    "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
        text
    }

    #[test]
    fn pages_of_all_levels_and_anomalies() {
        for topic in Topic::all() {
            let page = shown(|out| Human::default().explain(topic, out));
            insta::assert_snapshot!(format!("page_{}", topic.name()), page);
        }
    }

    #[test]
    fn all_names_with_a_line_each() {
        insta::assert_snapshot!(shown(|out| Human::default().explain_all(out)));
    }
}
