//! Where an attempt ends. The only place that makes verdicts.

use isolario_model::{
    Anomaly, AnomalyKind, Attempt, Edge, Evidence, Findings, Inapplicable, Level, LevelNodes,
    LevelResult, Limit, PatternResult, Point, TxnId, Undecided, Verdict, VisibilityRule, Witness,
};

/// What an attempt at a level resulted in.
#[derive(Clone, Debug)]
pub(crate) enum Conclusion {
    /// The level holds.
    Holds(Witness),
    /// The level is violated.
    Refuted(Findings),
    /// A limit was reached.
    Unknown(Undecided),
    /// The level is not decided for a history of this kind.
    Inapplicable(Inapplicable),
    /// Nothing that is known refutes the level, but some reads may have seen several writes: suppositions
    /// decide.
    Open,
    /// The attempt does not say: the next one is made.
    Pass,
}

impl Conclusion {
    /// The level holds, since these transactions may have run one after the other.
    pub(crate) fn serial(level: Level, txns: impl Iterator<Item = TxnId>) -> Conclusion {
        let shape = level.shape();
        Conclusion::Holds(match (shape.nodes, shape.visible) {
            (LevelNodes::StartAndCommit, VisibilityRule::Prefix) => {
                let points = txns.flat_map(|txn| [Point::Start(txn), Point::Commit(txn)]);
                Witness::Points(points.collect())
            }
            _ => Witness::CommitOrder(txns.collect()),
        })
    }

    /// The level is violated by these anomalies, and there may be more.
    pub(crate) fn refuted(anomalies: Vec<Anomaly>) -> Conclusion {
        Conclusion::Refuted(Findings::new(anomalies, false))
    }

    /// The level is violated: each case is closed by one of these cycles.
    pub(crate) fn by_cases(cycles: Vec<Vec<Edge>>) -> Conclusion {
        let evidence = Evidence::Cases { cycles };
        Conclusion::refuted(vec![Anomaly::new(AnomalyKind::NoOrderPossible, evidence)])
    }

    /// A limit was reached, and nothing is known.
    pub(crate) fn limit(limit: Limit) -> Conclusion {
        Conclusion::Unknown(Undecided::new(limit))
    }

    /// The check was asked to end before the level had its turn.
    pub(crate) fn not_begun() -> Conclusion {
        Conclusion::limit(Limit::NotBegun)
    }

    pub(crate) fn holds(&self) -> bool {
        matches!(self, Conclusion::Holds(_))
    }

    /// What this resulted in; if it does not say, what the next attempt results in.
    pub(crate) fn or(self, next: impl FnOnce() -> Conclusion) -> Conclusion {
        match self {
            Conclusion::Pass => next(),
            conclusion => conclusion,
        }
    }

    /// The answer for a level.
    pub(crate) fn result(self, level: Level, decided_by: Attempt) -> LevelResult {
        LevelResult { level, decided_by, verdict: self.verdict() }
    }

    /// The answer for an anomaly that was asked for by itself.
    pub(crate) fn pattern(self, kind: AnomalyKind) -> PatternResult {
        PatternResult { kind, verdict: self.verdict() }
    }

    fn verdict(self) -> Verdict {
        match self {
            Conclusion::Holds(witness) => Verdict::Satisfied(witness),
            Conclusion::Refuted(findings) => Verdict::Violated(findings),
            Conclusion::Unknown(undecided) => Verdict::Undecided(undecided),
            Conclusion::Inapplicable(reason) => Verdict::NotApplicable(reason),
            Conclusion::Open | Conclusion::Pass => {
                Verdict::Undecided(Undecided::new(Limit::NotSearched))
            }
        }
    }
}

impl From<Inapplicable> for Conclusion {
    fn from(reason: Inapplicable) -> Conclusion {
        Conclusion::Inapplicable(reason)
    }
}

/// For what is decided by a [`Checker`](crate::Checker) of a derived history.
impl From<Verdict> for Conclusion {
    fn from(verdict: Verdict) -> Conclusion {
        match verdict {
            Verdict::Satisfied(witness) => Conclusion::Holds(witness),
            Verdict::Violated(findings) => Conclusion::Refuted(findings),
            Verdict::Undecided(undecided) => Conclusion::Unknown(undecided),
            Verdict::NotApplicable(reason) => Conclusion::Inapplicable(reason),
            _ => Conclusion::Pass,
        }
    }
}
