//! Validation: what is odd about a history before any level is checked.

use isolario_predicate::Predicate;
use rayon::prelude::*;

use crate::access::Effect;
use crate::distinct::DistinctnessCheck;
use crate::duplicates::Duplicates;
use crate::op::OpKind;
use crate::remark::{Oddity, Remark, Tally, beginning, missing_column, over};
use crate::sink::Initial;
use crate::{History, KeyId, Op, OpId, TxnId};

impl History {
    /// Looks for what contradicts or weakens the history. Never fails: it reports.
    ///
    /// There is one remark per kind of problem, the gravest first, each with an exact count and
    /// its first few examples. Transactions of any outcome count.
    pub fn validate(&self) -> Vec<Remark> {
        let ((names, times), (duplicates, (initial, mixed))) = rayon::join(
            || (check_names(self), check_times(self)),
            || (duplicate_values(self), (initial_values(self), mixed_keys(self))),
        );
        let [two_sessions, repeated] = names;
        let mut reversed = Tally::default();
        self.contradictory_times().iter().for_each(|bad| {
            reversed.add(Oddity::FinishBeforeStart { txn: bad.txn });
        });
        let about_txns = [reversed, times, empty_txns(self)];
        let found = [two_sessions, repeated, duplicates, initial, mixed].into_iter();
        let found = found.chain(check_predicates(self)).chain(about_txns);
        found.filter_map(Remark::new).collect()
    }
}

/// Names in two sessions, and names twice in one.
fn check_names(history: &History) -> [Tally<Oddity>; 2] {
    let mut two_sessions = Tally::default();
    let mut repeated = Tally::default();
    let named = |txn: TxnId| Some((history.txns.names.get(txn.index())?.to_bits(), txn));
    let mut names: Vec<(u64, TxnId)> = history.txns().filter_map(named).collect();
    // Most tools number transactions, session by session or one after the other.
    if names.is_sorted_by(|a, b| a.0 < b.0) || are_different(names.iter().map(|name| name.0)) {
        return [two_sessions, repeated];
    }
    names.par_sort_unstable();
    // Ids follow sessions, so the transactions of a name are in order of session.
    for same in names.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        let first = same[0].1;
        let elsewhere =
            |(_, txn): &&(u64, TxnId)| history.session_of(*txn) != history.session_of(first);
        if let Some((_, second)) = same.iter().find(elsewhere) {
            two_sessions.add(Oddity::TwoSessions { first, second: *second });
        }
        for pair in same.windows(2) {
            let (first, second) = (pair[0].1, pair[1].1);
            if history.session_of(first) == history.session_of(second) {
                repeated.add(Oddity::RepeatedName { first, second });
            }
        }
    }
    [two_sessions, repeated]
}

/// Whether words are known to be all different.
fn are_different(words: impl ExactSizeIterator<Item = u64>) -> bool {
    let mut distinct = DistinctnessCheck::of_about(words.len());
    words.for_each(|word| distinct.take_if(true, word));
    distinct.are_different()
}

/// Transactions that begin before their predecessor is over.
fn check_times(history: &History) -> Tally<Oddity> {
    let mut back_in_time = Tally::default();
    if !history.has_times() {
        return back_in_time;
    }
    for session in history.sessions() {
        let mut last: Option<(TxnId, i64)> = None;
        for txn in history.session_txns(session) {
            if let Some((previous, until)) = last
                && beginning(history, txn).is_some_and(|(_, from)| from < until)
            {
                back_in_time.add(Oddity::BackInTime { previous, txn });
            }
            last = over(history, txn).map(|(_, until)| (txn, until)).or(last);
        }
    }
    back_in_time
}

fn duplicate_values(history: &History) -> Tally<Oddity> {
    if Duplicates::are_ruled_out(history) {
        return Tally::default();
    }
    Duplicates::of(history).repeated.map(|duplicate| Oddity::DuplicateValue {
        first: duplicate.first,
        second: duplicate.second,
        key: duplicate.key,
    })
}

/// How many operations one task looks at.
const OPS_PER_TASK: usize = 1 << 16;

/// Writes of the value that registers hold at first. Not a problem where the format says that
/// reads then refer to the client's write, nor where versions are named, nor where a delete leaves
/// nothing behind, as it was at first.
fn initial_values(history: &History) -> Tally<Oddity> {
    let (Initial::Value(_), Some(word)) = (history.initial(), history.encoded_initial_version())
    else {
        return Tally::default();
    };
    let initial = Effect::Wrote(word);
    let check = |mut found: Tally<Oddity>, op: usize| {
        let id = OpId::at(op);
        // Lists begin empty, whatever registers hold; and who deletes, by key or by predicate, means it.
        let is_meant = [OpKind::Append, OpKind::Delete, OpKind::PredicateWrite];
        if !is_meant.contains(&history.op_kinds()[op]) {
            history.effects(id, |key, effect| {
                if effect == initial {
                    found.add(Oddity::InitialValueWritten { op: id, key });
                }
            });
        }
        found
    };
    (0..history.op_count())
        .into_par_iter()
        .with_min_len(OPS_PER_TASK)
        .fold(Tally::default, check)
        .reduce(Tally::default, Tally::merge)
}

