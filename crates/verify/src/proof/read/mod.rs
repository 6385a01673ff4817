//! Reading a proof: strictly, and with a place for every complaint. Proofs come from strangers, so
//! nothing is allocated that the file does not spell out.

mod evidence;
mod node;
mod references;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use isolario_model::{
    Anomaly, Attempt, Findings, History, Inapplicable, KeyAssumption, KeyAssumptions, Level,
    LevelResult, Limit, Point, ReadSource, TxnId, Undecided, Verdict, Witness,
};

use crate::proof::{Digest, Proof, ProofError, ProofProblem, SCHEMA};
use crate::{LostCommit, Outage, VerifyOptions};
use evidence::{EvidenceReader, level};
use node::{Fields, Line, Node, malformed};
use references::References;

/// Reads a proof of this history. Nothing in it is verified yet but the digest.
pub fn read(history: &History, file: &[u8]) -> Result<Proof, ProofError> {
    let mut lines = Lines { rest: file, number: 0 };
    let header = Header::read(&lines.next("the header of a proof")?)?;
    let digest = header.digest.again(history);
    if header.digest != digest {
        let problem = ProofProblem::OtherHistory { proof: header.digest, history: digest };
        return Err(ProofError { position: None, problem });
    }
    read_claims(header, References::new(history), lines, Orders::Here)
}

/// Reads a proof of a history of which this is a part, with those who stand at these positions in the whole. It
/// comes without its orders. Whoever has the whole has to compare digests.
pub(super) fn read_part(
    part: &History,
    positions: BTreeMap<u64, TxnId>,
    file: &[u8],
) -> Result<Proof, ProofError> {
    let mut lines = Lines { rest: file, number: 0 };
    let header = Header::read(&lines.next("the header of a proof")?)?;
    read_claims(header, References::of_part(part, positions), lines, Orders::Elsewhere)
}

/// What the first line of a proof says.
pub(super) fn header(file: &[u8]) -> Result<Header, ProofError> {
    Header::read(&Lines { rest: file, number: 0 }.next("the header of a proof")?)
}

fn read_claims(
    header: Header,
    refer: References<'_>,
    lines: Lines<'_>,
    orders: Orders,
) -> Result<Proof, ProofError> {
    let sections = Sections { refer, lines, orders, anomalies: Vec::new() };
    let (results, lost) = sections.read(header.anomalies, &header.levels, header.lost)?;
    let Header { tool, history, options, outages, .. } = header;
    Ok(Proof { tool, history, options, results, outages, lost })
}

/// The lines of a file, one after the other.
struct Lines<'l> {
    rest: &'l [u8],
    number: u64,
}

impl<'l> Lines<'l> {
    /// The next line, which should be this.
    fn next(&mut self, expected: &str) -> Result<Line<'l>, ProofError> {
        self.number += 1;
        let error = |column, found: &str| ProofError {
            position: Some((self.number, column)),
            problem: malformed(expected, found),
        };
        if self.rest.is_empty() {
            return Err(error(1, "the end of the file"));
        }
        let end = self.rest.iter().position(|byte| *byte == b'\n').unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        match std::str::from_utf8(line) {
            Ok(text) => Ok(Line { number: self.number, text }),
            Err(broken) => Err(error(broken.valid_up_to() as u64 + 1, "bytes that are not UTF-8")),
        }
    }

    /// The object on the next line, if there is one with this field: a section that ends before it
    /// should is a wrong one.
    fn next_with(&mut self, field: &str) -> Result<Option<Fields<'l>>, ProofError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let fields = self.next(field)?.object()?;
        Ok(fields.has(field).then_some(fields))
    }

    /// Refuses a file that goes on.
    fn finish(mut self) -> Result<(), ProofError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let further = self.next("the end of the file")?;
        let problem = malformed("the end of the file", further.text);
        Err(ProofError { position: Some((further.number, 1)), problem })
    }
}

