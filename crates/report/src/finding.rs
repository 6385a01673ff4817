//! Every bug once: anomalies that are the same thing under several names become one finding.
//!
//! Levels are decided independently, so one bug is found again and again: as a cycle that begins at
//! another transaction, as an order of commits by one level's rule and as an overwritten read by
//! another's, as a lost update where one checker looks for those and as a general cycle where another
//! does not. People want to hear of it once, under the name that says most.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isolario_model::{
    Anomaly, AnomalyKind, Edge, EdgeKind, Evidence, History, KeyId, Level, LevelResult, LevelSet,
    OpId, TxnId, Verdict,
};

use crate::involved::{InvolvedTxn, involved_with};
use crate::report::Report;
use crate::show::KeyVersions;

/// A bug that a history shows: one anomaly, or several that are the same.
///
/// Renderers make one card of it: the name, the words and the picture are those of
/// [`Finding::anomaly`], the transactions are [`Finding::involved`], the levels
/// [`Finding::rules_out`], and [`Finding::also`] gives the other names it was found under
/// ([`sentences::other_names_of_finding`](crate::sentences::other_names_of_finding) spells out all of them,
/// each with its owner).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding<'h> {
    /// The anomaly that tells it: the one that explains most of the levels at which it was found, and of
    /// several the one whose name says most.
    pub anomaly: &'h Anomaly,
    /// The others, in the same order.
    pub also: Vec<&'h Anomaly>,
    /// All levels that one of them rules out.
    pub rules_out: LevelSet,
    /// The levels whose answers list one of them.
    pub found_at: LevelSet,
    /// The transactions that take part, with everyone who wrote a value that the argument speaks of,
    /// in the order in which the argument names them.
    pub involved: Vec<InvolvedTxn>,
    /// The keys it is about, the one that matters most first; none where it is about none.
    pub keys: Vec<KeyId>,
    /// Of a lost commit, the settings by which the server was to keep it, empty where they are not known.
    pub durability: Option<&'h str>,
}

impl<'h> Finding<'h> {
    /// A single anomaly, for whoever asked for it alone.
    pub fn alone(history: &'h History, anomaly: &'h Anomaly) -> Finding<'h> {
        let member = Member { anomaly, found_at: LevelSet::default() };
        let versions = versions(history, std::slice::from_ref(&member));
        Bug { members: vec![member], keys: BTreeSet::new() }.into_finding(history, &versions)
    }

    /// The name it is told under.
    pub fn kind(&self) -> AnomalyKind {
        self.anomaly.kind
    }

    /// All anomalies that are this bug, the telling one first.
    pub fn anomalies(&self) -> impl Iterator<Item = &'h Anomaly> {
        std::iter::once(self.anomaly).chain(self.also.iter().copied())
    }

    /// The anomaly that shows it at a level: the telling one, unless it rules out other levels only.
    pub fn at(&self, level: Level) -> &'h Anomaly {
        let rules_out = |anomaly: &&Anomaly| anomaly.rules_out.contains(level);
        let is_of_levels = |anomaly: &&Anomaly| anomaly.kind != AnomalyKind::LostCommit;
        let found = self.anomalies().find(rules_out);
        found.or_else(|| self.anomalies().find(is_of_levels)).unwrap_or(self.anomaly)
    }
}

/// What was found in a history: every bug once, in the order in which to tell of them.
///
/// Lost commits come before all else, and what violates a claim before what does not. Of each of these,
/// one of each kind comes first: who reads no further has seen everything that is wrong once. Of a
/// kind, what rests on data alone comes before what needs the order of a session. A renderer shows
/// the first [`Report::max_anomalies`] of the first [`ReportFindings::reported`] in full, lists all
/// [`ReportFindings::groups`], and takes every number from here, so that all renderers agree.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReportFindings<'h> {
    /// The findings.
    pub findings: Vec<Finding<'h>>,
    /// How many of them are to be told. Where no level was asked for, those behind them violate only
    /// levels stronger than the weakest that are violated.
    pub reported: usize,
    /// Whether there are no others in the history, as far as the decided levels forbid them.
    pub exact: bool,
}

/// The findings of one kind on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindingGroup {
    /// The kind.
    pub kind: AnomalyKind,
    /// The key that matters most.
    pub key: Option<KeyId>,
    /// The findings, by their position in [`ReportFindings::findings`].
    pub findings: Vec<usize>,
}

