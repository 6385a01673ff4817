//! Lists gone through once.
//!
//! Reads of a list are prefixes of one another, own appends left out, if they fit together. What
//! each prefix shows is worked out in one pass, instead of anew for every read.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use isolario_model::{KeyId, TxnId, ValueId};
use rustc_hash::FxHashMap;

use crate::lists::{Longest, elements_of, is_prefix, longest};
use crate::order::Order;

/// What is wrong with a list, if anything.
pub(crate) type Fault = Option<&'static str>;

/// What is wrong with each prefix of a list, and who appended what it shows.
#[derive(Debug)]
pub(crate) struct Scan {
    /// By length, from none to all of it.
    faults: Vec<Fault>,
    /// Per transaction, how many elements come before its first.
    first: FxHashMap<TxnId, usize>,
}

impl Scan {
    /// What is wrong with the first so many elements: they must show others' appends, of each
    /// transaction all, in program order.
    pub(crate) fn fault(&self, length: usize, reader: TxnId) -> Fault {
        if self.first.get(&reader).is_some_and(|before| *before < length) {
            return Some("it shows an own append that was not made yet, or shows it twice");
        }
        self.faults[length]
    }

    fn new(order: &Order<'_, '_>, key: KeyId, elements: &[ValueId]) -> Self {
        let mut scan = Scan { faults: vec![None], first: FxHashMap::default() };
        let mut shown: FxHashMap<TxnId, (Vec<ValueId>, usize)> = FxHashMap::default();
        let mut lasting: Fault = None;
        let mut incomplete = 0usize;
        for (at, element) in elements.iter().enumerate() {
            let writer = order.facts.appender(key, *element);
            if let Some(writer) = writer.filter(|_| lasting.is_none()) {
                scan.first.entry(writer).or_insert(at);
                let fresh = || (elements_of(order.facts, writer, key), 0);
                let (all, count) = shown.entry(writer).or_insert_with(fresh);
                lasting = match all.get(*count) {
                    _ if !order.contains(writer) => Some(STRANGER),
                    Some(expected) if expected == element => None,
                    _ => Some("it shows a transaction's appends in another order, or too often"),
                };
                incomplete += usize::from(*count == 0);
                *count += 1;
                incomplete -= usize::from(*count == all.len());
            } else if writer.is_none() {
                let nobody = "an element was appended by no transaction, or by several";
                lasting = lasting.or(Some(nobody));
            }
            let part = (incomplete > 0).then_some("it shows part of a transaction");
            scan.faults.push(lasting.or(part));
        }
        scan
    }
}

const STRANGER: &str = "it shows an append of a transaction that is not there";

/// The scans of the longest lists, made when first needed.
#[derive(Debug, Default)]
pub(crate) struct Scans<'h> {
    longest: OnceCell<Longest<'h>>,
    scanned: RefCell<FxHashMap<KeyId, Rc<Scan>>>,
}

impl<'h> Scans<'h> {
    /// The longest lists that the order's transactions read.
    pub(crate) fn longest(&self, order: &Order<'_, 'h>) -> &Longest<'h> {
        self.longest.get_or_init(|| longest(order))
    }

    /// The scan of a list read, or of the longest one, if that begins with it.
    pub(crate) fn of(&self, order: &Order<'_, 'h>, key: KeyId, elements: &[ValueId]) -> Rc<Scan> {
        match self.longest(order).get(&key) {
            Some((_, all)) if is_prefix(elements, all) => {
                let mut scanned = self.scanned.borrow_mut();
                Rc::clone(scanned.entry(key).or_insert_with(|| Rc::new(Scan::new(order, key, all))))
            }
            _ => Rc::new(Scan::new(order, key, elements)),
        }
    }
}