/// The first line.
pub(super) struct Header {
    tool: String,
    history: String,
    pub(super) digest: Digest,
    pub(super) options: VerifyOptions,
    pub(super) anomalies: u64,
    pub(super) levels: Vec<Level>,
    outages: Vec<Outage>,
    pub(super) lost: u64,
}

impl Header {
    fn read(line: &Line<'_>) -> Result<Header, ProofError> {
        let mut fields = line.object()?;
        // First, so that a file of another version is told apart from a broken one.
        let schema = fields.take("schema")?;
        if schema.string()? != SCHEMA {
            return Err(match schema.string()?.strip_prefix("isolario.proof/") {
                Some(version) => schema.error(ProofProblem::OtherVersion(version.to_owned())),
                None => schema.expected(SCHEMA),
            });
        }
        let header = Header {
            tool: fields.take("tool")?.string()?,
            history: fields.take("history")?.string()?,
            digest: fields
                .take("digest")?
                .one_of("sha256: and 64 hexadecimal digits", Digest::parse)?,
            options: options(fields.take("flags")?)?,
            anomalies: fields.take("anomalies")?.unsigned()?,
            levels: levels(fields.take("levels")?)?,
            outages: fields.optional("outages").map_or(Ok(Vec::new()), outages)?,
            lost: fields.optional("lost").map_or(Ok(0), Node::unsigned)?,
        };
        fields.finish()?;
        Ok(header)
    }
}

/// The flags. What was not widened for skewed clocks does not mention them, nor a version order
/// that was not trusted, nor assumptions that were not made, nor an order of transactions that nobody
/// promised.
fn options(node: Node<'_>) -> Result<VerifyOptions, ProofError> {
    let mut flags = node.object()?;
    let session_order = flags.take("session_order")?.boolean()?;
    let clock_skew = flags.optional("clock_skew").map_or(Ok(0), Node::unsigned)?;
    let trusted = flags.optional("trust_version_order");
    let trust_version_order = trusted.map_or(Ok(false), Node::boolean)?;
    let assume = flags.optional("assume").map_or(Ok(KeyAssumptions::default()), assumptions)?;
    let promised = flags.optional("promised_order");
    let promised_order = promised.map_or(Ok(false), Node::boolean)?;
    flags.finish()?;
    Ok(VerifyOptions { session_order, clock_skew, trust_version_order, assume, promised_order })
}

/// What is assumed of every key.
fn assumptions(node: Node<'_>) -> Result<KeyAssumptions, ProofError> {
    let assumption =
        |node: Node<'_>| node.one_of("what is assumed of every key", KeyAssumption::by_name);
    node.array()?.map(assumption).collect()
}

/// When the server was down.
fn outages(node: Node<'_>) -> Result<Vec<Outage>, ProofError> {
    let outage = |node: Node<'_>| {
        let parts: Vec<_> = node.array()?.collect();
        let [begun, over] = parts[..] else { return Err(node.expected("two times")) };
        Ok(Outage { begun: begun.signed()?, over: over.signed()? })
    };
    node.array()?.map(outage).collect()
}

/// Levels, each once.
fn levels(node: Node<'_>) -> Result<Vec<Level>, ProofError> {
    let mut levels = Vec::new();
    for node in node.array()? {
        let level = level(node)?;
        if levels.contains(&level) {
            return Err(node.expected("each level once"));
        }
        levels.push(level);
    }
    Ok(levels)
}

/// Where the lines of orders are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Orders {
    Here,
    Elsewhere,
}

/// The sections that follow the header.
struct Sections<'l, 'h> {
    refer: References<'h>,
    lines: Lines<'l>,
    orders: Orders,
    anomalies: Vec<Anomaly>,
}

/// What a section says of a level: a verdict, or which of the anomalies violate it.
enum Claim {
    Verdict(Verdict),
    Violated { places: Vec<usize>, total: u64, exact: bool },
}