impl<'h> ReportFindings<'h> {
    /// What a report has to tell.
    pub fn of(report: &Report<'h>) -> ReportFindings<'h> {
        let mut members = members(report);
        let versions = versions(report.history, &members);
        let mut merge = Merge::default();
        for member in members.drain(..) {
            merge.add(report.history, &versions, member);
        }
        let weakest: LevelSet = report.weakest_violated().into_iter().collect();
        let is_told = |finding: &Finding<'_>| {
            !report.asked.weakest_only
                || finding.kind() == AnomalyKind::LostCommit
                || finding.found_at.iter().any(|level| weakest.contains(level))
        };
        let mut findings = merge.into_findings(report.history, &versions);
        for finding in findings.iter_mut().filter(|one| one.kind() == AnomalyKind::LostCommit) {
            finding.durability = report.lost.map(|lost| lost.durability);
        }
        let (told, rest): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_told);
        let count = told.len();
        let is_first =
            |finding: &Finding<'_>| report.asked.claim.is_empty() || report.counts(finding);
        let (first, told): (Vec<_>, Vec<_>) = told.into_iter().partition(is_first);
        let findings = [first, told, rest].into_iter().flat_map(one_of_each_kind_first).collect();
        ReportFindings { findings, reported: count, exact: exact(report) }
    }

    /// How many there are.
    pub fn total(&self) -> usize {
        self.findings.len()
    }

    /// Those that a renderer shows in full that shows at most so many.
    pub fn in_full(&self, most: usize) -> &[Finding<'h>] {
        &self.findings[..self.reported.min(most)]
    }

    /// Those that a level's answer lists.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &Finding<'h>> {
        self.findings.iter().filter(move |finding| finding.found_at.contains(level))
    }

    /// The names under which a level's answer tells them, each once, in the order in which to tell.
    pub fn kinds_of_level(&self, level: Level) -> Vec<AnomalyKind> {
        each_once(self.of_level(level).map(|finding| finding.at(level).kind))
    }

    /// How many of them a level's answer lists, with what it counted beyond its list.
    pub fn count_of(&self, result: &LevelResult) -> u64 {
        let unlisted = match &result.verdict {
            Verdict::Violated(findings) => {
                findings.total.saturating_sub(findings.anomalies.len() as u64)
            }
            _ => 0,
        };
        self.of_level(result.level).count() as u64 + unlisted
    }

    /// All findings by kind and key: the kinds in the order in which they are told, of a kind the key
    /// with most findings first.
    pub fn groups(&self) -> Vec<FindingGroup> {
        let mut kinds: Vec<AnomalyKind> = Vec::new();
        let mut groups: BTreeMap<(AnomalyKind, Option<KeyId>), Vec<usize>> = BTreeMap::new();
        for (at, finding) in self.findings.iter().enumerate() {
            if !kinds.contains(&finding.kind()) {
                kinds.push(finding.kind());
            }
            groups.entry((finding.kind(), finding.keys.first().copied())).or_default().push(at);
        }
        let place = |kind: AnomalyKind| kinds.iter().position(|known| *known == kind);
        let mut groups: Vec<FindingGroup> = groups
            .into_iter()
            .map(|((kind, key), findings)| FindingGroup { kind, key, findings })
            .collect();
        groups.sort_by_key(|group| {
            (place(group.kind), std::cmp::Reverse(group.findings.len()), group.findings[0])
        });
        groups
    }

    /// How many there are of each kind, in the order in which they are told.
    pub fn kinds(&self) -> Vec<(AnomalyKind, usize)> {
        let mut kinds: Vec<(AnomalyKind, usize)> = Vec::new();
        for finding in &self.findings {
            match kinds.iter_mut().find(|(kind, _)| *kind == finding.kind()) {
                Some((_, count)) => *count += 1,
                None => kinds.push((finding.kind(), 1)),
            }
        }
        kinds
    }
}

/// An anomaly, and the levels whose answers list it.
struct Member<'h> {
    anomaly: &'h Anomaly,
    found_at: LevelSet,
}

/// The anomalies of all answers, each once: results that have one in common share it.
fn members<'h>(report: &Report<'h>) -> Vec<Member<'h>> {
    let mut places: BTreeMap<*const Anomaly, usize> = BTreeMap::new();
    let mut members: Vec<Member<'h>> = Vec::new();
    for (level, verdict) in report.verdicts() {
        for anomaly in verdict.anomalies() {
            let at = *places.entry(Arc::as_ptr(anomaly)).or_insert_with(|| {
                members.push(Member { anomaly, found_at: LevelSet::default() });
                members.len() - 1
            });
            level.into_iter().for_each(|level| members[at].found_at.insert(level));
        }
    }
    members
}

