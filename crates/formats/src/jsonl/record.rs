//! What stands on one line: the header, or a transaction.

use std::collections::BTreeMap;

use isolario_model::{
    Clock, Initial, Meta, OpNotes, Outcome, TxnEnd, TxnSink, TxnStart, VersionRef,
};

use super::ops;
use super::value::{prepare, stamp, unsigned, value, version};
use crate::error::Fault;
use crate::notation::{Form, Item, Shape};
use crate::predicates::Predicates;

/// The version of the format that the header states.
pub(super) const VERSION: u64 = 2;

/// Whether the line is a header. What it is not, is a transaction.
pub(super) fn is_header(form: &Form<'_>) -> bool {
    form.children(0).step_by(2).any(|key| form.word(key) == Some("isolario"))
}

/// The version that a header states, if the line is one.
pub(super) fn version_of(form: &Form<'_>) -> Option<u64> {
    let mut nodes = form.children(0);
    nodes.find(|key| form.word(*key) == Some("isolario"))?;
    unsigned(form, nodes.next()?)
}

/// The header, and how many fields it has that mean nothing here.
pub(super) fn read_header(form: &mut Form<'_>) -> Result<(Meta, u64), Fault> {
    let ([version, initial, clock], unknown) = form.fields(0, &["isolario", "initial", "clock"])?;
    let fields = Fields { form };
    fields.decode("isolario", version, "1 or 2, the version of the format", |node| {
        unsigned(form, node).filter(|version| (1..=VERSION).contains(version))
    })?;
    let clock = fields.decode("clock", clock, r#""ns" or "order""#, |node| {
        match fields.form.word(node)? {
            "ns" => Some(Clock::Nanoseconds),
            "order" => Some(Clock::EventOrder),
            _ => None,
        }
    })?;
    let defaults = Meta::default();
    // Null is a value here, the default one; elsewhere it is as good as no field.
    let initial = match initial {
        Some(node) => read_initial(form, node)?,
        None => defaults.initial,
    };
    Ok((Meta { initial, clock: clock.unwrap_or(defaults.clock) }, unknown))
}

fn read_initial(form: &mut Form<'_>, node: usize) -> Result<Initial, Fault> {
    let mut children = form.children(node);
    let entry = match (form.shape(node), children.next(), children.next(), children.next()) {
        (Some(Shape::Map), Some(key), Some(value), None) => Some((key, value)),
        _ => None,
    };
    drop(children);
    if let Some((_, value)) = entry {
        prepare(form, value)?;
    }
    let tagged = entry.and_then(|(key, node)| {
        let value = value(form, node).to_owned();
        match form.word(key)? {
            "value" => Some(Initial::Value(value)),
            "unless_written" => Some(Initial::UnlessWritten(value)),
            _ => None,
        }
    });
    let initial = match (form.word(node), form.item(node)) {
        (Some("unwritten"), _) => Some(Initial::Unwritten),
        (Some("marked"), _) => Some(Initial::Marked),
        (Some("none"), _) => Some(Initial::None),
        (None, Item::Nil | Item::Bool(_) | Item::Int(_) | Item::Uint(_)) => {
            Some(Initial::Value(form.value(node).to_owned()))
        }
        _ => tagged,
    };
    initial.ok_or_else(|| {
        let forms = r#"a whole number, boolean or null, {"value": …}, {"unless_written": …}, "unwritten", "marked" or "none""#;
        Fields { form }.wrong("initial", node, forms)
    })
}

/// Reads a transaction and passes it on; gives the number of fields that mean nothing here.
pub(super) fn read_txn(
    form: &mut Form<'_>,
    line: u64,
    predicates: &mut Predicates,
    sink: &mut dyn TxnSink,
) -> Result<u64, Fault> {
    const NAMES: [&str; 12] = [
        "session",
        "ops",
        "id",
        "outcome",
        "start",
        "finish",
        "db_start",
        "db_commit",
        "snapshot",
        "error",
        "sql",
        "versions",
    ];
    let (nodes, unknown) = form.fields(0, &NAMES)?;
    let [
        session,
        ops,
        id,
        outcome,
        start,
        finish,
        db_start,
        db_commit,
        snapshot,
        error,
        sql,
        versions,
    ] = nodes;
    let at = form.at(0);
    let Some(session) = session else {
        return Err(Fault::malformed(at, "a field \"session\"", "none"));
    };
    prepare(form, session)?;
    let id = id.filter(|node| !form.is_nil(*node));
    id.map_or(Ok(()), |id| prepare(form, id))?;
    let Some(ops) = ops.filter(|ops| form.is_sequence(*ops)) else {
        let expected = "an array of operations as \"ops\"";
        return Err(match ops {
            Some(ops) => Fault::malformed(form.at(ops), expected, form.render(ops)),
            None => Fault::malformed(at, expected, "none"),
        });
    };
    let start_of = TxnStart {
        session: value(form, session),
        id: id.map(|id| value(form, id)),
        line: Some(line),
    };
    sink.begin(&start_of).map_err(Fault::refused(at))?;
    let has_notes = sql.is_some() || versions.is_some();
    let notes = if has_notes { Notes::read(form, ops, sql, versions)? } else { Notes::default() };
    let ops_end = form.skip(ops);
    let (mut op, mut index) = (ops + 1, 0);
    while op < ops_end {
        let next = form.skip(op);
        let sql = notes.sql.get(&index).map(|node| form.word(*node).unwrap_or("").to_owned());
        let op_notes =
            OpNotes { version: notes.versions.get(&index).copied(), sql: sql.as_deref() };
        ops::with_op(form, op, predicates, |op| sink.op_with(op, &op_notes))?
            .map_err(Fault::refused(form.at(op)))?;
        (op, index) = (next, index + 1);
    }
    let fields = Fields { form };
    let time = |name, node| fields.decode(name, node, "a whole number", |node| fields.signed(node));
    let stamp = |name, node| fields.decode(name, node, STAMP, |node| stamp(fields.form, node));
    let end = TxnEnd {
        outcome: fields.outcome(outcome)?,
        start: time("start", start)?,
        finish: time("finish", finish)?,
        db_start: stamp("db_start", db_start)?,
        db_commit: stamp("db_commit", db_commit)?,
        snapshot: fields.text("snapshot", snapshot)?,
        error: fields.text("error", error)?,
    };
    sink.end(&end).map_err(Fault::refused(at))?;
    Ok(unknown)
}