/// The first uses of a key.
#[derive(Clone, Copy, Default)]
struct Uses {
    register: Option<OpId>,
    list: Option<OpId>,
}

/// Keys used both as registers and as lists.
fn mixed_keys(history: &History) -> Tally<Oddity> {
    let mut found = Tally::default();
    if !history.op_kinds().iter().copied().any(is_list) {
        return found;
    }
    let mut uses = vec![Uses::default(); history.key_count()];
    for (op, kind) in history.op_kinds().iter().enumerate() {
        let op = OpId::at(op);
        history.touches(op, |key| {
            let uses = &mut uses[key.index()];
            let first = if is_list(*kind) { &mut uses.list } else { &mut uses.register };
            first.get_or_insert(op);
        });
    }
    for (key, uses) in uses.iter().enumerate() {
        if let (Some(register), Some(list)) = (uses.register, uses.list) {
            found.add(Oddity::MixedKey { key: KeyId::at(key), register, list });
        }
    }
    found
}

fn is_list(kind: OpKind) -> bool {
    matches!(kind, OpKind::Append | OpKind::ReadList | OpKind::ReadListUnobserved)
}

/// Rows that are there twice or lack what their predicate asks about, and predicates that nobody
/// can evaluate.
fn check_predicates(history: &History) -> [Tally<Oddity>; 3] {
    let (mut repeated, mut missing, mut unparsed) = Default::default();
    let mut is_known = vec![false; history.predicates().len()];
    if is_known.is_empty() {
        return [repeated, missing, unparsed];
    }
    history.repeated_rows().for_each(|(op, key)| repeated.add(Oddity::RepeatedRow { op, key }));
    for op in (0..history.op_count()).map(OpId::at) {
        let Some(predicate) = history.op_predicate(op) else { continue };
        if !std::mem::replace(&mut is_known[predicate.index()], true)
            && matches!(history.predicate(predicate), Predicate::Unparsed(_))
        {
            unparsed.add(Oddity::UnparsedPredicate { op, predicate });
        }
        let (Op::PredicateRead { rows, .. } | Op::PredicateWrite { rows, .. }) = history.op(op)
        else {
            continue;
        };
        for row in rows.unwrap_or_default() {
            let key = row.key;
            if missing_column(history, op, row).is_some() {
                missing.add(Oddity::MissingColumn { op, key });
            }
        }
    }
    [repeated, missing, unparsed]
}