/// Whether the answers know of everything that they forbid.
fn exact(report: &Report<'_>) -> bool {
    let verdicts = report.verdicts().map(|(_, verdict)| verdict);
    let mut violated = verdicts.filter_map(|verdict| match verdict {
        Verdict::Violated(findings) => Some(findings),
        _ => None,
    });
    violated.all(|findings| findings.exact && findings.total == findings.anomalies.len() as u64)
}

/// Who wrote what pairs of reads saw: their evidence does not say.
fn versions<'h>(history: &'h History, members: &[Member<'h>]) -> KeyVersions<'h> {
    let reads = members.iter().flat_map(|member| match member.anomaly.evidence {
        Evidence::Reads { first, second, .. } => vec![first, second],
        _ => Vec::new(),
    });
    KeyVersions::seen_by(history, reads)
}

/// What makes two anomalies candidates for being one bug.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    /// The same wrong read.
    Read(OpId),
    /// The same transactions, with everyone who wrote a value that the argument speaks of.
    Txns(Vec<TxnId>),
    /// A cycle of the same transactions.
    Cycle(Vec<TxnId>),
}

/// Anomalies on their way to findings.
#[derive(Default)]
struct Merge<'h> {
    bugs: Vec<Bug<'h>>,
    by_identity: BTreeMap<Identity, Vec<usize>>,
}

struct Bug<'h> {
    members: Vec<Member<'h>>,
    /// The keys that they are about, of the edges that edges rest on, too.
    keys: BTreeSet<KeyId>,
}

impl<'h> Merge<'h> {
    /// Adds an anomaly to the bug that it is, or as a new one. The same transactions may do two wrong
    /// things on different keys; with a key in common, it is one thing.
    fn add(&mut self, history: &'h History, versions: &KeyVersions<'h>, member: Member<'h>) {
        let keys = all_keys(history, member.anomaly);
        let identities = identities(history, versions, member.anomaly);
        let alike = identities.iter().filter_map(|identity| self.by_identity.get(identity));
        let same = alike.flatten().copied().find(|at| {
            let known = &self.bugs[*at].keys;
            known.is_empty() || keys.is_empty() || !known.is_disjoint(&keys)
        });
        let at = same.unwrap_or(self.bugs.len());
        if same.is_none() {
            self.bugs.push(Bug { members: Vec::new(), keys: BTreeSet::new() });
        }
        self.bugs[at].members.push(member);
        self.bugs[at].keys.extend(keys);
        for identity in identities {
            let known = self.by_identity.entry(identity).or_default();
            if !known.contains(&at) {
                known.push(at);
            }
        }
    }

    fn into_findings(self, history: &'h History, versions: &KeyVersions<'h>) -> Vec<Finding<'h>> {
        self.bugs.into_iter().map(|bug| bug.into_finding(history, versions)).collect()
    }
}

impl<'h> Bug<'h> {
    fn into_finding(mut self, history: &'h History, versions: &KeyVersions<'h>) -> Finding<'h> {
        let of_levels = |of: fn(&Member<'_>) -> LevelSet| {
            self.members.iter().map(of).fold(LevelSet::default(), LevelSet::union)
        };
        let (rules_out, found_at) =
            (of_levels(|member| member.anomaly.rules_out), of_levels(|member| member.found_at));
        self.members.sort_by_key(|Member { anomaly, .. }| {
            let explained = found_at.iter().filter(|level| anomaly.rules_out.contains(*level));
            let needs_session = anomaly.evidence.needs_session_order();
            let is_of_levels = anomaly.kind != AnomalyKind::LostCommit;
            let explained = std::cmp::Reverse(explained.count());
            (is_of_levels, explained, vagueness(anomaly.kind), needs_session)
        });
        // A bug begins with its first member.
        let anomaly = self.members[0].anomaly;
        Finding {
            anomaly,
            also: self.members[1..].iter().map(|member| member.anomaly).collect(),
            rules_out,
            found_at,
            involved: involved_with(history, anomaly, versions),
            keys: keys(history, anomaly),
            durability: None,
        }
    }
}

/// What an anomaly may share with another one that is the same bug. A cycle is known by its own
/// transactions, too: who shows that versions are in this order is not part of it, since others may
/// show it as well.
fn identities(history: &History, versions: &KeyVersions<'_>, anomaly: &Anomaly) -> Vec<Identity> {
    let in_order = |mut txns: Vec<TxnId>| {
        txns.sort_unstable();
        txns.dedup();
        txns
    };
    if let Evidence::Read { read, .. } | Evidence::Row { read, .. } = anomaly.evidence {
        return vec![Identity::Read(read)];
    }
    let involved = involved_with(history, anomaly, versions);
    let mut all = vec![Identity::Txns(in_order(involved.iter().map(|part| part.txn).collect()))];
    if let Evidence::Cycle { edges } = &anomaly.evidence {
        all.push(Identity::Cycle(in_order(edges.iter().map(|edge| edge.from).collect())));
    }
    // As far as levels can tell, the reader misses a write that came before it.
    if let Evidence::Lost { write, found, .. } = anomaly.evidence {
        all.push(Identity::Cycle(in_order(vec![history.op_txn(write), history.op_txn(found)])));
    }
    all
}

