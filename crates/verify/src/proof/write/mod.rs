//! Writing a proof.

mod evidence;
mod of_whole;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use isolario_model::{
    Anomaly, Findings, History, Inapplicable, KeyAssumption, LevelResult, Limit, OpId, Point,
    ReadSource, TxnId, Verdict, Witness,
};
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};

pub use of_whole::{OrderPoint, StreamedOrder, WholeHistory, write_of_whole};

use crate::proof::names::{Named, Names, one_field};
use crate::proof::{Digest, SCHEMA};
use crate::{LostCommit, Outage, VerifyOptions};

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
    options: &VerifyOptions,
    name: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write_with_lost(history, results, &[], &[], options, name, out)
}

/// As [`write()`], with transactions that were lost when the server was down.
pub fn write_with_lost(
    history: &History,
    results: &[LevelResult],
    outages: &[Outage],
    lost: &[LostCommit],
    options: &VerifyOptions,
    name: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let anomalies = Anomalies::new(results);
    let outages = if lost.is_empty() { &[] } else { outages };
    let mut header = Header::new(Digest::of(history), results, &anomalies, options, name);
    header.outages = outages.iter().map(|outage| [outage.begun, outage.over]).collect();
    header.lost = lost.len();
    write_line(&header, out)?;
    let names = Names::new(history);
    anomalies.list.iter().try_for_each(|anomaly| write_line(&names.named(*anomaly), out))?;
    results.iter().try_for_each(|result| write_section(&names, &anomalies, result, out))?;
    lost.iter().try_for_each(|lost| write_line(&names.named(lost), out))
}

impl Serialize for Named<'_, &LostCommit> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LostCommit { lost, via, found } = self.item;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("lost", &self.part(*lost))?;
        if !via.is_empty() {
            map.serialize_entry("via", &self.part(via.as_slice()))?;
        }
        map.serialize_entry("found", &self.part(*found))?;
        map.end()
    }
}

/// The anomalies of some results, each once, and where each of them is.
struct Anomalies<'r> {
    list: Vec<&'r Anomaly>,
    places: BTreeMap<*const Anomaly, usize>,
}

impl<'r> Anomalies<'r> {
    fn new(results: &'r [LevelResult]) -> Self {
        let mut anomalies = Anomalies { list: Vec::new(), places: BTreeMap::new() };
        for anomaly in results.iter().flat_map(|result| result.verdict.anomalies()) {
            anomalies.places.entry(Arc::as_ptr(anomaly)).or_insert_with(|| {
                anomalies.list.push(anomaly);
                anomalies.list.len() - 1
            });
        }
        anomalies
    }

    /// The places of what a level's findings point to.
    fn places_of(&self, findings: &Findings) -> Vec<usize> {
        let place = |anomaly: &Arc<Anomaly>| self.places.get(&Arc::as_ptr(anomaly)).copied();
        findings.anomalies.iter().filter_map(place).collect()
    }
}

#[derive(Serialize)]
struct Header<'a> {
    schema: &'static str,
    tool: &'static str,
    history: &'a str,
    digest: String,
    flags: Flags,
    anomalies: usize,
    levels: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outages: Vec<[i64; 2]>,
    #[serde(skip_serializing_if = "is_zero")]
    lost: usize,
}

