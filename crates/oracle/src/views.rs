//! How a read can be explained: the transactions it may have read from without breaking read
//! consistency (AWDIT, Definition 2.3).

use isolario_model::ValueId;

use crate::small::{Read, Seen, Small, Txns, Write, bit};

/// One consistent explanation of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The transaction it read from.
    pub(crate) from: Source,
    /// Who must have committed for it: everyone whose writes it shows.
    pub(crate) needs: Txns,
    /// The appends that a list shows, the reader's own left out; empty for registers.
    pub(crate) appends: Vec<Write>,
}

/// Where a read came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The reader itself.
    Own,
    /// The initial state.
    Init,
    /// Another transaction.
    Txn(usize),
}

/// All consistent explanations of a read.
pub(crate) fn views(small: &Small, read: &Read) -> Vec<View> {
    match read.seen {
        Seen::Version(word) => register_views(small, read, word),
        Seen::List(elements) => list_views(small, read, elements),
    }
}

/// The own writes of the read's key before it.
fn own_before<'s>(small: &'s Small, read: &Read) -> impl Iterator<Item = Write> + use<'s> {
    let (txn, key, at) = (read.txn, read.key, read.at);
    let earlier = move |w: &&Write| w.txn == txn && w.key == key && w.at < at;
    small.writes.iter().filter(earlier).copied()
}

fn register_views(small: &Small, read: &Read, word: u64) -> Vec<View> {
    let view = |from, needs| View { from, needs, appends: Vec::new() };
    if let Some(own) = own_before(small, read).last() {
        // Observe own writes: nothing else explains such a read.
        return if own.word == word { vec![view(Source::Own, 0)] } else { Vec::new() };
    }
    // Not the transaction's own later write (no future reads), and only last writes of others
    // (observe latest write). That the writer committed is up to the world.
    let of_others = small.writes_of(read.key, word).filter(|w| w.txn != read.txn && !w.replaced);
    let mut views: Vec<View> = of_others.map(|w| view(Source::Txn(w.txn), bit(w.txn))).collect();
    if small.may_be_initial(read.key, word) {
        views.push(view(Source::Init, 0));
    }
    views
}

/// A list must end with exactly the reader's own appends so far. What comes before shows appends
/// of others: each at most once, and of a transaction all or none, in program order.
fn list_views(small: &Small, read: &Read, elements: &[ValueId]) -> Vec<View> {
    let own: Vec<u64> = own_before(small, read).map(|w| w.word).collect();
    let words: Vec<u64> = elements.iter().map(|element| element.word()).collect();
    let Some(foreign) = words.strip_suffix(own.as_slice()) else { return Vec::new() };
    let mut explanations = vec![Vec::new()];
    for word in foreign {
        let candidates: Vec<Write> =
            small.writes_of(read.key, *word).filter(|w| w.txn != read.txn).collect();
        explanations = explanations
            .iter()
            .flat_map(|before| candidates.iter().map(|w| extended(before, *w)))
            .collect();
    }
    explanations.retain(|appends| whole_transactions_in_order(small, appends));
    explanations.into_iter().map(list_view).collect()
}

fn extended(before: &[Write], write: Write) -> Vec<Write> {
    before.iter().copied().chain([write]).collect()
}

fn whole_transactions_in_order(small: &Small, appends: &[Write]) -> bool {
    appends.iter().all(|shown| {
        let of_txn = |w: &&Write| w.txn == shown.txn && w.key == shown.key;
        let all = small.writes.iter().filter(of_txn).map(|w| w.at);
        all.eq(appends.iter().filter(of_txn).map(|w| w.at))
    })
}

fn list_view(appends: Vec<Write>) -> View {
    View {
        from: appends.last().map_or(Source::Init, |last| Source::Txn(last.txn)),
        needs: appends.iter().fold(0, |needs, w| needs | bit(w.txn)),
        appends,
    }
}