/// How little a name says: everyday names come before general cycles, and those before arguments
/// without a shape.
fn vagueness(kind: AnomalyKind) -> u8 {
    use AnomalyKind as A;
    match kind {
        A::LostUpdate | A::SessionGuaranteeViolation => 0,
        A::ReadWriteSkew => 2,
        A::SingleAntiDependency => 3,
        A::NonadjacentAntiDependencies => 4,
        A::ItemAntiDependencyCycle => 5,
        A::RealTimeCycle => 6,
        A::CyclicVersions => 7,
        A::OrderContradiction => 8,
        A::NoOrderPossible => 9,
        _ => 1,
    }
}

/// Kinds in the order in which they first come.
pub(crate) fn each_once(kinds: impl Iterator<Item = AnomalyKind>) -> Vec<AnomalyKind> {
    let mut known: Vec<AnomalyKind> = Vec::new();
    for kind in kinds {
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    known
}

fn one_of_each_kind_first(mut findings: Vec<Finding<'_>>) -> Vec<Finding<'_>> {
    findings.sort_by_key(|finding| {
        let is_of_levels = finding.kind() != AnomalyKind::LostCommit;
        (is_of_levels, finding.anomaly.evidence.needs_session_order())
    });
    let mut kinds = BTreeSet::new();
    let (first, further): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| kinds.insert(finding.kind()));
    first.into_iter().chain(further).collect()
}

/// The keys that an anomaly is about: what was missed comes before what was seen.
fn keys(history: &History, anomaly: &Anomaly) -> Vec<KeyId> {
    let edges = match &anomaly.evidence {
        Evidence::Read { read, .. } => return history.op(*read).key().into_iter().collect(),
        Evidence::Reads { key, .. }
        | Evidence::Row { key, .. }
        | Evidence::Operations { key, .. }
        | Evidence::Concurrent { key, .. }
        | Evidence::Lost { key, .. } => return vec![*key],
        Evidence::Unexpected { expected, .. } => {
            return expected.iter().map(|version| version.key).collect();
        }
        evidence => evidence.edges(),
    };
    let rank = |edge: &&Edge| match edge.reason.kind() {
        EdgeKind::CommitOrder => 0,
        EdgeKind::ReadWrite => 1,
        EdgeKind::WriteWrite => 2,
        _ => 3,
    };
    let mut edges: Vec<&Edge> = edges.iter().collect();
    edges.sort_by_key(rank);
    let mut known = BTreeSet::new();
    let keys = edges.into_iter().filter_map(|edge| edge.reason.key());
    keys.filter(|key| known.insert(*key)).collect()
}

/// The keys that any part of an argument speaks of.
fn all_keys(history: &History, anomaly: &Anomaly) -> BTreeSet<KeyId> {
    let mut keys: BTreeSet<KeyId> = keys(history, anomaly).into_iter().collect();
    keys.extend(anomaly.evidence.walk().filter_map(|edge| edge.reason.key()));
    keys
}

#[cfg(test)]
mod tests {
    use isolario_model::{Attempt, Findings, Reason, VersionOrder};

    use super::*;
    use crate::sentences::other_names_of_finding;
    use crate::testing::{History as Builder, edge, r, w};

    const X: KeyId = KeyId(0);
    const Y: KeyId = KeyId(1);

    /// T1 and T2 both read x and y, and both write both; T3 reads x of the one and then of the other.
    fn history() -> History {
        Builder::new()
            .txn(&[r("x", 0), r("y", 0), w("x", 1), w("y", 1)])
            .session()
            .txn(&[r("x", 0), r("y", 0), w("x", 2), w("y", 2)])
            .session()
            .txn(&[r("x", 1), r("x", 2)])
            .build()
    }

    fn rw(from: u32, to: u32, key: KeyId) -> Edge {
        let read = OpId(4 * from + key.0);
        let known = VersionOrder::Initial;
        edge(from, to, Reason::AntiDependency { key, read, writer: TxnId::INIT, known })
    }

    fn cycle(kind: AnomalyKind, edges: Vec<Edge>) -> Anomaly {
        Anomaly::new(kind, Evidence::Cycle { edges })
    }

    fn two_reads(kind: AnomalyKind, edges: Vec<Edge>) -> Anomaly {
        let (first, second) = (OpId(8), OpId(9));
        Anomaly::new(kind, Evidence::Reads { key: X, first, second, edges })
    }

    fn violated(level: Level, anomalies: Vec<Anomaly>) -> LevelResult {
        let verdict = Verdict::Violated(Findings::new(anomalies, true));
        LevelResult { level, decided_by: Attempt::Versions, verdict }
    }

    fn kinds(found: &ReportFindings<'_>) -> Vec<Vec<AnomalyKind>> {
        let of = |finding: &Finding<'_>| finding.anomalies().map(|anomaly| anomaly.kind).collect();
        found.findings.iter().map(of).collect()
    }

    #[test]
    fn rotations_and_other_names_of_the_same_transactions_are_one_finding() {
        use AnomalyKind as A;
        let history = history();
        let results = [
            violated(
                Level::SnapshotIsolation,
                vec![
                    cycle(A::SingleAntiDependency, vec![rw(1, 0, X), rw(0, 1, X)]),
                    cycle(A::ReadWriteSkew, vec![rw(0, 1, X), rw(1, 0, X)]),
                ],
            ),
            violated(
                Level::Serializable,
                vec![cycle(A::LostUpdate, vec![rw(0, 1, X), rw(1, 0, X)])],
            ),
        ];
        let report = Report::new("h", &history, &results);
        let found = report.found();
        assert_eq!(kinds(&found), [[A::LostUpdate, A::ReadWriteSkew, A::SingleAntiDependency]]);
        let finding = &found.findings[0];
        assert!(finding.found_at.contains(Level::SnapshotIsolation));
        assert_eq!(finding.at(Level::SnapshotIsolation).kind, A::LostUpdate);
        assert_eq!(found.of_level(Level::SnapshotIsolation).count(), 1);
        let names = other_names_of_finding(finding).join(", ");
        assert!(names.starts_with("LostUpdate, "), "{names}");
        assert!(names.contains("G1b (IsoRel)") && !names.contains("G1b,"), "{names}");
    }

    #[test]
    fn the_same_transactions_may_do_two_wrong_things_on_different_keys() {
        use AnomalyKind as A;
        let history = history();
        let on = |key| cycle(A::LostUpdate, vec![rw(0, 1, key), rw(1, 0, key)]);
        let results = [violated(Level::Serializable, vec![on(X), on(Y)])];
        let report = Report::new("h", &history, &results);
        let found = report.found();
        assert_eq!(found.total(), 2);
        let groups: Vec<_> = found.groups().iter().map(|group| (group.kind, group.key)).collect();
        assert_eq!(groups, [(A::LostUpdate, Some(X)), (A::LostUpdate, Some(Y))]);
        assert_eq!(found.kinds(), [(A::LostUpdate, 2)]);
        assert!(found.exact);
    }

    #[test]
    fn who_wrote_what_two_reads_saw_takes_part_and_makes_one_bug_of_two_names() {
        use AnomalyKind as A;
        let history = history();
        let read = Reason::Read { key: X, read: OpId(8), write: Some(OpId(2)) };
        let edges = vec![edge(0, 2, read), edge(1, 2, Reason::Session)];
        let results = [
            violated(Level::CutIsolation, vec![two_reads(A::NonRepeatableRead, vec![])]),
            violated(Level::ReadCommitted, vec![two_reads(A::NonMonotonicRead, edges)]),
        ];
        let report = Report::new("h", &history, &results);
        let found = report.found();
        assert_eq!(kinds(&found), [[A::NonMonotonicRead, A::NonRepeatableRead]]);
        let mut txns: Vec<u32> = found.findings[0].involved.iter().map(|part| part.txn.0).collect();
        txns.sort_unstable();
        assert_eq!(txns, [0, 1, 2]);
    }

    #[test]
    fn without_a_question_only_the_weakest_levels_are_told_of() {
        use AnomalyKind as A;
        let history = history();
        let results = [
            violated(Level::CutIsolation, vec![two_reads(A::NonRepeatableRead, vec![])]),
            violated(
                Level::Serializable,
                vec![cycle(A::LostUpdate, vec![rw(0, 1, Y), rw(1, 0, Y)])],
            ),
        ];
        let report = Report::new("h", &history, &results);
        assert_eq!((report.found().total(), report.found().reported), (2, 2));
        let found = report.with_weakest_only(true).found();
        assert_eq!((found.total(), found.reported), (2, 1));
        assert_eq!(found.in_full(10)[0].kind(), A::NonRepeatableRead);
    }
}