impl<'l, 'h> Sections<'l, 'h> {
    fn read(
        mut self,
        anomalies: u64,
        levels: &[Level],
        lost: u64,
    ) -> Result<(Vec<LevelResult>, Vec<LostCommit>), ProofError> {
        while (self.anomalies.len() as u64) < anomalies {
            let Some(line) = self.lines.next_with("anomaly")? else {
                let found = self.anomalies.len() as u64;
                let problem =
                    ProofProblem::Miscounted { what: "anomalies", stated: anomalies, found };
                return Err(ProofError { position: Some((self.lines.number, 1)), problem });
            };
            let reader = EvidenceReader { refer: &self.refer };
            self.anomalies.push(reader.anomaly(line)?);
        }
        let sections: Vec<(Level, Attempt, Claim)> =
            levels.iter().map(|level| self.section(*level)).collect::<Result<_, _>>()?;
        let lost = self.lost(lost)?;
        self.lines.finish()?;
        Ok((results(self.anomalies, sections), lost))
    }

    /// So many lines of lost transactions.
    fn lost(&mut self, stated: u64) -> Result<Vec<LostCommit>, ProofError> {
        let mut all = Vec::new();
        while (all.len() as u64) < stated {
            let Some(mut line) = self.lines.next_with("lost")? else {
                let found = all.len() as u64;
                let problem = ProofProblem::Miscounted { what: "lost transactions", stated, found };
                return Err(ProofError { position: Some((self.lines.number, 1)), problem });
            };
            let lost = self.refer.op(line.take("lost")?)?;
            let via = line
                .optional("via")
                .map_or(Ok(Vec::new()), |via| via.array()?.map(|op| self.refer.op(op)).collect())?;
            let found = self.refer.op(line.take("found")?)?;
            line.finish()?;
            all.push(LostCommit { lost, via, found });
        }
        Ok(all)
    }

    fn section(&mut self, expected: Level) -> Result<(Level, Attempt, Claim), ProofError> {
        let expected_line = format!("the section of {expected}");
        let mut fields = self.lines.next(&expected_line)?.object()?;
        let level = fields
            .take("level")?
            .one_of(&expected_line, |name| (name == expected.name()).then_some(expected))?;
        let attempt = fields.take("checker")?.one_of("the name of a checker", attempt_of)?;
        let verdict = fields.take("verdict")?;
        let claim = match verdict.string()?.as_str() {
            "satisfied" => Claim::Verdict(Verdict::Satisfied(self.witness(fields)?)),
            "violated" => self.violated(fields)?,
            "undecided" => Claim::Verdict(Verdict::Undecided(Undecided::new(self.limit(fields)?))),
            "not-applicable" => Claim::Verdict(Verdict::NotApplicable(self.inapplicable(fields)?)),
            _ => {
                let words = "satisfied, violated, undecided or not-applicable";
                return Err(verdict.expected(words));
            }
        };
        Ok((level, attempt, claim))
    }

    fn witness(&mut self, mut fields: Fields<'l>) -> Result<Witness, ProofError> {
        let form = fields.take("witness")?;
        let witness = match form.string()?.as_str() {
            "empty" => Witness::Empty,
            "commit-order" | "points" if self.orders == Orders::Elsewhere => {
                fields.take("count")?.unsigned()?;
                Witness::Empty
            }
            "commit-order" => {
                let (count, sources) = (fields.take("count")?, fields.optional("sources"));
                let order = self.in_parts("order", "transactions", count, References::txn)?;
                match sources {
                    None => Witness::CommitOrder(order),
                    Some(count) => {
                        let sources = self.in_parts("sources", "sources", count, source)?;
                        Witness::Chosen { order, sources }
                    }
                }
            }
            "points" => {
                let count = fields.take("count")?;
                Witness::Points(self.in_parts("points", "points", count, point)?)
            }
            "linearization" => {
                let count = fields.take("count")?;
                Witness::Linearization(self.in_parts("ops", "operations", count, References::op)?)
            }
            _ => return Err(form.expected("empty, commit-order, points or linearization")),
        };
        fields.finish()?;
        Ok(witness)
    }