impl<'a> Header<'a> {
    fn new(
        digest: Digest,
        results: &[LevelResult],
        anomalies: &Anomalies<'_>,
        options: &VerifyOptions,
        name: &'a str,
    ) -> Header<'a> {
        Header {
            schema: SCHEMA,
            tool: concat!("isolario ", env!("CARGO_PKG_VERSION")),
            history: name,
            digest: digest.to_string(),
            flags: Flags::of(options),
            anomalies: anomalies.list.len(),
            levels: results.iter().map(|result| result.level.name()).collect(),
            outages: Vec::new(),
            lost: 0,
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct Flags {
    session_order: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_skew: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    trust_version_order: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assume: Vec<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    promised_order: bool,
}

impl Flags {
    fn of(options: &VerifyOptions) -> Flags {
        let VerifyOptions { session_order, trust_version_order, promised_order, .. } = *options;
        let clock_skew = Some(options.clock_skew).filter(|skew| *skew > 0);
        let assume = options.assume.iter().map(KeyAssumption::name).collect();
        Flags { session_order, clock_skew, trust_version_order, assume, promised_order }
    }
}

fn write_line(line: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// The line of a level, and the lines of its evidence.
fn write_section(
    names: &Names<'_>,
    anomalies: &Anomalies<'_>,
    result: &LevelResult,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write_line(&names.named(Section { result, anomalies }), out)?;
    match &result.verdict {
        Verdict::Satisfied(Witness::CommitOrder(order)) => {
            order.chunks(PER_LINE).try_for_each(|part| write_line(&names.named(part), out))
        }
        Verdict::Satisfied(Witness::Chosen { order, sources }) => {
            order.chunks(PER_LINE).try_for_each(|part| write_line(&names.named(part), out))?;
            sources.chunks(PER_LINE).try_for_each(|part| write_line(&names.named(part), out))
        }
        Verdict::Satisfied(Witness::Points(points)) => {
            points.chunks(PER_LINE).try_for_each(|part| write_line(&names.named(part), out))
        }
        Verdict::Satisfied(Witness::Linearization(ops)) => {
            let line = |part| Linearization { ops: names.named(part) };
            ops.chunks(PER_LINE).try_for_each(|part| write_line(&line(part), out))
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

impl Serialize for Named<'_, &[ReadSource]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pair = |source: &ReadSource| (self.part(source.read), self.part(source.writer));
        let sources: Vec<_> = self.item.iter().map(pair).collect();
        one_field(serializer, "sources", sources)
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

/// The line of a level.
#[derive(Clone, Copy)]
struct Section<'r> {
    result: &'r LevelResult,
    anomalies: &'r Anomalies<'r>,
}

impl Serialize for Named<'_, Section<'_>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LevelResult { level, decided_by, verdict } = self.item.result;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("level", level.name())?;
        map.serialize_entry("checker", super::checker(*decided_by))?;
        map.serialize_entry("verdict", verdict.name())?;
        match verdict {
            Verdict::Satisfied(witness) => put_witness(witness, &mut map)?,
            Verdict::Violated(findings) => {
                map.serialize_entry("anomalies", &self.item.anomalies.places_of(findings))?;
                map.serialize_entry("total", &findings.total)?;
                map.serialize_entry("exact", &findings.exact)?;
            }
            Verdict::Undecided(undecided) => self.part(undecided.limit).put(&mut map)?,
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
        Witness::Chosen { order, sources } => {
            map.serialize_entry("witness", "commit-order")?;
            map.serialize_entry("count", &order.len())?;
            map.serialize_entry("sources", &sources.len())
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

/// Which limit was reached. How far the level had come by then proves nothing, and is left out.
impl Named<'_, Limit> {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self.item {
            Limit::Time(time) => {
                map.serialize_entry("limit", "time")?;
                map.serialize_entry("nanoseconds", &time.as_nanos())
            }
            Limit::Memory(bytes) => {
                map.serialize_entry("limit", "memory")?;
                map.serialize_entry("bytes", &bytes)
            }
            Limit::Argument(bytes) => {
                map.serialize_entry("limit", "argument")?;
                map.serialize_entry("bytes", &bytes)
            }
            Limit::Steps => map.serialize_entry("limit", "steps"),
            Limit::NotSearched => map.serialize_entry("limit", "not-searched"),
            Limit::Interrupted => map.serialize_entry("limit", "interrupted"),
            Limit::NotBegun => map.serialize_entry("limit", "not-begun"),
            Limit::UnobservedWrite(op) => {
                map.serialize_entry("limit", "unobserved-write")?;
                map.serialize_entry("op", &self.part(op))
            }
            _ => Err(M::Error::custom("this limit has no form in a proof")),
        }
    }
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
            Inapplicable::NoChecker => map.serialize_entry("because", "no-checker"),
            Inapplicable::CyclicDependencies => {
                map.serialize_entry("because", "cyclic-dependencies")
            }
            Inapplicable::SkewOfEventOrder => map.serialize_entry("because", "skew-of-event-order"),
            Inapplicable::NotByPromisedOrder => {
                map.serialize_entry("because", "not-by-promised-order")
            }
            Inapplicable::NotByCertificate => map.serialize_entry("because", "not-by-certificate"),
            Inapplicable::NotInPromisedOrder { txn } => {
                map.serialize_entry("because", "no-place")?;
                map.serialize_entry("txn", &self.part(*txn))
            }
            Inapplicable::TiedInPromisedOrder { first, second } => {
                map.serialize_entry("because", "same-place")?;
                map.serialize_entry("first", &self.part(*first))?;
                map.serialize_entry("second", &self.part(*second))
            }
            Inapplicable::OpenVersionOrder { key } => {
                map.serialize_entry("because", "open-version-order")?;
                map.serialize_entry("key", &self.part(*key))
            }
            Inapplicable::NoVersionSet { op, total } => {
                map.serialize_entry("because", "no-version-set")?;
                map.serialize_entry("op", &self.part(*op))?;
                map.serialize_entry("total", total)
            }
            Inapplicable::Predicate { op } => {
                map.serialize_entry("because", "predicate")?;
                map.serialize_entry("op", &self.part(*op))
            }
            Inapplicable::UnreturnedRows { op } => {
                map.serialize_entry("because", "unreturned-rows")?;
                map.serialize_entry("op", &self.part(*op))
            }
            Inapplicable::OpenConditional { op } => {
                map.serialize_entry("because", "open-conditional")?;
                map.serialize_entry("op", &self.part(*op))
            }
            Inapplicable::RowTwice { op } => {
                map.serialize_entry("because", "row-twice")?;
                map.serialize_entry("op", &self.part(*op))
            }
            Inapplicable::BareAggregate { op } => {
                map.serialize_entry("because", "bare-aggregate")?;
                map.serialize_entry("op", &self.part(*op))
            }
            _ => Err(M::Error::custom("this reason has no form in a proof")),
        }
    }
}
