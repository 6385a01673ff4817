//! The figures of a history, for programs: schema `isolario.stats/1`.

use std::io;

use isolario_model::{Bucket, Oddity, Remark, Severity, Share};
use serde::Serialize;

use super::op::JsonValue;
use super::{Json, write_line};
use crate::report::HistorySize;
use crate::stats::StatsReport;

impl Json {
    /// Writes the figures of a history as one line.
    pub fn stats(&self, report: &StatsReport<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        write_line(&JsonStats::of(report), out)
    }
}

#[derive(Serialize)]
struct JsonStats<'a> {
    schema: &'static str,
    history: &'a str,
    size: HistorySize,
    committed_operations: usize,
    reads: usize,
    writes: usize,
    reads_per_write: Option<f64>,
    transaction_sizes: JsonSizes,
    skew: JsonSkew<'a>,
    concurrency: Option<JsonConcurrency>,
    read_modify_write: JsonReadModifyWrite,
    uniqueness: JsonUniqueness,
    /// The name is part of the schema.
    #[serde(rename = "findings")]
    remarks: Vec<JsonRemark>,
}

#[derive(Serialize)]
struct JsonShare {
    part: usize,
    whole: usize,
}

#[derive(Serialize)]
struct JsonSizes {
    min: usize,
    median: f64,
    mean: f64,
    max: usize,
    histogram: Vec<JsonBucket>,
}

#[derive(Serialize)]
struct JsonBucket {
    from: usize,
    to: usize,
    count: usize,
}

#[derive(Serialize)]
struct JsonSkew<'a> {
    gini: Option<f64>,
    top: Vec<JsonKeyUse<'a>>,
}

#[derive(Serialize)]
struct JsonKeyUse<'a> {
    key: JsonValue<'a>,
    operations: usize,
}

#[derive(Serialize)]
struct JsonConcurrency {
    max: usize,
    mean: f64,
    measured: JsonShare,
}

#[derive(Serialize)]
struct JsonReadModifyWrite {
    transactions: JsonShare,
    writes: JsonShare,
}

#[derive(Serialize)]
struct JsonUniqueness {
    unique_writes: JsonShare,
    duplicated: usize,
}

#[derive(Serialize)]
struct JsonRemark {
    name: &'static str,
    severity: &'static str,
    count: usize,
    examples: Vec<String>,
}

impl From<Share> for JsonShare {
    fn from(share: Share) -> Self {
        JsonShare { part: share.part, whole: share.whole }
    }
}

impl<'a> JsonStats<'a> {
    fn of(report: &StatsReport<'a>) -> Self {
        let StatsReport { name, history, stats, remarks } = *report;
        let sizes = &stats.transaction_sizes;
        let bucket = |b: &Bucket| JsonBucket { from: b.from, to: b.to, count: b.count };
        let busiest = stats.skew.top.iter().map(|found| JsonKeyUse {
            key: JsonValue(history.key_name(found.key)),
            operations: found.operations.part,
        });
        JsonStats {
            schema: "isolario.stats/1",
            history: name,
            size: HistorySize::of(history),
            committed_operations: stats.committed_operations,
            reads: stats.reads,
            writes: stats.writes,
            reads_per_write: stats.reads_per_write(),
            transaction_sizes: JsonSizes {
                min: sizes.min,
                median: sizes.median,
                mean: sizes.mean,
                max: sizes.max,
                histogram: sizes.histogram.iter().map(bucket).collect(),
            },
            skew: JsonSkew { gini: stats.skew.gini, top: busiest.collect() },
            concurrency: stats.concurrency.as_ref().map(|found| JsonConcurrency {
                max: found.max,
                mean: found.mean,
                measured: found.measured.into(),
            }),
            read_modify_write: JsonReadModifyWrite {
                transactions: stats.read_modify_write.transactions.into(),
                writes: stats.read_modify_write.writes.into(),
            },
            uniqueness: JsonUniqueness {
                unique_writes: stats.uniqueness.unique_writes.into(),
                duplicated: stats.uniqueness.duplicated,
            },
            remarks: remarks.iter().map(|found| remark(report, found)).collect(),
        }
    }
}

fn remark(report: &StatsReport<'_>, found: &Remark) -> JsonRemark {
    let describe = |oddity: &Oddity| oddity.describe(report.history);
    JsonRemark {
        name: found.name(),
        severity: match found.severity() {
            Severity::Fatal => "fatal",
            Severity::Warning => "warning",
            _ => "note",
        },
        count: found.count,
        examples: found.examples().map(describe).collect(),
    }
}
