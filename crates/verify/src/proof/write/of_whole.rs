//! Writing the proof of a history that is not in memory: evidence is about a part of it, and orders come
//! one transaction after the other.

use std::io;

use isolario_model::{History, LevelResult, Verdict};
use serde::Serialize;

use super::{Anomalies, Header, PER_LINE, Section, write_line};
use crate::VerifyOptions;
use crate::proof::names::{Names, POSITION, PartPositionsRef};
use crate::proof::{Digest, checker};

/// What is known of a history that is not in memory.
#[derive(Clone, Copy, Debug)]
pub struct WholeHistory<'p> {
    /// Which history it is.
    pub digest: Digest,
    /// A part of it, which evidence is about.
    pub part: &'p History,
    /// Where the part is in the whole.
    pub positions: PartPositionsRef<'p>,
}

/// A moment in the order of a whole history: of the transaction at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderPoint {
    /// It takes place, at levels where that is one moment.
    Takes(u64),
    /// It starts.
    Starts(u64),
    /// It commits.
    Commits(u64),
}

impl OrderPoint {
    /// The position of the transaction.
    pub fn position(self) -> u64 {
        match self {
            OrderPoint::Takes(position)
            | OrderPoint::Starts(position)
            | OrderPoint::Commits(position) => position,
        }
    }
}

/// An order that shows that a level is satisfied.
pub struct StreamedOrder {
    /// Whether starts and commits are two moments.
    pub in_points: bool,
    /// How many moments there are.
    pub count: u64,
    /// The moments.
    pub points: Box<dyn Iterator<Item = io::Result<OrderPoint>>>,
}

/// Writes the proof of some results. Of each that is satisfied, the order is asked for when it is
/// written, by its place among the results.
pub fn write_of_whole(
    whole: WholeHistory<'_>,
    results: &[LevelResult],
    mut order: impl FnMut(usize) -> io::Result<StreamedOrder>,
    options: &VerifyOptions,
    name: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let anomalies = Anomalies::new(results);
    write_line(&Header::new(whole.digest, results, &anomalies, options, name), out)?;
    let names = Names::in_whole(whole.part, whole.positions);
    anomalies.list.iter().try_for_each(|anomaly| write_line(&names.named(*anomaly), out))?;
    for (at, result) in results.iter().enumerate() {
        match result.verdict {
            Verdict::Satisfied(_) => write_order(result, order(at)?, out)?,
            _ => write_line(&names.named(Section { result, anomalies: &anomalies }), out)?,
        }
    }
    Ok(())
}

/// The line of a level that is satisfied.
#[derive(Serialize)]
struct Satisfied {
    level: &'static str,
    checker: &'static str,
    verdict: &'static str,
    witness: &'static str,
    count: u64,
}

/// The line of a level, and those of its order. There may be very many moments, which have one form each.
fn write_order(
    result: &LevelResult,
    order: StreamedOrder,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let StreamedOrder { in_points, count, points: moments } = order;
    let (witness, field) = if in_points { ("points", "points") } else { ("commit-order", "order") };
    let LevelResult { level, decided_by, verdict } = result;
    let (level, checker, verdict) = (level.name(), checker(*decided_by), verdict.name());
    write_line(&Satisfied { level, checker, verdict, witness, count }, out)?;
    let mut on_line = 0;
    for moment in moments {
        match on_line {
            0 => write!(out, "{{\"{field}\":[")?,
            _ => out.write_all(b",")?,
        }
        match moment? {
            OrderPoint::Takes(at) => write!(out, "{{\"{POSITION}\":{at}}}")?,
            OrderPoint::Starts(at) => write!(out, "{{\"start\":{{\"{POSITION}\":{at}}}}}")?,
            OrderPoint::Commits(at) => write!(out, "{{\"commit\":{{\"{POSITION}\":{at}}}}}")?,
        }
        on_line = (on_line + 1) % PER_LINE;
        if on_line == 0 {
            out.write_all(b"]}\n")?;
        }
    }
    if on_line > 0 {
        out.write_all(b"]}\n")?;
    }
    Ok(())
}