    /// What stands on as many lines as it takes, in an array on each.
    fn in_parts<T>(
        &mut self,
        field: &str,
        what: &'static str,
        count: Node<'_>,
        item: impl Fn(&References<'h>, Node<'l>) -> Result<T, ProofError>,
    ) -> Result<Vec<T>, ProofError> {
        let stated = count.unsigned()?;
        let miscounted = |found| ProofProblem::Miscounted { what, stated, found };
        let mut items = Vec::new();
        while (items.len() as u64) < stated {
            let found = items.len() as u64;
            let Some(mut fields) = self.lines.next_with(field)? else {
                return Err(count.error(miscounted(found)));
            };
            let part = fields.take(field)?;
            let nodes = part.array()?;
            // An empty part would let a short file ask for many lines.
            if nodes.len() == 0 {
                return Err(part.expected("some"));
            }
            if found + nodes.len() as u64 > stated {
                return Err(part.error(miscounted(found + nodes.len() as u64)));
            }
            for node in nodes {
                items.push(item(&self.refer, node)?);
            }
            fields.finish()?;
        }
        Ok(items)
    }

    fn violated(&self, mut fields: Fields<'l>) -> Result<Claim, ProofError> {
        let mut places = Vec::new();
        for node in fields.take("anomalies")?.array()? {
            let place = node.unsigned()?;
            if place >= self.anomalies.len() as u64 {
                return Err(node.expected("the number of an anomaly, counted from 0"));
            }
            places.push(place as usize);
        }
        let total = fields.take("total")?.unsigned()?;
        let exact = fields.take("exact")?.boolean()?;
        fields.finish()?;
        Ok(Claim::Violated { places, total, exact })
    }

    fn inapplicable(&self, mut fields: Fields<'l>) -> Result<Inapplicable, ProofError> {
        let because = fields.take("because")?;
        let why = match because.string()?.as_str() {
            "ambiguous-read" => Inapplicable::AmbiguousRead {
                read: self.refer.op(fields.take("read")?)?,
                first: self.refer.optional_op(fields.take("first")?)?,
                second: self.refer.op(fields.take("second")?)?,
                total: fields.take("total")?.unsigned()?,
            },
            "operation" => Inapplicable::Operation { op: self.refer.op(fields.take("op")?)? },
            "several-operations" => {
                Inapplicable::SeveralOperations { txn: self.refer.txn(fields.take("txn")?)? }
            }
            "no-times" => Inapplicable::NoTimes,
            "no-version-order" => Inapplicable::NoVersionOrder,
            "no-checker" => Inapplicable::NoChecker,
            "cyclic-dependencies" => Inapplicable::CyclicDependencies,
            "skew-of-event-order" => Inapplicable::SkewOfEventOrder,
            "not-by-promised-order" => Inapplicable::NotByPromisedOrder,
            "not-by-certificate" => Inapplicable::NotByCertificate,
            "no-place" => {
                Inapplicable::NotInPromisedOrder { txn: self.refer.txn(fields.take("txn")?)? }
            }
            "same-place" => Inapplicable::TiedInPromisedOrder {
                first: self.refer.txn(fields.take("first")?)?,
                second: self.refer.txn(fields.take("second")?)?,
            },
            "open-version-order" => {
                Inapplicable::OpenVersionOrder { key: self.refer.key(fields.take("key")?)? }
            }
            "no-version-set" => Inapplicable::NoVersionSet {
                op: self.refer.op(fields.take("op")?)?,
                total: fields.take("total")?.unsigned()?,
            },
            "predicate" => Inapplicable::Predicate { op: self.refer.op(fields.take("op")?)? },
            "unreturned-rows" => {
                Inapplicable::UnreturnedRows { op: self.refer.op(fields.take("op")?)? }
            }
            "open-conditional" => {
                Inapplicable::OpenConditional { op: self.refer.op(fields.take("op")?)? }
            }
            "row-twice" => Inapplicable::RowTwice { op: self.refer.op(fields.take("op")?)? },
            "bare-aggregate" => {
                Inapplicable::BareAggregate { op: self.refer.op(fields.take("op")?)? }
            }
            _ => return Err(because.expected("why the level does not apply")),
        };
        fields.finish()?;
        Ok(why)
    }

