//! The edges that a level asks for, as far as they lead back in rank: what windows are made of.
//!
//! Nothing but the ranks of both ends is kept of an edge that leads back. Between windows every edge leads forward,
//! so that the others are needed by nobody before the windows are known.

use isolario_model::Level;

use crate::Error;
use crate::engine::Engine;
use crate::reads::INIT;
use crate::rows::integers;
use crate::windows::Span;

/// What edges there are besides session order and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A writer that a reader had seen before it read another's version of the same key came before that one.
    ReadCommitted,
    /// A writer that a reader saw, or that its session did, came before the one whose version of the same key it
    /// read.
    ReadAtomic,
    /// Whoever replaced a version came after those who read it; who that was, read-modify-writes tell.
    Replacements,
}

impl Rule {
    /// The rule that decides a level.
    pub(crate) fn of(level: Level) -> Option<Rule> {
        match level {
            Level::ReadCommitted => Some(Rule::ReadCommitted),
            Level::ReadAtomic => Some(Rule::ReadAtomic),
            Level::SnapshotIsolation
            | Level::StrongSnapshotIsolation
            | Level::Serializable
            | Level::StrictSerializable => Some(Rule::Replacements),
            _ => None,
        }
    }
}

/// What edges say before their windows are looked at.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    /// Those that lead back.
    pub(crate) back: Vec<Span>,
    /// Readers of an initial version, each with a writer of the key that has to be visible to it.
    pub(crate) stale: Vec<Vec<i64>>,
    /// A transaction that wrote a key which it had not read, where the rule asks for that.
    pub(crate) blind: Option<i64>,
}

/// Session order; a session has many keys. Of those before, the one that ranks last spans most.
const SESSION: &str = "SELECT rank AS first, before AS last
    FROM (SELECT rank, max(CASE WHEN outcome = 'committed' THEN rank END) OVER
              (PARTITION BY session ORDER BY txn ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM counted)
    WHERE before >= rank";

/// Reads, each after its writer.
const READS: &str = "SELECT rank AS first, writer_rank AS last FROM seen WHERE writer_rank >= rank";

impl Edges {
    /// Works out the edges that a rule asks for. For the weak levels, the engine knows all that were inferred as
    /// `inferred` from then on: who came before whom, and the reader that shows it.
    pub(crate) fn find(engine: &mut Engine, rule: Rule) -> Result<Edges, Error> {
        let mut edges = Edges::default();
        let more = match rule {
            Rule::ReadCommitted => edges.infer(engine, &by_reads("s.op < r.op"))?,
            Rule::ReadAtomic => {
                let query = format!("{} UNION ALL {BY_SESSION}", by_reads("true"));
                edges.infer(engine, &query)?
            }
            Rule::Replacements => {
                edges.blind = replacements(engine)?;
                if edges.blind.is_some() {
                    return Ok(edges);
                }
                OVERWRITTEN
            }
        };
        engine.keep("spans", &format!("{READS} UNION ALL {more}"))?;
        engine.each(&format!("SELECT first, last FROM spans UNION ALL {SESSION}"), |batch| {
            let (first, last) = (integers(batch, "first")?, integers(batch, "last")?);
            let spans = first.values().iter().zip(last.values());
            edges.back.extend(spans.map(|(first, last)| Span { first: *first, last: *last }));
            Ok(())
        })?;
        Ok(edges)
    }

    /// Keeps what a query infers. Nobody comes before the initial versions, so what is inferred of these is a
    /// contradiction already.
    fn infer(&mut self, engine: &mut Engine, query: &str) -> Result<&'static str, Error> {
        engine.keep("inferred", query)?;
        let stale = format!(
            "SELECT DISTINCT reader, before FROM inferred WHERE after = {INIT} ORDER BY reader, before LIMIT 20"
        );
        engine.each(&stale, |batch| {
            let (reader, before) = (integers(batch, "reader")?, integers(batch, "before")?);
            let pairs = reader.values().iter().zip(before.values());
            self.stale.extend(pairs.map(|(reader, before)| vec![*reader, *before]));
            Ok(())
        })?;
        Ok(
            "SELECT after_rank AS first, before_rank AS last FROM inferred WHERE before_rank >= after_rank",
        )
    }
}

/// `s` brought its writer in sight, which wrote the key that `r` read from somebody else.
fn by_reads(when: &str) -> String {
    format!(
        "SELECT s.writer AS before, s.writer_rank AS before_rank, r.writer AS after,
                r.writer_rank AS after_rank, r.txn AS reader
         FROM seen_by_all s JOIN seen r ON s.txn = r.txn
         JOIN written w ON w.txn = s.writer AND w.key = r.key
         WHERE s.writer <> r.writer AND {when}"
    )
}

/// The last writer of the key in the reader's session: the transactions of a session are numbered in a row, so if
/// there is one, it is the last of all that come before the reader by number. Nothing follows a transaction of
/// unknown outcome.
///
/// To divide the rows by session as well as by key would say the same. But what an engine does for each of these divisions
/// costs more than what it does for a row, and that would be a hundred thousand of them, with four rows each.
const BY_SESSION: &str =
    "SELECT w.txn AS before, w.rank AS before_rank, r.after, r.after_rank, r.reader
    FROM (SELECT session, key, reader, after, after_rank,
                 max(own) OVER (PARTITION BY key ORDER BY txn, side
                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM (SELECT session, key, txn, 0 AS side, txn AS reader, writer AS after,
                       writer_rank AS after_rank, CAST(NULL AS BIGINT) AS own FROM seen
                UNION ALL
                SELECT session, key, txn, 1 AS side, NULL, NULL, NULL, txn AS own FROM written
                WHERE outcome = 'committed')) r
    JOIN written w ON w.txn = r.before AND w.key = r.key AND w.session = r.session
    WHERE r.reader IS NOT NULL AND r.before <> r.after";

/// Whoever read a version comes before whoever replaced it.
const OVERWRITTEN: &str = "SELECT p.rank AS first, r.rank AS last
    FROM replaced p JOIN seen r ON r.key = p.key AND r.writer = p.old
    WHERE r.txn <> p.txn AND r.rank >= p.rank";

/// Keeps who replaced which version: a transaction replaces what it read of a key and then wrote. One that wrote
/// without reading is its key's loader if nobody else replaced the initial version. Else it is found, for nothing
/// says where its version belongs.
fn replacements(engine: &mut Engine) -> Result<Option<i64>, Error> {
    let replaced = format!(
        "SELECT w.key, w.txn, w.rank, coalesce(r.writer, {INIT}) AS old, r.writer IS NULL AS is_blind
         FROM written w
         LEFT JOIN (SELECT DISTINCT txn, key, writer FROM seen) r ON r.txn = w.txn AND r.key = w.key"
    );
    engine.keep("replaced", &replaced)?;
    let odd = format!(
        "SELECT max(CASE WHEN is_blind THEN txn END) AS txn FROM replaced WHERE old = {INIT}
         GROUP BY key HAVING bool_or(is_blind) AND count(*) > 1 ORDER BY txn LIMIT 1"
    );
    let mut blind = None;
    engine.each(&odd, |batch| {
        blind = blind.or(integers(batch, "txn")?.values().first().copied());
        Ok(())
    })?;
    Ok(blind)
}
