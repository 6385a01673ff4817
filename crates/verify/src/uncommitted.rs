//! Read uncommitted: versions in an order of the transactions, whatever else reads saw.
//!
//! Reads may be dirty. Of a list, elements whose appends are not in the order mean nothing; what
//! remains shows in which order transactions appended: of each everything, but for the last one that
//! is shown, and nobody is left out before it, since lists never forget. Who read a register and then
//! wrote it wrote the later version, unless statements say the reverse. A version is the last write of its
//! key by its transaction, so a read of an earlier write says nothing.

use isolario_model::{KeyId, OpId, OpKind, TxnId, ValueId};

use crate::facts::Facts;
use crate::order::Order;
use crate::writers::Writers;
use crate::{Refusal, lists};

/// Refuses an order of commits that the versions of some key do not follow.
pub(crate) fn verify(order: &Order<'_, '_>) -> Result<(), Refusal> {
    for txn in order.txns {
        order
            .facts
            .reads(*txn)
            .try_for_each(|read| follows_what_it_overwrote(order, *txn, read))?;
    }
    if !order.facts.has_lists() {
        return Ok(());
    }
    let writers = Writers::new(order);
    let longest = longest(order)?;
    let keys = (0..order.facts.history.key_count()).map(KeyId::at);
    keys.zip(longest).try_for_each(|(key, list)| match list {
        None => Ok(()),
        Some(list) if explains(order, writers.of_key(key), key, &list.elements) => Ok(()),
        Some(List { read, .. }) => {
            let why = "it shows elements in another order, or leaves one out";
            Err(Refusal::Unexplained { read, why })
        }
    })
}

/// Refuses an order that has a transaction before all those of which it may have read a register that
/// it then wrote.
fn follows_what_it_overwrote(
    order: &Order<'_, '_>,
    second: TxnId,
    read: OpId,
) -> Result<(), Refusal> {
    let facts = order.facts;
    let is_register = facts.history.op_kinds()[read.index()] == OpKind::Read;
    let overwrites = facts.own_before(read).is_none() && facts.writes_key(second, facts.key(read));
    if !is_register || !overwrites || facts.may_be_initial(read) {
        return Ok(());
    }
    let may_be_first = |writer: TxnId| {
        !order.contains(writer)
            || writer == second
            || !facts.is_of_version(read, writer)
            || order.place(writer) < order.place(second)
            || facts.is_stated(facts.key(read), second, writer)
    };
    let writers: Vec<TxnId> = facts.candidates(read).map(|write| facts.txn(write)).collect();
    match writers.first() {
        Some(first) if !writers.iter().any(|writer| may_be_first(*writer)) => {
            let why = "the later one overwrote what the earlier one had written";
            Err(Refusal::OutOfOrder { first: *first, second, why })
        }
        _ => Ok(()),
    }
}

/// What is left of a list read.
struct List {
    read: OpId,
    elements: Vec<ValueId>,
}

/// Per key, the list read of which most is left, if there is one. Refuses reads of which neither begins
/// the other.
fn longest(order: &Order<'_, '_>) -> Result<Vec<Option<List>>, Refusal> {
    let facts = order.facts;
    let keys = facts.history.key_count();
    // Most reads are prefixes of one list: of these, the longest is enough.
    let mut pooled: Vec<Option<(OpId, &[ValueId])>> = vec![None; keys];
    let mut others = Vec::new();
    for read in order.txns.iter().flat_map(|txn| facts.reads(*txn)) {
        let Some((key, elements)) = lists::shown(facts, read) else { continue };
        if lists::is_prefix(elements, facts.history.list_pool(key)) {
            let known = &mut pooled[key.index()];
            if known.is_none_or(|(_, other)| other.len() < elements.len()) {
                *known = Some((read, elements));
            }
        } else {
            others.push((key, read, elements));
        }
    }
    let is_kept = |key: KeyId, element: ValueId| {
        facts.appends(key, element).any(|append| order.contains(facts.txn(append)))
    };
    let rest = |key: KeyId, read: OpId, elements: &[ValueId]| {
        let elements = elements.iter().copied().filter(|element| is_kept(key, *element));
        List { read, elements: elements.collect() }
    };
    let mut longest: Vec<Option<List>> = Vec::with_capacity(keys);
    for (at, list) in pooled.into_iter().enumerate() {
        longest.push(list.map(|(read, elements)| rest(KeyId::at(at), read, elements)));
    }
    for (key, read, elements) in others {
        let list = rest(key, read, elements);
        let known = &mut longest[key.index()];
        match known {
            Some(known) if known.elements.starts_with(&list.elements) => {}
            Some(known) if !list.elements.starts_with(&known.elements) => {
                let (first, second) = (known.read.min(read), known.read.max(read));
                return Err(Refusal::Disagree { first, second });
            }
            known => *known = Some(list),
        }
    }
    Ok(longest)
}

/// Whether a list shows what these writers appended, one after the other. Those of one writer may stand in
/// any order among themselves.
fn explains(order: &Order<'_, '_>, writers: &[u32], key: KeyId, list: &[ValueId]) -> bool {
    let facts: &Facts<'_> = order.facts;
    let mut rest = list;
    for writer in writers {
        if rest.is_empty() {
            return true;
        }
        let mut appended = lists::elements_of(facts, order.txns[*writer as usize], key);
        let (shown, later) = rest.split_at(rest.len().min(appended.len()));
        for element in shown {
            match appended.iter().position(|other| other == element) {
                Some(at) => appended.swap_remove(at),
                None => return false,
            };
        }
        rest = later;
    }
    rest.is_empty()
}