fn empty_txns(history: &History) -> Tally<Oddity> {
    let mut found = Tally::default();
    for txn in history.txns().filter(|txn| history.op_range(*txn).is_empty()) {
        found.add(Oddity::Empty { txn });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Txn, batch, history, int, read, select, timed, txn, update, write};
    use crate::{
        Batch, Meta, Outcome, Predicate, RowInput, Severity, TupleParts, TxnSink, Value, ValueRef,
    };
    use isolario_predicate::{Comparison, Expr};

    /// The name, count and sentence of every remark.
    fn found(history: &History) -> Vec<(&'static str, usize, String)> {
        let tell = |f: &Remark| (f.name(), f.count, f.describe(history));
        history.validate().iter().map(tell).collect()
    }

    fn sentences(txns: &[Txn<'_>]) -> Vec<(&'static str, usize, String)> {
        found(&history(txns))
    }

    fn one(name: &'static str, count: usize, text: &str) -> Vec<(&'static str, usize, String)> {
        vec![(name, count, text.to_owned())]
    }

    #[test]
    fn an_empty_history_and_a_clean_one_have_no_findings() {
        assert_eq!(sentences(&[]), []);
        let ops = [[write(1, 1), read(1, 1)], [read(1, 1), write(1, 2)]];
        let named = |session, name, i: usize| {
            let (start, finish) = (Some(10 * name), Some(10 * name + 10));
            Txn { session, name: Some(name), start, finish, ..txn(&ops[i]) }
        };
        // Back to back in a session is not back in time.
        assert_eq!(sentences(&[named("a", 1, 0), named("b", 7, 1)]), []);
        assert_eq!(sentences(&[named("a", 7, 0), named("a", 8, 1)]), []);
    }

    #[test]
    fn a_name_in_two_sessions_is_fatal() {
        let op = [read(1, 1)];
        let named = |session, name| Txn { session, name: Some(name), ..txn(&op) };
        let txns = [named("a", 7), named("b", 3), named("b", 7), named("c", 7)];
        let text = "transaction 7 (line 1) is in session a, transaction 7 (line 3) in session b";
        assert_eq!(sentences(&txns), one("two-sessions", 1, text));
        assert_eq!(history(&txns).validate()[0].severity(), Severity::Fatal);
    }

    #[test]
    fn a_name_twice_in_a_session_is_a_warning() {
        let op = [read(1, 1)];
        let named = |name| Txn { name: Some(name), ..txn(&op) };
        let txns = [named(7), named(8), named(7), named(7)];
        let text = "transaction 7 (line 1) and transaction 7 (line 3) of session s have the same \
                    name (the first of 2 cases)";
        assert_eq!(sentences(&txns), one("repeated-name", 2, text));
        assert_eq!(history(&txns).validate()[0].severity(), Severity::Warning);
    }

    #[test]
    fn duplicate_values_name_both_writers_whatever_their_outcome() {
        let ops = [[write(1, 5)], [write(1, 5)], [write(2, 5)]];
        let aborted = Txn { outcome: Outcome::Aborted, name: Some(4), ..txn(&ops[1]) };
        let text = "transaction #0 (line 1) and transaction 4 (line 2) both write 5 to key 1";
        let txns = [txn(&ops[0]), aborted, txn(&ops[2])];
        assert_eq!(sentences(&txns), one("duplicate-value", 1, text));
        let text = "transaction #0 (line 1) writes 5 to key 1 twice";
        assert_eq!(sentences(&[txn(&[write(1, 5); 2])]), one("duplicate-value", 1, text));
    }

    #[test]
    fn duplicates_of_rows_and_conditionals_show_their_values() {
        let rows = [RowInput::new(2, 6), RowInput::new(1, 5)];
        let ops = [
            update(Some(&rows)),
            Op::CompareAndSet {
                key: int(1),
                expected: int(3),
                new: int(5),
                applied: Some(true),
                seen: None,
            },
        ];
        let text = "transaction #0 (line 1) writes 5 to key 1 twice";
        assert_eq!(sentences(&[txn(&ops)]), one("duplicate-value", 1, text));
    }

    #[test]
    fn many_problems_of_a_kind_are_one_remark_with_the_first_few() {
        let ops: Vec<_> = (0..5000).map(|i| write(i % 1000, 1)).collect();
        let history = history(&[txn(&ops)]);
        let remarks = history.validate();
        assert_eq!(remarks.len(), 1);
        assert_eq!(remarks[0].count, 1000);
        let firsts: Vec<_> = remarks[0].examples().collect();
        let expected = |i: u32| Oddity::DuplicateValue {
            first: OpId(i),
            second: OpId(i + 1000),
            key: KeyId(i),
        };
        assert_eq!(firsts, (0..10).map(expected).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    }

    fn with_initial(initial: Initial, ops: &[crate::OpInput<'_>]) -> History {
        let mut with_meta: Batch = batch(&[txn(ops)]);
        with_meta.meta(&Meta { initial, ..Meta::default() }).unwrap();
        with_meta.build().unwrap()
    }

    #[test]
    fn a_write_of_the_initial_value_is_a_warning_where_it_is_ambiguous() {
        let ops = [write(1, 0), Op::Append { key: int(2), element: int(0) }];
        let zero = Value::Int(0);
        let text = "transaction #0 (line 1) writes 0 to key 1, which is its initial value";
        let ambiguous = with_initial(Initial::Value(zero.clone()), &ops);
        assert_eq!(found(&ambiguous), one("initial-value-written", 1, text));
        for initial in [Initial::UnlessWritten(zero), Initial::Unwritten, Initial::None] {
            assert_eq!(found(&with_initial(initial, &ops)), []);
        }
        let text = "transaction #0 (line 1) writes nil to key 1, which is its initial value";
        let nil = Op::Write { key: int(1), value: ValueRef::Nil };
        let written = with_initial(Initial::Value(Value::Nil), &[nil]);
        assert_eq!(found(&written), one("initial-value-written", 1, text));
        let delete = with_initial(Initial::Value(Value::Nil), &[Op::Delete { key: int(1) }]);
        assert_eq!(found(&delete), []);
    }

    #[test]
    fn a_key_is_a_register_or_a_list() {
        let rows = [RowInput::new(1, 9)];
        let append = [Op::Append { key: int(1), element: int(3) }];
        let select = [select(Some(&rows))];
        let list = [Op::ReadList { key: int(2), elements: None }];
        let txns = [txn(&append), txn(&list), txn(&select)];
        let text = "key 1 is a register in transaction #2 (line 3) and a list in transaction #0 \
                    (line 1)";
        assert_eq!(sentences(&txns), one("mixed-key", 1, text));
    }

    #[test]
    fn rows_twice_rows_without_a_column_and_texts_for_predicates_are_warnings() {
        let is_rich = Expr::column("balance").compare(Comparison::Less, Expr::column("id"));
        let rich = Predicate::rows("accounts", is_rich.unwrap()).unwrap();
        let key = TupleParts { table: "accounts", columns: &[("id", int(1))] };
        let whole = TupleParts { table: "", columns: &[("balance", int(5))] };
        let part = TupleParts { table: "", columns: &[("owner", int(5))] };
        let row = |held| RowInput::new(&key, held);
        let ask = |rows| [Op::PredicateRead { predicate: &rich, rows: Some(rows) }];
        let ordinary = [row(ValueRef::from(&whole))];
        // The key has the column that the value lacks; a bare value has no columns to lack.
        assert_eq!(sentences(&[txn(&ask(&ordinary))]), []);
        let bare = [row(int(5))];
        assert_eq!(sentences(&[txn(&ask(&bare))]), []);
        let text = "a predicate operation of transaction #0 (line 1) has row accounts(id=1) twice";
        let twice = [row(ValueRef::from(&whole)); 2];
        assert_eq!(sentences(&[txn(&ask(&twice))]), one("repeated-row", 1, text));
        assert_eq!(sentences(&[txn(&ask(&ordinary)), txn(&ask(&ordinary))]), []);
        let text = "row accounts(id=1) of transaction #0 (line 1) lacks column balance, which the \
                    predicate refers to";
        let lacking = [row(ValueRef::from(&part))];
        assert_eq!(sentences(&[txn(&ask(&lacking))]), one("missing-column", 1, text));
        let text = "predicate `avg(x) > 1` of transaction #0 (line 1) cannot be parsed, and is \
                    kept as text";
        let predicate = &Predicate::unparsed("avg(x) > 1");
        let unparsed = [Op::PredicateRead { predicate, rows: None }; 2];
        assert_eq!(sentences(&[txn(&unparsed)]), one("unparsed-predicate", 1, text));
    }

    /// The remarks about times: the timed transactions here are all empty.
    fn about_times(txns: &[Txn<'_>]) -> Vec<(&'static str, usize, String)> {
        let mut all = sentences(txns);
        let (name, count, _) = all.pop().unwrap();
        assert_eq!((name, count), ("empty-transaction", txns.len()));
        all
    }

    #[test]
    fn times_that_run_backwards_are_warnings() {
        let text =
            "transaction #0 (line 1) finishes at 5, before its start at 9: both times are left out";
        assert_eq!(about_times(&[timed("a", 9, 5)]), one("finish-before-start", 1, text));
        let text = "transaction #1 (line 2) starts at 8, although transaction #0 (line 1), before \
                    it in session a, finished at 9";
        let txns = [timed("a", 5, 9), timed("a", 8, 20), timed("b", 6, 7)];
        assert_eq!(about_times(&txns), one("back-in-time", 1, text));
    }

    #[test]
    fn missing_times_are_skipped_and_unknown_ends_may_come_late() {
        let timeless = Txn { session: "a", ..txn(&[]) };
        let text = "transaction #2 (line 3) finishes at 8, although transaction #0 (line 1), \
                    before it in session a, finished at 9";
        let late = Txn { start: None, ..timed("a", 0, 8) };
        assert_eq!(about_times(&[timed("a", 5, 9), timeless, late]), one("back-in-time", 1, text));
        let unknown = Txn { outcome: Outcome::Unknown, ..timed("a", 5, 90) };
        assert_eq!(about_times(&[unknown, timed("a", 8, 9)]), []);
        let text = "transaction #1 (line 2) starts at 4, although transaction #0 (line 1), before \
                    it in session a, started at 5";
        assert_eq!(about_times(&[unknown, timed("a", 4, 9)]), one("back-in-time", 1, text));
    }

    #[test]
    fn the_gravest_come_first() {
        let op = [write(1, 5)];
        let named = |session, name, ops| Txn { session, name: Some(name), ..txn(ops) };
        let txns = [named("a", 1, &op[..]), named("a", 2, &[]), named("b", 1, &op)];
        let severities: Vec<_> = history(&txns).validate().iter().map(Remark::severity).collect();
        assert_eq!(severities, [Severity::Fatal, Severity::Warning, Severity::Note]);
    }
}
