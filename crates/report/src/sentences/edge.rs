//! Why one transaction comes before another.

use isolario_model::{
    Edge, EdgeKind, KeyAssumption, KeyId, Level, OpId, OpKind, Reason, Stamp, TxnId, VersionOrder,
};

use super::observed::{Change, change, condition, deed, fate, is_met, met, origin, saw, wrote};
use super::times::real_time;
use crate::names::Names;
use crate::txn_facts::stamp;

/// How deep arguments within arguments are spelt out. Nobody reads further, and the depth of a
/// proof is not ours to choose.
const DEEPEST: usize = 4;

/// One step of an argument: an edge, and why it must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentStep {
    /// The earlier transaction.
    pub from: TxnId,
    /// The later one.
    pub to: TxnId,
    /// The kind of edge.
    pub kind: EdgeKind,
    /// The key it is about, if it is about one.
    pub key: Option<KeyId>,
    /// Why, in a sentence.
    pub sentence: String,
    /// The steps that the sentence rests on, where it rests on others.
    pub because: Vec<ArgumentStep>,
    /// What those steps come to, where they show that the opposite is impossible.
    pub conclusion: Option<String>,
}

/// The argument that edges make, step by step.
pub fn argument(names: Names<'_>, edges: &[Edge]) -> Vec<ArgumentStep> {
    steps(names, edges, 0)
}

/// Why an edge must be there.
pub fn explain(names: Names<'_>, edge: &Edge) -> ArgumentStep {
    step(names, edge, 0)
}

/// The argument as people are told it: what was shown once is not shown again.
pub(crate) fn told(names: Names<'_>, edges: &[Edge]) -> Vec<ArgumentStep> {
    let mut argument = folded(names, argument(names, edges));
    shorten(&mut argument, &mut Vec::new());
    argument
}

/// The argument of a cycle as people are told it, and the contradiction that it ends in. Nothing where
/// there is no cycle.
pub(crate) fn refutation(names: Names<'_>, edges: &[Edge]) -> Option<(Vec<ArgumentStep>, String)> {
    let first = edges.first()?;
    Some(match &first.reason {
        // Nobody needs to be told that the beginning comes first.
        Reason::Initial => (
            told(names, &edges[1..]),
            format!("{} comes before the initial state", names.txn(first.to)),
        ),
        _ => (told(names, edges), format!("{} comes before itself", names.txn(first.from))),
    })
}

/// Puts steps along one session together: where one transaction comes long before another in their
/// session, nobody wants to read of each one between them.
fn folded(names: Names<'_>, steps: Vec<ArgumentStep>) -> Vec<ArgumentStep> {
    let mut folded: Vec<(ArgumentStep, usize)> = Vec::with_capacity(steps.len());
    for mut step in steps {
        step.because = self::folded(names, step.because);
        match folded.last_mut() {
            Some((last, length)) if is_along_session(last) && is_along_session(&step) => {
                last.to = step.to;
                *length += 1;
            }
            _ => folded.push((step, 1)),
        }
    }
    let told = |(step, length): (ArgumentStep, usize)| match length {
        1 => step,
        length => {
            let (from, to) = (names.txn(step.from), names.txn(step.to));
            let session = names.session(step.to);
            let sentence =
                format!("{to} comes {length} transactions after {from} in session {session}");
            ArgumentStep { sentence, ..step }
        }
    };
    folded.into_iter().map(told).collect()
}

fn is_along_session(step: &ArgumentStep) -> bool {
    step.kind == EdgeKind::Session
}

/// Drops what stands behind steps that came before. Arguments go no deeper than `DEEPEST`.
fn shorten(steps: &mut [ArgumentStep], shown: &mut Vec<(TxnId, TxnId, String)>) {
    for step in steps.iter_mut().filter(|step| !step.because.is_empty()) {
        let gist = (step.from, step.to, step.sentence.clone());
        if shown.contains(&gist) {
            step.sentence.push_str(" (shown above)");
            step.because.clear();
            step.conclusion = None;
        } else {
            shown.push(gist);
            shorten(&mut step.because, shown);
        }
    }
}

fn steps(names: Names<'_>, edges: &[Edge], depth: usize) -> Vec<ArgumentStep> {
    edges.iter().map(|edge| step(names, edge, depth)).collect()
}

fn step(names: Names<'_>, edge: &Edge, depth: usize) -> ArgumentStep {
    let mut sentence = sentence(names, edge);
    let support = edge.reason.support();
    let because = if depth < DEEPEST {
        steps(names, support, depth + 1)
    } else {
        if !support.is_empty() {
            sentence.push_str(" (the argument for this goes deeper)");
        }
        Vec::new()
    };
    let conclusion = refuted(&edge.reason)
        .filter(|_| !because.is_empty())
        .map(|first| format!("then {} would come before itself", names.txn(first.from)));
    let Edge { from, to, ref reason } = *edge;
    ArgumentStep { from, to, kind: reason.kind(), key: reason.key(), sentence, because, conclusion }
}

