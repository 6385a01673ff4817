//! Reading a proof: strictly, and with a place for every complaint. Proofs come from strangers, so
//! nothing is allocated that the file does not spell out.

mod evidence;
mod node;
mod references;

use isolario_model::{
    Engine, Findings, History, Inapplicable, Level, LevelResult, Point, Verdict, Witness,
};

use crate::Options;
use crate::proof::{Digest, Proof, ProofError, ProofProblem, SCHEMA};
use evidence::{EvidenceReader, level};
use node::{Fields, Line, Node, malformed};
use references::References;

/// Reads a proof of this history. Nothing in it is verified yet but the digest.
pub fn read(history: &History, file: &[u8]) -> Result<Proof, ProofError> {
    let mut lines = Lines { rest: file, number: 0 };
    let header = Header::read(&lines.next("the header of a proof")?)?;
    let digest = Digest::of(history);
    if header.digest != digest {
        let problem = ProofProblem::OtherHistory { proof: header.digest, history: digest };
        return Err(ProofError { position: None, problem });
    }
    let sections = Sections { refer: References::new(history), lines };
    let results = sections.read(&header.levels)?;
    Ok(Proof { tool: header.tool, history: header.history, options: header.options, results })
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
struct Header {
    tool: String,
    history: String,
    digest: Digest,
    options: Options,
    levels: Vec<Level>,
}

impl Header {
    fn read(line: &Line<'_>) -> Result<Header, ProofError> {
        let mut fields = line.object()?;
        // First, so that a file of a later version is told apart from a broken one.
        fields.take("schema")?.one_of(SCHEMA, |schema| (schema == SCHEMA).then_some(()))?;
        let header = Header {
            tool: fields.take("tool")?.string()?,
            history: fields.take("history")?.string()?,
            digest: fields
                .take("digest")?
                .one_of("sha256: and 64 hexadecimal digits", Digest::parse)?,
            options: options(fields.take("flags")?)?,
            levels: levels(fields.take("levels")?)?,
        };
        fields.finish()?;
        Ok(header)
    }
}

/// The flags. What was not widened for skewed clocks does not mention them, nor a version order
/// that was not trusted.
fn options(node: Node<'_>) -> Result<Options, ProofError> {
    let mut flags = node.object()?;
    let session_order = flags.take("session_order")?.boolean()?;
    let clock_skew = flags.optional("clock_skew").map_or(Ok(0), Node::unsigned)?;
    let trusted = flags.optional("trust_version_order");
    let trust_version_order = trusted.map_or(Ok(false), Node::boolean)?;
    flags.finish()?;
    Ok(Options { session_order, clock_skew, trust_version_order })
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

/// The sections that follow the header.
struct Sections<'l, 'h> {
    refer: References<'h>,
    lines: Lines<'l>,
}

impl<'l, 'h> Sections<'l, 'h> {
    fn read(mut self, levels: &[Level]) -> Result<Vec<LevelResult>, ProofError> {
        let results = levels.iter().map(|level| self.section(*level)).collect::<Result<_, _>>()?;
        self.lines.finish()?;
        Ok(results)
    }

    fn section(&mut self, expected: Level) -> Result<LevelResult, ProofError> {
        let expected_line = format!("the section of {expected}");
        let mut fields = self.lines.next(&expected_line)?.object()?;
        let level = fields
            .take("level")?
            .one_of(&expected_line, |name| (name == expected.name()).then_some(expected))?;
        let engine = fields.take("checker")?.one_of("the name of a checker", find_engine)?;
        let verdict = fields.take("verdict")?;
        let verdict = match verdict.string()?.as_str() {
            "satisfied" => Verdict::Satisfied(self.witness(fields)?),
            "violated" => Verdict::Violated(self.findings(fields)?),
            "undecided" => {
                let reason = fields.take("reason")?.string()?;
                fields.finish()?;
                Verdict::Undecided { reason }
            }
            "not-applicable" => Verdict::NotApplicable(self.inapplicable(fields)?),
            _ => {
                let words = "satisfied, violated, undecided or not-applicable";
                return Err(verdict.expected(words));
            }
        };
        Ok(LevelResult { level, engine, verdict })
    }

    fn witness(&mut self, mut fields: Fields<'l>) -> Result<Witness, ProofError> {
        let form = fields.take("witness")?;
        let witness = match form.string()?.as_str() {
            "empty" => Witness::Empty,
            "commit-order" => {
                let count = fields.take("count")?;
                Witness::CommitOrder(self.in_parts("order", count, References::txn)?)
            }
            "points" => {
                let count = fields.take("count")?;
                Witness::Points(self.in_parts("points", count, point)?)
            }
            "linearization" => {
                let count = fields.take("count")?;
                Witness::Linearization(self.in_parts("ops", count, References::op)?)
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
        count: Node<'_>,
        item: impl Fn(&References<'h>, Node<'l>) -> Result<T, ProofError>,
    ) -> Result<Vec<T>, ProofError> {
        let total = count.unsigned()?;
        let mut items = Vec::new();
        while (items.len() as u64) < total {
            let mut fields =
                self.lines.next(&format!("`{field}`, up to {total} in all"))?.object()?;
            let part = fields.take(field)?;
            let nodes = part.array()?;
            // An empty part would let a short file ask for many lines.
            if nodes.len() == 0 || (items.len() + nodes.len()) as u64 > total {
                return Err(part.expected(format!("some, and no more than {total} in all")));
            }
            for node in nodes {
                items.push(item(&self.refer, node)?);
            }
            fields.finish()?;
        }
        Ok(items)
    }

    fn findings(&mut self, mut fields: Fields<'l>) -> Result<Findings, ProofError> {
        let count = fields.take("count")?.unsigned()?;
        let total = fields.take("total")?.unsigned()?;
        let exact = fields.take("exact")?.boolean()?;
        fields.finish()?;
        let reader = EvidenceReader { refer: &self.refer };
        let mut anomalies = Vec::new();
        while (anomalies.len() as u64) < count {
            let line = self.lines.next(&format!("`anomaly`, {count} in all"))?;
            anomalies.push(reader.anomaly(line.object()?)?);
        }
        Ok(Findings { anomalies, total, exact })
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
            "other" => Inapplicable::Other(fields.take("reason")?.string()?),
            _ => return Err(because.expected("why the level does not apply")),
        };
        fields.finish()?;
        Ok(why)
    }
}

fn find_engine(name: &str) -> Option<Engine> {
    use Engine::{Lin, Mini, Strong, Versions, Weak};
    [Weak, Mini, Strong { blind: None }, Versions, Lin]
        .into_iter()
        .find(|engine| engine.name() == name)
}

/// A moment of a transaction: an object of one field.
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
