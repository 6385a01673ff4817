//! What rounds begin with, where it is not chance alone: scripts that were found elsewhere, and the shapes
//! of anomalies.

use std::fs;
use std::io;
use std::path::Path;

use crate::script::{Script as Probe, ScriptAction};
use isolario_sql::{Part, Product, Schema, Script, Shape, StatementKind, kind_of};
use isolario_workload::Rng;

use super::settings::Settings;
use crate::probe::shipped;
use crate::run::RunError;

/// Scripts and shapes.
#[derive(Default)]
pub(super) struct Models {
    templates: Vec<Script>,
    shapes: Vec<Shape>,
}

/// What a round is made of.
pub(super) enum Plan<'m> {
    /// A script, as it stands.
    Script(&'m Script),
    /// Random transactions, some of them like these.
    Random { schema: Schema, models: Vec<Vec<String>> },
}

impl Models {
    /// What the settings ask for.
    pub(super) fn of(settings: &Settings) -> Result<Models, RunError> {
        let templates = settings.templates.as_deref().map(templates).transpose()?;
        let shapes = settings.aim.as_deref().map(shapes).transpose()?;
        Ok(Models { templates: templates.unwrap_or_default(), shapes: shapes.unwrap_or_default() })
    }

    /// What a round is made of, and at which of so many isolation levels. First, every script is
    /// replayed as it stands at every level. After that, every other round has the schema of one, and
    /// mostly its transactions.
    pub(super) fn plan(
        &self,
        settings: &Settings,
        product: &Product,
        round: u64,
        isolations: u64,
        rng: &mut Rng,
    ) -> (usize, Plan<'_>) {
        let any = rng.below(isolations) as usize;
        let number = usize::try_from(round / isolations.max(1)).unwrap_or(usize::MAX);
        if let Some(script) = self.templates.get(number) {
            return ((round % isolations.max(1)) as usize, Plan::Script(script));
        }
        if !self.templates.is_empty() && round % 2 == 1 {
            let script = &self.templates[rng.below(self.templates.len() as u64) as usize];
            if !script.schema.is_writable() {
                return (any, Plan::Script(script));
            }
            let (schema, models) = (script.schema.clone(), script.models());
            return (any, Plan::Random { schema, models });
        }
        let schema = Schema::random(settings.seed, round, &settings.bounds);
        let models = match self.shapes.is_empty() {
            true => Vec::new(),
            false => {
                let shape = &self.shapes[rng.below(self.shapes.len() as u64) as usize];
                shape.models(&schema, product, settings.seed, round)
            }
        };
        (any, Plan::Random { schema, models })
    }
}

/// The scripts of a directory: its files that end in `.sql`, by their names.
fn templates(directory: &Path) -> Result<Vec<Script>, RunError> {
    let unread = |path: &Path, error| RunError::Read { path: path.to_owned(), error };
    let entries = fs::read_dir(directory).map_err(|error| unread(directory, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unread(directory, error))?.path();
        paths.extend(Some(path).filter(|path| path.extension().is_some_and(|e| e == "sql")));
    }
    paths.sort();
    if paths.is_empty() {
        return Err(unread(directory, io::Error::other("there is no script in it, called *.sql")));
    }
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).map_err(|error| unread(path, error))?;
        Script::read_any(&text).map_err(|error| unread(path, io::Error::other(error.to_string())))
    };
    paths.iter().map(read).collect()
}

/// The shapes of the probes that an aim means: by their own name, or by that of their anomaly.
fn shapes(aim: &str) -> Result<Vec<Shape>, RunError> {
    let plain = |name: &str| name.replace(['-', '_', ' '], "").to_lowercase();
    let is_meant = |probe: &Probe| {
        plain(&probe.name) == plain(aim)
            || probe.anomaly.is_some_and(|kind| plain(kind.name()) == plain(aim))
    };
    let meant: Vec<Shape> = shipped().iter().filter(|probe| is_meant(probe)).map(shape).collect();
    match meant.is_empty() {
        true => Err(RunError::NoAim { name: aim.to_owned() }),
        false => Ok(meant),
    }
}

/// The transactions of a probe.
fn shape(probe: &Probe) -> Shape {
    let mut txns: Vec<(usize, Vec<Part>)> = Vec::new();
    let mut conditions: Vec<&str> = Vec::new();
    for step in &probe.steps {
        if matches!(probe.sessions[step.session].as_str(), "setup" | "finally") {
            continue;
        }
        if matches!(step.action, ScriptAction::Begin { .. }) {
            txns.push((step.session, Vec::new()));
        }
        let part = match &step.action {
            ScriptAction::Read(key) | ScriptAction::ReadList(key) => Some(Part::Read(*key)),
            ScriptAction::Write(key, _) | ScriptAction::Append(key, _) => Some(Part::Write(*key)),
            ScriptAction::Sql(sql) => statement(sql, &mut conditions),
            _ => None,
        };
        let own = txns.iter_mut().rfind(|(session, _)| *session == step.session);
        if let Some((_, parts)) = own {
            parts.extend(part);
        }
    }
    let txns = txns.into_iter().map(|(_, parts)| parts);
    Shape { txns: txns.filter(|parts| !parts.is_empty()).collect() }
}

/// What a statement does, and to which row: the same condition is the same row.
fn statement<'p>(sql: &'p str, conditions: &mut Vec<&'p str>) -> Option<Part> {
    let mut row = || {
        let condition = sql.split_once("WHERE").map_or("", |(_, condition)| condition);
        conditions.iter().position(|other| *other == condition).unwrap_or_else(|| {
            conditions.push(condition);
            conditions.len() - 1
        })
    };
    match kind_of(&Product::POSTGRES, sql) {
        StatementKind::Select => Some(Part::ReadRange),
        StatementKind::SelectForUpdate | StatementKind::SelectForShare => Some(Part::Read(row())),
        StatementKind::Insert | StatementKind::Upsert => Some(Part::Insert),
        StatementKind::Update => Some(Part::Write(row())),
        StatementKind::Delete => Some(Part::Delete(row())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_has_a_shape() {
        for probe in shipped() {
            let shape = shape(&probe);
            assert!(!shape.txns.is_empty(), "{}", probe.name);
        }
        let skew = shapes("Write-Skew").unwrap();
        assert!(skew.contains(&Shape {
            txns: vec![
                vec![Part::Read(0), Part::Read(1), Part::Write(0)],
                vec![Part::Read(0), Part::Read(1), Part::Write(1)],
            ]
        }));
        let phantom =
            Shape { txns: vec![vec![Part::ReadRange, Part::ReadRange], vec![Part::Insert]] };
        assert!(shapes("phantom").unwrap().contains(&phantom));
        assert!(shapes("chaos").is_err());
    }
}