const STAMP: &str = "a whole number or [physical, logical]";

/// What is known of operations beside themselves, by their position.
#[derive(Default)]
struct Notes {
    sql: BTreeMap<usize, usize>,
    versions: BTreeMap<usize, VersionRef>,
}

impl Notes {
    fn read(
        form: &Form<'_>,
        ops: usize,
        sql: Option<usize>,
        versions: Option<usize>,
    ) -> Result<Notes, Fault> {
        let (fields, count) = (Fields { form }, form.children(ops).count());
        let mut notes = Notes::default();
        for (index, node) in fields.indexed("sql", sql, count)? {
            if form.text(node).is_none() {
                return Err(fields.wrong(&format!("sql[{index}]"), node, "a string"));
            }
            notes.sql.insert(index, node);
        }
        for (index, node) in fields.indexed("versions", versions, count)? {
            let forms = r#""initial", {"txn": …, "write": …} or {"write": …, "value": …}"#;
            let version = version(form, node)
                .ok_or_else(|| fields.wrong(&format!("versions[{index}]"), node, forms))?;
            notes.versions.insert(index, version);
        }
        Ok(notes)
    }
}

/// Decodes fields, which may be missing or null.
#[derive(Clone, Copy)]
struct Fields<'f, 'a> {
    form: &'f Form<'a>,
}

impl<'f> Fields<'f, '_> {
    #[inline]
    fn decode<T>(
        self,
        name: &str,
        node: Option<usize>,
        expected: &str,
        decode: impl FnOnce(usize) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        match node.filter(|node| !self.form.is_nil(*node)) {
            None => Ok(None),
            Some(node) => decode(node).map(Some).ok_or_else(|| self.wrong(name, node, expected)),
        }
    }

    #[cold]
    fn wrong(self, name: &str, node: usize, expected: &str) -> Fault {
        let expected = format!("{expected} as \"{name}\"");
        Fault::malformed(self.form.at(node), expected, self.form.render(node))
    }

    fn text(self, name: &str, node: Option<usize>) -> Result<Option<&'f str>, Fault> {
        self.decode(name, node, "a string", |node| self.form.text(node))
    }

    fn outcome(self, node: Option<usize>) -> Result<Outcome, Fault> {
        let words = r#""committed", "aborted" or "unknown""#;
        let outcome =
            self.decode("outcome", node, words, |node| match self.form.text(node)? {
                "committed" => Some(Outcome::Committed),
                "aborted" => Some(Outcome::Aborted),
                "unknown" => Some(Outcome::Unknown),
                _ => None,
            })?;
        Ok(outcome.unwrap_or(Outcome::Committed))
    }

    fn signed(self, node: usize) -> Option<i64> {
        match self.form.item(node) {
            Item::Int(number) => Some(number),
            _ => None,
        }
    }

    /// The entries of an object from positions of operations to something.
    fn indexed(
        self,
        name: &str,
        node: Option<usize>,
        ops: usize,
    ) -> Result<BTreeMap<usize, usize>, Fault> {
        let Some(node) = node.filter(|node| !self.form.is_nil(*node)) else {
            return Ok(BTreeMap::new());
        };
        if self.form.shape(node) != Some(Shape::Map) {
            return Err(self.wrong(name, node, "an object from positions of operations"));
        }
        let mut entries = BTreeMap::new();
        let mut children = self.form.children(node);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            let position = self.form.word(key).unwrap_or("");
            // One spelling each, so that no two fields can mean the same position.
            let index = position.parse().ok().filter(|index| usize::to_string(index) == position);
            let Some(index) = index.filter(|index| *index < ops) else {
                let expected = format!("positions of operations, below {ops}, in \"{name}\"");
                return Err(Fault::malformed(self.form.at(key), expected, position));
            };
            if entries.insert(index, value).is_some() {
                return Err(Fault::malformed(self.form.at(key), "each field once", position));
            }
        }
        Ok(entries)
    }
}