/// The first edge of the cycle that refutes the opposite, where that is the reason.
fn refuted(reason: &Reason) -> Option<&Edge> {
    match reason {
        Reason::Refuted { cycle }
        | Reason::Overwrite { known: VersionOrder::Refuted { cycle }, .. }
        | Reason::AntiDependency { known: VersionOrder::Refuted { cycle }, .. } => cycle.first(),
        _ => None,
    }
}

fn sentence(names: Names<'_>, edge: &Edge) -> String {
    let (from, to) = (names.txn(edge.from), names.txn(edge.to));
    match &edge.reason {
        Reason::Initial => format!("{from} comes before every transaction"),
        Reason::Session => format!("{to} follows {from} in session {}", names.session(edge.to)),
        Reason::RealTime { finish, start } => real_time(names, edge, *finish, *start),
        Reason::Read { key, read, .. } if is_met(names.history(), *read, *key) => {
            met_by(names, *read, *key, edge.from)
        }
        Reason::Read { key, read, write } => {
            format!("{to} {}, {}", saw(names, *read, *key), origin(names, edge.from, *write))
        }
        Reason::Overwrite { key, known } => overwrite(names, edge, *key, known),
        Reason::AntiDependency { key, read, writer, known } => {
            anti_dependency(names, edge, *key, *read, *writer, known)
        }
        Reason::Visible { rule, key, reader, read, path } => {
            visible(names, edge, *rule, *key, *reader, *read, path)
        }
        Reason::PredicateAntiDependency { read, key, write, evaluated: met } => {
            let missed = by_predicate(names, *read, *key, *write, false);
            match met {
                Some(met) if !met.writer.is_init() => {
                    let version = self::met(names, *key, met.writer);
                    let how = known_how(names, met.writer, edge.to, &met.known);
                    format!("{missed}: it met {version}, which is older{how}")
                }
                _ => missed,
            }
        }
        Reason::PredicateRead { read, key, write } => {
            by_predicate(names, *read, *key, *write, true)
        }
        Reason::StartDependency { op, snapshot } => started(names, edge, *op, *snapshot),
        Reason::Stated { at } => {
            format!("the stated order puts {from} before {to} (position {at})")
        }
        Reason::Refuted { .. } => {
            format!("{to} cannot come before {from}: that would close a cycle")
        }
        _ => format!("{from} comes before {to}"),
    }
}

/// What a predicate saw, or did not see, of a write that changes what it matches.
fn by_predicate(names: Names<'_>, read: OpId, key: KeyId, write: OpId, saw: bool) -> String {
    let (asked, row) = (condition(names, read), names.key(key));
    let (reader, writer) = (names.txn_of(read), names.txn_of(write));
    let Change { matches, deed, with } = change(names, read, key, write);
    match (saw, matches) {
        (false, true) => {
            format!("{reader}'s {asked} did not see {row}, which {writer} {deed}{with}")
        }
        (false, false) => {
            format!(
                "{reader}'s {asked} did not see that {writer} {deed} {row}{with}, which took it out"
            )
        }
        (true, true) => format!("{reader}'s {asked} met {row} as {writer} {deed} it{with}"),
        (true, false) => {
            format!(
                "{reader}'s {asked} met {row} after {writer} {deed} it{with}, which took it out"
            )
        }
    }
}

/// That a snapshot shows a transaction.
fn started(names: Names<'_>, edge: &Edge, op: OpId, snapshot: Stamp) -> String {
    let (from, reader) = (names.txn(edge.from), names.txn_of(op));
    let commit = names.history().db_commit(edge.from).map_or_else(String::new, |commit| {
        format!(
            " (the snapshot is that of {}, and the commit of {})",
            stamp(snapshot),
            stamp(commit)
        )
    });
    format!(
        "{reader}'s {} saw a snapshot in which {from} had committed{commit}",
        condition(names, op)
    )
}

/// Which version an operation met that it does not tell.
fn met_by(names: Names<'_>, read: OpId, key: KeyId, writer: TxnId) -> String {
    let (reader, asked) = (names.txn_of(read), condition(names, read));
    format!("{reader}'s {asked} met {}", met(names, key, writer))
}

fn overwrite(names: Names<'_>, edge: &Edge, key: KeyId, known: &VersionOrder) -> String {
    let later = format!("{} {}", names.txn(edge.to), deed(names, edge.to, key));
    let earlier = || format!("{} {}", names.txn(edge.from), deed(names, edge.from, key));
    match known {
        VersionOrder::Initial => format!("{later} over the initial value"),
        VersionOrder::ReadModifyWrite { read } if is_met(names.history(), *read, key) => {
            format!("{later} after it met {}", met(names, key, edge.from))
        }
        VersionOrder::ReadModifyWrite { read } => {
            let seen = saw(names, *read, key);
            let write = super::last_write(names.history(), edge.from, key);
            format!("{later} after it {seen}, {}", origin(names, edge.from, write))
        }
        VersionOrder::List { read } => {
            let reader = names.txn_of(*read);
            format!("{} before {later}, since {reader} {}", earlier(), saw(names, *read, key))
        }
        VersionOrder::AppendedLater { read } => {
            format!("{} before {later}, {}", earlier(), missing(names, edge.to, key, *read))
        }
        known => {
            let how = known_how(names, edge.from, edge.to, known);
            match edge.to.is_init() && matches!(known, VersionOrder::Guaranteed { .. }) {
                true => format!("{} before the initial value{how}", earlier()),
                false => format!("{later} after {}{how}", earlier()),
            }
        }
    }
}