    /// Which limit kept a level from being decided.
    fn limit(&self, mut fields: Fields<'_>) -> Result<Limit, ProofError> {
        let name = fields.take("limit")?;
        let limit = match name.string()?.as_str() {
            "time" => Limit::Time(Duration::from_nanos(fields.take("nanoseconds")?.unsigned()?)),
            "memory" => Limit::Memory(fields.take("bytes")?.unsigned()?),
            "argument" => Limit::Argument(fields.take("bytes")?.unsigned()?),
            "steps" => Limit::Steps,
            "not-searched" => Limit::NotSearched,
            "interrupted" => Limit::Interrupted,
            "not-begun" => Limit::NotBegun,
            "unobserved-write" => Limit::UnobservedWrite(self.refer.op(fields.take("op")?)?),
            _ => return Err(name.expected("which limit was reached")),
        };
        fields.finish()?;
        Ok(limit)
    }
}

/// Puts anomalies and what points to them together. An anomaly rules out the levels whose sections
/// point to it.
fn results(
    mut anomalies: Vec<Anomaly>,
    sections: Vec<(Level, Attempt, Claim)>,
) -> Vec<LevelResult> {
    for (level, _, claim) in &sections {
        if let Claim::Violated { places, .. } = claim {
            for place in places {
                anomalies[*place] = anomalies[*place].clone().at(*level);
            }
        }
    }
    let shared: Vec<Arc<Anomaly>> = anomalies.into_iter().map(Arc::new).collect();
    let result = |(level, decided_by, claim)| {
        let verdict = match claim {
            Claim::Verdict(verdict) => verdict,
            Claim::Violated { places, total, exact } => {
                let anomalies = places.into_iter().map(|at| Arc::clone(&shared[at])).collect();
                Verdict::Violated(Findings { anomalies, total, exact })
            }
        };
        LevelResult { level, decided_by, verdict }
    };
    sections.into_iter().map(result).collect()
}

/// An attempt that the checker of this name makes.
fn attempt_of(checker: &str) -> Option<Attempt> {
    Some(match checker {
        "weak" => Attempt::Rule,
        "mini" | "versions" => Attempt::Versions,
        "strong" => Attempt::Search,
        "lin" => Attempt::Linearization,
        _ => return None,
    })
}

/// A moment of a transaction: an object of one field.
/// A read, and whose write it saw.
fn source(refer: &References<'_>, node: Node<'_>) -> Result<ReadSource, ProofError> {
    let mut parts = node.array()?;
    match (parts.next(), parts.next(), parts.next()) {
        (Some(read), Some(writer), None) => {
            Ok(ReadSource { read: refer.op(read)?, writer: refer.txn(writer)? })
        }
        _ => Err(node.expected("an operation and a transaction")),
    }
}

fn point(refer: &References<'_>, node: Node<'_>) -> Result<Point, ProofError> {
    let mut fields = node.object()?;
    let point = if let Some(txn) = fields.optional("start") {
        Point::Start(refer.txn(txn)?)
    } else if let Some(txn) = fields.optional("commit") {
        Point::Commit(refer.txn(txn)?)
    } else {
        return Err(node.expected("{\"start\":…} or {\"commit\":…}"));
    };
    fields.finish()?;
    Ok(point)
}
