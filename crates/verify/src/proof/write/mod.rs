//! Writing a proof.

mod evidence;

use std::io;

use isolario_model::{
    Findings, History, Inapplicable, LevelResult, OpId, Point, TxnId, Verdict, Witness,
};
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};

use crate::Options;
use crate::proof::names::{Named, Names, one_field};
use crate::proof::{Digest, SCHEMA};

/// How many transactions of an order stand on one line: enough to cost little, few enough to look
/// at.
const PER_LINE: usize = 100;

/// Writes the proof of some results of one history, as lines of JSON. `name` is what the history
/// is called: information only, since the digest tells which one it is.
///
/// Fails where the results name what the history does not have, and where reasons lie within each
/// other deeper than [`read`](crate::proof::read) would take.
pub fn write(
    history: &History,
    results: &[LevelResult],
    options: &Options,
    name: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let header = Header {
        schema: SCHEMA,
        tool: concat!("isolario ", env!("CARGO_PKG_VERSION")),
        history: name,
        digest: Digest::of(history).to_string(),
        flags: Flags::of(options),
        levels: results.iter().map(|result| result.level.name()).collect(),
    };
    write_line(&header, out)?;
    let names = Names::new(history);
    results.iter().try_for_each(|result| write_section(&names, result, out))
}

#[derive(Serialize)]
struct Header<'a> {
    schema: &'static str,
    tool: &'static str,
    history: &'a str,
    digest: String,
    flags: Flags,
    levels: Vec<&'static str>,
}

#[derive(Serialize)]
struct Flags {
    session_order: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_skew: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    trust_version_order: bool,
}

impl Flags {
    fn of(options: &Options) -> Flags {
        let Options { session_order, clock_skew, trust_version_order } = *options;
        let clock_skew = Some(clock_skew).filter(|skew| *skew > 0);
        Flags { session_order, clock_skew, trust_version_order }
    }
}

fn write_line(line: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// The line of a level, and the lines of its evidence.
fn write_section(
    names: &Names<'_>,
    result: &LevelResult,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write_line(&names.named(result), out)?;
    match &result.verdict {
        Verdict::Satisfied(Witness::CommitOrder(order)) => {
            order.chunks(PER_LINE).try_for_each(|part| write_line(&names.named(part), out))
        }
        Verdict::Satisfied(Witness::Points(points)) => {
            points.chunks(PER_LINE).try_for_each(|part| write_line(&names.named(part), out))
        }
        Verdict::Satisfied(Witness::Linearization(ops)) => {
            let line = |part| Linearization { ops: names.named(part) };
            ops.chunks(PER_LINE).try_for_each(|part| write_line(&line(part), out))
        }
        Verdict::Violated(findings) => {
            let mut anomalies = findings.anomalies.iter();
            anomalies.try_for_each(|anomaly| write_line(&names.named(anomaly), out))
        }
        _ => Ok(()),
    }
}

impl Serialize for Named<'_, &[TxnId]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let order: Vec<_> = self.item.iter().map(|txn| self.part(*txn)).collect();
        one_field(serializer, "order", order)
    }
}

#[derive(Serialize)]
struct Linearization<'n> {
    ops: Named<'n, &'n [OpId]>,
}

impl Serialize for Named<'_, &[OpId]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.item.iter().map(|op| self.part(*op)))
    }
}

impl Serialize for Named<'_, &[Point]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let points: Vec<_> = self.item.iter().map(|point| self.part(*point)).collect();
        one_field(serializer, "points", points)
    }
}

impl Serialize for Named<'_, Point> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.item {
            Point::Start(txn) => one_field(serializer, "start", self.part(txn)),
            Point::Commit(txn) => one_field(serializer, "commit", self.part(txn)),
        }
    }
}

impl Serialize for Named<'_, &LevelResult> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LevelResult { level, engine, verdict } = self.item;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("level", level.name())?;
        map.serialize_entry("checker", engine.name())?;
        map.serialize_entry("verdict", verdict.name())?;
        match verdict {
            Verdict::Satisfied(witness) => put_witness(witness, &mut map)?,
            Verdict::Violated(findings) => put_findings(findings, &mut map)?,
            Verdict::Undecided { reason } => map.serialize_entry("reason", reason)?,
            Verdict::NotApplicable(why) => self.part(why).put(&mut map)?,
            _ => return Err(S::Error::custom("this verdict has no form in a proof")),
        }
        map.end()
    }
}

fn put_witness<M: SerializeMap>(witness: &Witness, map: &mut M) -> Result<(), M::Error> {
    match witness {
        Witness::Empty => map.serialize_entry("witness", "empty"),
        Witness::CommitOrder(order) => {
            map.serialize_entry("witness", "commit-order")?;
            map.serialize_entry("count", &order.len())
        }
        Witness::Points(points) => {
            map.serialize_entry("witness", "points")?;
            map.serialize_entry("count", &points.len())
        }
        Witness::Linearization(ops) => {
            map.serialize_entry("witness", "linearization")?;
            map.serialize_entry("count", &ops.len())
        }
        _ => Err(M::Error::custom("this witness has no form in a proof")),
    }
}

fn put_findings<M: SerializeMap>(findings: &Findings, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("count", &findings.anomalies.len())?;
    map.serialize_entry("total", &findings.total)?;
    map.serialize_entry("exact", &findings.exact)
}

impl Named<'_, &Inapplicable> {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self.item {
            Inapplicable::AmbiguousRead { read, first, second, total } => {
                map.serialize_entry("because", "ambiguous-read")?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("first", &self.part(*first))?;
                map.serialize_entry("second", &self.part(*second))?;
                map.serialize_entry("total", total)
            }
            Inapplicable::Operation { op } => {
                map.serialize_entry("because", "operation")?;
                map.serialize_entry("op", &self.part(*op))
            }
            Inapplicable::SeveralOperations { txn } => {
                map.serialize_entry("because", "several-operations")?;
                map.serialize_entry("txn", &self.part(*txn))
            }
            Inapplicable::NoTimes => map.serialize_entry("because", "no-times"),
            Inapplicable::NoVersionOrder => map.serialize_entry("because", "no-version-order"),
            Inapplicable::Other(reason) => {
                map.serialize_entry("because", "other")?;
                map.serialize_entry("reason", reason)
            }
            _ => Err(M::Error::custom("this reason has no form in a proof")),
        }
    }
}