fn anti_dependency(
    names: Names<'_>,
    edge: &Edge,
    key: KeyId,
    read: OpId,
    writer: TxnId,
    known: &VersionOrder,
) -> String {
    let reader = names.txn(edge.from);
    let seen = saw(names, read, key);
    let source = match writer {
        TxnId::INIT => ", the initial value".to_owned(),
        writer => format!(" from {}", names.txn(writer)),
    };
    let is_met = is_met(names.history(), read, key);
    let fate = match is_met {
        true => format!("before {} {}", names.txn(edge.to), deed(names, edge.to, key)),
        false => fate(names, edge.to, key),
    };
    let how = match known {
        VersionOrder::Initial => String::new(),
        VersionOrder::ReadModifyWrite { .. } if is_met => " over that version".to_owned(),
        VersionOrder::ReadModifyWrite { .. } => " after it had read it, too".to_owned(),
        VersionOrder::List { read } => {
            format!(", since {} {}", names.txn_of(*read), saw(names, *read, key))
        }
        VersionOrder::AppendedLater { read } => {
            format!(", {}", missing(names, edge.to, key, *read))
        }
        known => known_how(names, writer, edge.to, known),
    };
    match is_met {
        true => format!("{}, {fate}{how}", met_by(names, read, key, writer)),
        false => format!("{reader} {seen}{source}, {fate}{how}"),
    }
}

/// That a list read does not show what a transaction appended.
fn missing(names: Names<'_>, later: TxnId, key: KeyId, read: OpId) -> String {
    let (reader, later) = (names.txn_of(read), names.txn(later));
    format!("since {reader} {} without what {later} appended", saw(names, read, key))
}

/// How the order of two versions is known, as the end of a sentence that states it.
fn known_how(names: Names<'_>, earlier: TxnId, later: TxnId, known: &VersionOrder) -> String {
    match known {
        VersionOrder::Guaranteed { by, first, second } => guaranteed(names, *by, *first, *second),
        VersionOrder::Stated { at } => {
            format!(", by the stated version order (position {at})")
        }
        VersionOrder::Refuted { .. } => ": the other order would close a cycle".to_owned(),
        VersionOrder::Assumed => ", as supposed here".to_owned(),
        VersionOrder::Path { .. } => {
            format!(", since {} comes before {}", names.txn(earlier), names.txn(later))
        }
        _ => String::new(),
    }
}

/// That a key is assumed to order two accesses to it.
fn guaranteed(names: Names<'_>, by: KeyAssumption, first: OpId, second: OpId) -> String {
    let (earlier, later) = (names.txn_of(first), names.txn_of(second));
    let (did, then) = (access(names, first), access(names, second));
    let session = names.session(names.history().op_txn(second));
    match by {
        KeyAssumption::SequentialKeys if earlier == later => {
            format!(", by sequential keys: {earlier} {did} and then {then}")
        }
        KeyAssumption::SequentialKeys => format!(
            ", by sequential keys: {later} {then} after {earlier} {did} in session {session}"
        ),
        KeyAssumption::LinearizableKeys => format!(
            ", by linearizable keys: {earlier} {did} and finished before {later}, which {then}, began"
        ),
        _ => format!(", by {by}: {later} {then} after {earlier} {did}"),
    }
}

/// What an operation did to a register.
fn access(names: Names<'_>, op: OpId) -> String {
    let key = names.history().op_keys()[op.index()];
    match names.history().op_kinds()[op.index()] {
        OpKind::Read => saw(names, op, key),
        _ => wrote(names, op),
    }
}

fn visible(
    names: Names<'_>,
    edge: &Edge,
    rule: Level,
    key: KeyId,
    reader: TxnId,
    read: OpId,
    path: &[Edge],
) -> String {
    let source = match edge.to {
        TxnId::INIT => ", the initial value,".to_owned(),
        writer => format!(" from {}", names.txn(writer)),
    };
    let seen = format!("{} {}{source}", names.txn(reader), saw(names, read, key));
    let missed = format!("{}, which {}", names.txn(edge.from), deed(names, edge.from, key));
    match (rule, path) {
        (_, [Edge { reason: Reason::Session, .. }]) => {
            let (earlier, deed) = (names.txn(edge.from), deed(names, edge.from, key));
            format!("{seen} although {earlier}, earlier in its session, {deed}")
        }
        (Level::ReadCommitted, _) => format!("{seen} after it had read from {missed}"),
        (Level::ReadAtomic, _) => format!("{seen} although it also read from {missed}"),
        _ => format!("{seen} although it also depends on {missed}"),
    }
}
