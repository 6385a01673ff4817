//! What a read refers to where versions are told apart by value alone, and whether a history may
//! be written into a format that does so.

use isolario_model::{History, Initial, KeyId, Op, OpId, SinkError, ValueId, ValueRef, VersionRef};
use rustc_hash::FxHashMap;

use crate::narrow::inexpressible;

/// Whether a read of this value may refer to the initial state. `is_written` says whether anyone
/// writes the value to that key.
pub(crate) fn sees_initial(initial: &Initial, value: ValueRef<'_>, is_written: bool) -> bool {
    match initial {
        Initial::Value(first) => first.as_ref() == value,
        Initial::UnlessWritten(first) => !is_written && first.as_ref() == value,
        Initial::Unwritten => !is_written,
        _ => false,
    }
}

/// Refuses a history in which a read would refer to other writes, or differently to the initial
/// state, if versions were told by value and the initial state were `initial`.
///
/// A read refers to all writes of its version on its key, and perhaps to `init`. The format keeps
/// the meaning if those sets stay the same for every read; what nobody reads may change.
pub(crate) fn require_same_meaning(
    format: &'static str,
    history: &History,
    initial: &Initial,
) -> Result<(), SinkError> {
    let writes = Writes::count(history);
    for op in all_ops(history) {
        if let Op::Read { key, value: Some(value) } = history.op(op)
            && !writes.read_means_the_same(history, op, (key, value), initial)
        {
            let (key, value) = (history.key_name(key), history.value(value));
            let what = format!(
                "the read of {key} that returned {value}: \
                 there it would refer to another write, or to another initial state"
            );
            return Err(inexpressible(format, what));
        }
    }
    Ok(())
}

fn all_ops(history: &History) -> impl Iterator<Item = OpId> + use<> {
    (0..history.op_count()).map(OpId::at)
}

/// How many writes there are of each value and of each named version, per key.
#[derive(Default)]
struct Writes {
    by_value: FxHashMap<(KeyId, ValueId), u32>,
    /// Empty where versions are not named: they are the values then.
    by_version: FxHashMap<(KeyId, VersionRef), u32>,
    by_both: FxHashMap<(KeyId, VersionRef, ValueId), u32>,
}

impl Writes {
    fn count(history: &History) -> Writes {
        let mut writes = Writes::default();
        for op in all_ops(history) {
            let Op::Write { key, value } = history.op(op) else { continue };
            *writes.by_value.entry((key, value)).or_default() += 1;
            if let Some(version) = history.op_version(op) {
                *writes.by_version.entry((key, version)).or_default() += 1;
                *writes.by_both.entry((key, version, value)).or_default() += 1;
            }
        }
        writes
    }

    fn read_means_the_same(
        &self,
        history: &History,
        op: OpId,
        (key, value): (KeyId, ValueId),
        initial: &Initial,
    ) -> bool {
        let same_value = self.by_value.get(&(key, value)).copied().unwrap_or(0);
        let is_initial_in =
            |initial: &Initial| sees_initial(initial, history.value(value), same_value > 0);
        let (was_initial, has_same_writes) = match history.op_version(op) {
            Some(VersionRef::Initial) => (true, same_value == 0),
            Some(version) => {
                let same_version = self.by_version.get(&(key, version)).copied().unwrap_or(0);
                let same_both = self.by_both.get(&(key, version, value)).copied().unwrap_or(0);
                // Two finite sets are equal if each is as large as their intersection.
                (false, same_value == same_both && same_version == same_both)
            }
            None => (is_initial_in(history.initial()), true),
        };
        has_same_writes && was_initial == is_initial_in(initial)
    }
}

#[cfg(test)]
mod tests {
    use isolario_model::Value;

    use super::*;
    use crate::test_support::{history_of, read, version, write};

    fn may_become(history: &History, initial: &Initial) -> bool {
        require_same_meaning("test", history, initial).is_ok()
    }

    #[test]
    fn a_read_of_the_initial_value_needs_the_same_initial_value() {
        let zero = Initial::Value(Value::Int(0));
        let reads_zero = history_of(zero.clone(), &[&[write(1, 5)], &[read(1, 0), read(1, 5)]]);
        assert!(may_become(&reads_zero, &zero));
        assert!(may_become(&reads_zero, &Initial::Unwritten));
        assert!(!may_become(&reads_zero, &Initial::None));
        assert!(!may_become(&reads_zero, &Initial::Value(Value::Nil)));
    }

    #[test]
    fn a_client_that_writes_the_initial_value_makes_a_difference_only_where_it_is_read() {
        let zero = Initial::Value(Value::Int(0));
        let unless = Initial::UnlessWritten(Value::Int(0));
        let unread = history_of(unless.clone(), &[&[write(1, 0)], &[read(2, 0)]]);
        assert!(may_become(&unread, &zero));
        let read_back = history_of(unless.clone(), &[&[write(1, 0)], &[read(1, 0)]]);
        assert!(!may_become(&read_back, &zero));
        assert!(may_become(&read_back, &Initial::Unwritten));
    }

    #[test]
    fn thin_air_stays_thin_air() {
        let none = history_of(Initial::None, &[&[read(1, 7)]]);
        assert!(may_become(&none, &Initial::Value(Value::Int(0))));
        assert!(!may_become(&none, &Initial::Unwritten));
    }

    #[test]
    fn named_versions_must_be_as_fine_as_values() {
        let a = VersionRef::ByWriter { txn: 1, write: 1 };
        let b = VersionRef::ByWriter { txn: 2, write: 1 };
        let told_apart = [version(write(1, 5), a), version(write(1, 6), b)];
        let reads_a = [version(read(1, 5), a)];
        let distinct = history_of(Initial::Marked, &[&told_apart, &reads_a]);
        assert!(may_become(&distinct, &Initial::Unwritten));
        let same_value = [version(write(1, 5), a), version(write(1, 5), b)];
        let merged = history_of(Initial::Marked, &[&same_value, &reads_a]);
        assert!(!may_become(&merged, &Initial::Unwritten));
        let unread = history_of(Initial::Marked, &[&same_value]);
        assert!(may_become(&unread, &Initial::Unwritten));
        let initial = [version(read(1, 5), VersionRef::Initial)];
        let shown_as_written = history_of(Initial::Marked, &[&told_apart, &initial]);
        assert!(!may_become(&shown_as_written, &Initial::Unwritten));
    }
}
