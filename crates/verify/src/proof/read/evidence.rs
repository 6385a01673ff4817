//! Anomalies, edges and reasons on their way in.

use isolario_model::{
    Anomaly, AnomalyKind, Edge, EvaluatedVersion, Evidence, ExpectedVersion, KeyAssumption, Level,
    Reason, Stamp, VersionOrder,
};

use crate::proof::read::node::{Fields, Node};
use crate::proof::read::references::References;
use crate::proof::{MAX_DEPTH, ProofError};

/// Reads the evidence of violations.
pub(super) struct EvidenceReader<'r, 'h> {
    pub(super) refer: &'r References<'h>,
}

impl EvidenceReader<'_, '_> {
    pub(super) fn anomaly(&self, mut fields: Fields<'_>) -> Result<Anomaly, ProofError> {
        let kind = fields.take("anomaly")?.one_of("the name of an anomaly", |name| {
            AnomalyKind::all().find(|kind| kind.name() == name)
        })?;
        let form = fields.take("evidence")?;
        let evidence = match form.string()?.as_str() {
            "read" => Evidence::Read {
                read: self.refer.op(fields.take("read")?)?,
                saw: self.refer.optional_op(fields.take("saw")?)?,
                instead: self.refer.optional_op(fields.take("instead")?)?,
            },
            "row" => Evidence::Row {
                key: self.refer.key(fields.take("key")?)?,
                read: self.refer.op(fields.take("read")?)?,
                saw: self.refer.optional_op(fields.take("saw")?)?,
                instead: self.refer.optional_op(fields.take("instead")?)?,
            },
            "reads" => Evidence::Reads {
                key: self.refer.key(fields.take("key")?)?,
                first: self.refer.op(fields.take("first")?)?,
                second: self.refer.op(fields.take("second")?)?,
                edges: self.edges(fields.take("edges")?, 0)?,
            },
            "cycle" => Evidence::Cycle { edges: self.edges(fields.take("edges")?, 0)? },
            "cases" => {
                let cycles = fields.take("cycles")?.array()?;
                Evidence::Cases {
                    cycles: cycles.map(|cycle| self.edges(cycle, 0)).collect::<Result<_, _>>()?,
                }
            }
            "operations" => {
                let key = self.refer.key(fields.take("key")?)?;
                let ops = fields.take("ops")?.array()?;
                let ops = ops.map(|op| self.refer.op(op)).collect::<Result<_, _>>()?;
                Evidence::Operations { key, ops }
            }
            "unexpected" => self.unexpected(&mut fields)?,
            "concurrent" => Evidence::Concurrent {
                key: self.refer.key(fields.take("key")?)?,
                first: self.refer.op(fields.take("first")?)?,
                second: self.refer.op(fields.take("second")?)?,
            },
            _ => {
                return Err(form.expected(
                    "read, row, reads, cycle, cases, operations, unexpected or concurrent",
                ));
            }
        };
        fields.finish()?;
        Ok(Anomaly::new(kind, evidence))
    }

    fn unexpected(&self, fields: &mut Fields<'_>) -> Result<Evidence, ProofError> {
        let op = self.refer.op(fields.take("op")?)?;
        let mut expected = Vec::new();
        for node in fields.take("expected")?.array()? {
            let mut version = node.object()?;
            let key = self.refer.key(version.take("key")?)?;
            let write = self.refer.optional_op(version.take("write")?)?;
            version.finish()?;
            expected.push(ExpectedVersion { key, write });
        }
        let result = fields.optional("result").map(Node::value).transpose()?;
        Ok(Evidence::Unexpected { op, expected, result })
    }

    /// Edges that lie within so many reasons.
    fn edges(&self, node: Node<'_>, depth: usize) -> Result<Vec<Edge>, ProofError> {
        if depth > MAX_DEPTH {
            let expected = format!("at most {MAX_DEPTH} reasons within each other");
            return Err(node.expected(expected));
        }
        node.array()?.map(|edge| self.edge(edge, depth)).collect()
    }

    fn edge(&self, node: Node<'_>, depth: usize) -> Result<Edge, ProofError> {
        let mut fields = node.object()?;
        let from = self.refer.txn(fields.take("from")?)?;
        let to = self.refer.txn(fields.take("to")?)?;
        let reason = self.reason(&mut fields, depth)?;
        fields.finish()?;
        Ok(Edge { from, to, reason })
    }

