//! Plants anomalies: a few transactions, on keys and in sessions of their own.
//!
//! Nothing else touches these keys and sessions, so the anomaly neither hides nor grows: two
//! histories that share neither keys nor sessions satisfy a level together exactly when both do,
//! since their commit orders can be merged by time.

mod template;
mod templates;

use isolario_model::{AnomalyKind, Op, SinkError, TxnEnd, ValueRef};

use crate::interleave::Planted;
use crate::report::Reporter;
pub use template::Template;
use template::TemplateOp;

/// All templates, in the order of the anomaly table.
pub fn templates() -> &'static [Template] {
    &templates::TABLE
}

impl Template {
    /// The template of an anomaly; none for those that need more than operations on a few keys.
    pub fn of(kind: AnomalyKind) -> Option<&'static Template> {
        templates::TABLE.iter().find(|template| template.kind == kind)
    }
}

/// Planted keys begin here, far above those of any workload. Every format has room for them.
const FIRST_KEY: u64 = 1 << 40;
/// Room for the keys of one template.
const KEYS_PER_PLANT: u64 = 16;
/// Nanoseconds per tick of a template.
const TICK: i64 = 1000;

/// Plants an anomaly: after a time, in sessions from a number on.
pub(crate) fn plant(
    kind: AnomalyKind,
    first_session: u64,
    now: i64,
    reporter: &mut Reporter<'_>,
) -> Result<Planted, SinkError> {
    let mut planted = Planted { sessions: 0, end: now };
    let Some(template) = Template::of(kind) else { return Ok(planted) };
    // Sessions of templates are never used twice, so they tell templates apart.
    let first_key = FIRST_KEY + first_session * KEYS_PER_PLANT;
    for (at, txn) in template.txns.iter().enumerate() {
        let span = template.span(at);
        let time = |tick: u32| now + 1 + i64::from(tick) * TICK;
        let (start, finish) = (time(span.0), time(span.1));
        reporter.begin(first_session + u64::from(txn.session))?;
        for step in txn.steps {
            tell(step, first_key, reporter)?;
        }
        let end = TxnEnd::new(txn.outcome);
        reporter.end(&TxnEnd { start: Some(start), finish: Some(finish), ..end })?;
        reporter.summary.planted += 1;
        planted.sessions = planted.sessions.max(u64::from(txn.session) + 1);
        planted.end = planted.end.max(finish + 1);
    }
    Ok(planted)
}

fn tell(step: &TemplateOp, first_key: u64, reporter: &mut Reporter<'_>) -> Result<(), SinkError> {
    let key = |key: u8| ValueRef::from(first_key + u64::from(key));
    match *step {
        TemplateOp::R(k, value) => {
            let value = Some(reporter.shown((value != 0).then_some(value)));
            reporter.op(&Op::Read { key: key(k), value })
        }
        TemplateOp::W(k, value) => reporter.op(&Op::Write { key: key(k), value: value.into() }),
        TemplateOp::Append(k, element) => {
            reporter.op(&Op::Append { key: key(k), element: element.into() })
        }
        TemplateOp::List(k, elements) => {
            reporter.elements_read(first_key + u64::from(k), Some(elements))
        }
        TemplateOp::Set(k, expected, new) => reporter.op(&Op::CompareAndSet {
            key: key(k),
            expected: reporter.shown((expected != 0).then_some(expected)),
            new: new.into(),
            applied: Some(true),
            seen: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_in_the_order_of_the_table_and_small() {
        let kinds: Vec<AnomalyKind> = templates().iter().map(|template| template.kind).collect();
        assert!(kinds.is_sorted_by(|a, b| a < b), "{kinds:?}");
        for template in templates() {
            let keys = template.txns.iter().flat_map(|txn| txn.steps).map(TemplateOp::key);
            assert!(keys.max().is_some_and(|key| u64::from(key) < KEYS_PER_PLANT));
        }
    }

    #[test]
    fn spans_follow_each_other_within_a_session() {
        for template in templates() {
            let mut free = [0; 16];
            for (at, txn) in template.txns.iter().enumerate() {
                let (start, finish) = template.span(at);
                assert!(free[usize::from(txn.session)] <= start && start < finish);
                free[usize::from(txn.session)] = finish + 1;
            }
        }
    }
}
