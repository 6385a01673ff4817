//! How a read can be explained without breaking read consistency (AWDIT, Definition 2.3).

use isolario_model::{Outcome, ValueId};

use crate::small::{Read, Seen, Small, Write};

/// One consistent explanation of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// It returned its own transaction's last write of the key.
    Own,
    /// It returned the initial value of a register.
    Init,
    /// It returned what another transaction wrote to a register.
    Txn(usize),
    /// It returned the version of a list that has these elements, and its own appends after them.
    /// Which version that is, if any, only a commit order tells.
    List(Vec<u64>),
}

/// Whether a read has an explanation, as far as its own key tells without an order.
pub(crate) fn may_be_right(small: &Small, read: &Read) -> bool {
    let may_be_shown =
        |word: &u64| small.writes_of(read.key, *word).any(|w| is_of_others(small, read, &w));
    views(small, read).iter().any(|view| match view {
        View::List(shown) => shown.iter().all(may_be_shown),
        _ => true,
    })
}

/// Whether a write is another transaction's, which may have committed.
fn is_of_others(small: &Small, read: &Read, write: &Write) -> bool {
    write.txn != read.txn && small.outcomes[write.txn] != Outcome::Aborted
}

/// All consistent explanations of a read.
pub(crate) fn views(small: &Small, read: &Read) -> Vec<View> {
    match read.seen {
        Seen::Version(word) => {
            let initial = small.may_be_initial(read.key, word);
            register_views(small, read, &|other| other == word, initial)
        }
        Seen::Other(word) => {
            let initial = small.encoded_initial_version() != Some(word);
            register_views(small, read, &|other| other != word, initial)
        }
        Seen::Contradiction => Vec::new(),
        Seen::List(elements) => list_view(small, read, elements).into_iter().collect(),
    }
}

/// The own writes of the read's key before it.
fn own_before<'s>(small: &'s Small, read: &Read) -> impl Iterator<Item = Write> + use<'s> {
    let (txn, key, at) = (read.txn, read.key, read.at);
    let earlier = move |w: &&Write| w.txn == txn && w.key == key && w.at < at;
    small.writes.iter().filter(earlier).copied()
}

/// Of a read that saw one of such versions.
fn register_views(
    small: &Small,
    read: &Read,
    is_such: &dyn Fn(u64) -> bool,
    initial: bool,
) -> Vec<View> {
    if let Some(own) = own_before(small, read).last() {
        // Observe own writes: nothing else explains such a read.
        return if is_such(own.word) { vec![View::Own] } else { Vec::new() };
    }
    // Not the transaction's own later write (no future reads), and only last writes of others
    // (observe latest write) that did not abort. Whether a writer of unknown outcome committed is up
    // to the world.
    let may_be_seen = |w: &&Write| {
        w.key == read.key && is_such(w.word) && is_of_others(small, read, w) && !w.replaced
    };
    let of_others = small.writes.iter().filter(may_be_seen);
    let mut views: Vec<View> = of_others.map(|w| View::Txn(w.txn)).collect();
    if initial {
        views.push(View::Init);
    }
    views
}

/// A list must end with exactly the reader's own appends so far.
fn list_view(small: &Small, read: &Read, elements: &[ValueId]) -> Option<View> {
    let own: Vec<u64> = own_before(small, read).map(|w| w.word).collect();
    let words: Vec<u64> = elements.iter().map(|element| element.to_bits()).collect();
    words.strip_suffix(own.as_slice()).map(|others| View::List(others.to_vec()))
}