    fn reason(&self, fields: &mut Fields<'_>, depth: usize) -> Result<Reason, ProofError> {
        let why = fields.take("why")?;
        Ok(match why.string()?.as_str() {
            "initial" => Reason::Initial,
            "session" => Reason::Session,
            "real-time" => Reason::RealTime {
                finish: fields.take("finish")?.signed()?,
                start: fields.take("start")?.signed()?,
            },
            "read" => Reason::Read {
                key: self.refer.key(fields.take("key")?)?,
                read: self.refer.op(fields.take("read")?)?,
                write: self.refer.optional_op(fields.take("write")?)?,
            },
            "overwrite" => Reason::Overwrite {
                key: self.refer.key(fields.take("key")?)?,
                known: self.version_order(fields.take("known")?, depth)?,
            },
            "anti-dependency" => Reason::AntiDependency {
                key: self.refer.key(fields.take("key")?)?,
                read: self.refer.op(fields.take("read")?)?,
                writer: self.refer.txn(fields.take("writer")?)?,
                known: self.version_order(fields.take("known")?, depth)?,
            },
            "visible" => Reason::Visible {
                rule: level(fields.take("rule")?)?,
                key: self.refer.key(fields.take("key")?)?,
                reader: self.refer.txn(fields.take("reader")?)?,
                read: self.refer.op(fields.take("read")?)?,
                path: self.edges(fields.take("path")?, depth + 1)?,
            },
            "predicate-anti-dependency" => Reason::PredicateAntiDependency {
                read: self.refer.op(fields.take("read")?)?,
                key: self.refer.key(fields.take("key")?)?,
                write: self.refer.op(fields.take("write")?)?,
                evaluated: self.met(fields, depth)?,
            },
            "predicate-read" => Reason::PredicateRead {
                read: self.refer.op(fields.take("read")?)?,
                key: self.refer.key(fields.take("key")?)?,
                write: self.refer.op(fields.take("write")?)?,
            },
            "start-dependency" => Reason::StartDependency {
                op: self.refer.op(fields.take("op")?)?,
                snapshot: stamp(fields.take("snapshot")?)?,
            },
            "stated" => Reason::Stated { at: fields.take("at")?.unsigned()? },
            "refuted" => Reason::Refuted { cycle: self.edges(fields.take("cycle")?, depth + 1)? },
            _ => return Err(why.expected("why the one comes before the other")),
        })
    }

    /// The version that a predicate met, where it is stated.
    fn met(
        &self,
        fields: &mut Fields<'_>,
        depth: usize,
    ) -> Result<Option<EvaluatedVersion>, ProofError> {
        let Some(writer) = fields.optional("writer") else { return Ok(None) };
        let writer = self.refer.txn(writer)?;
        let known = self.version_order(fields.take("known")?, depth)?;
        Ok(Some(EvaluatedVersion { writer, known }))
    }

    fn version_order(&self, node: Node<'_>, depth: usize) -> Result<VersionOrder, ProofError> {
        let mut fields = node.object()?;
        let by = fields.take("by")?;
        let known = match by.string()?.as_str() {
            "initial" => VersionOrder::Initial,
            "read-modify-write" => {
                VersionOrder::ReadModifyWrite { read: self.refer.op(fields.take("read")?)? }
            }
            "list" => VersionOrder::List { read: self.refer.op(fields.take("read")?)? },
            "not-shown" => {
                VersionOrder::AppendedLater { read: self.refer.op(fields.take("read")?)? }
            }
            "stated" => VersionOrder::Stated { at: fields.take("at")?.unsigned()? },
            "refuted" => {
                VersionOrder::Refuted { cycle: self.edges(fields.take("cycle")?, depth + 1)? }
            }
            "assumed" => VersionOrder::Assumed,
            "path" => VersionOrder::Path { edges: self.edges(fields.take("edges")?, depth + 1)? },
            name => match KeyAssumption::by_name(name) {
                Some(by) => VersionOrder::Guaranteed {
                    by,
                    first: self.refer.op(fields.take("first")?)?,
                    second: self.refer.op(fields.take("second")?)?,
                },
                None => return Err(by.expected("how the order of the versions is known")),
            },
        };
        fields.finish()?;
        Ok(known)
    }
}

/// A moment of the database's clock.
fn stamp(node: Node<'_>) -> Result<Stamp, ProofError> {
    let mut parts = node.array()?;
    match (parts.next(), parts.next(), parts.next()) {
        (Some(physical), Some(logical), None) => {
            Ok(Stamp { physical: physical.unsigned()?, logical: logical.unsigned()? })
        }
        _ => Err(node.expected("a point in time, as two numbers")),
    }
}

/// A level by its full name.
pub(super) fn level(node: Node<'_>) -> Result<Level, ProofError> {
    node.one_of("the name of a level", |name| Level::all().find(|level| level.name() == name))
}
