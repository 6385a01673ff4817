//! Cut isolation (Plume, Definition 3): reads of a key from other transactions agree.
//!
//! Nothing else is checked. Reads from nowhere, from aborted transactions and from the reader
//! itself do not count.

use isolario_model::Outcome;

use crate::small::{Read, Seen, Small, Txns, bit};
use crate::worlds::{outcomes, some_choice};

/// What a read can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// It does not count.
    Uncounted,
    /// It read the initial version. Where that may be any value nobody wrote, two values are two
    /// versions, whichever of them is the initial one.
    Init(Option<u64>),
    /// It read what another committed transaction wrote.
    Txn(usize),
}

/// Whether some outcomes and some resolution of the reads satisfy cut isolation.
pub(crate) fn satisfied(small: &Small) -> bool {
    outcomes(small).any(|committed| {
        let reads: Vec<&Read> =
            small.reads.iter().filter(|read| committed & bit(read.txn) != 0).collect();
        let cuts: Vec<Vec<Cut>> = reads.iter().map(|read| cuts(small, read, committed)).collect();
        some_choice(&cuts, &mut Vec::new(), &|chosen| agree(small, &reads, chosen))
    })
}

/// All ways to explain a read. None are left where only transactions of unknown outcome wrote what
/// it saw and all of them are taken for aborted: having been read, one of them did commit.
fn cuts(small: &Small, read: &Read, committed: Txns) -> Vec<Cut> {
    if let Seen::List(elements) = read.seen
        && !elements.iter().all(|element| may_be_shown(small, read, element.word(), committed))
    {
        return Vec::new();
    }
    let (version, initial) = last_of_others(small, read);
    let Some(version) = version else { return vec![Cut::Init(None)] };
    let mut cuts = Vec::new();
    let mut wrote_it = false;
    for write in small.writes_of(read.key, version) {
        wrote_it = true;
        if write.txn == read.txn || small.outcomes[write.txn] == Outcome::Aborted {
            cuts.push(Cut::Uncounted);
        } else if committed & bit(write.txn) != 0 {
            cuts.push(Cut::Txn(write.txn));
        }
    }
    if initial {
        cuts.push(Cut::Init(Some(version)));
    } else if !wrote_it {
        cuts.push(Cut::Uncounted);
    }
    cuts
}

/// Whether a list can show an element: any element counts, not only the last.
fn may_be_shown(small: &Small, read: &Read, element: u64, committed: Txns) -> bool {
    let mut writes = small.writes_of(read.key, element).peekable();
    writes.peek().is_none()
        || writes.any(|write| {
            write.txn == read.txn
                || small.outcomes[write.txn] == Outcome::Aborted
                || committed & bit(write.txn) != 0
        })
}

/// The version a read shows, or the last element that is not the reader's own, and whether it may
/// be the initial one. Without an element, it is the initial one.
fn last_of_others(small: &Small, read: &Read) -> (Option<u64>, bool) {
    match read.seen {
        Seen::Version(word) => (Some(word), small.may_be_initial(read.key, word)),
        Seen::List(elements) => {
            let own = |word: u64| small.writes_of(read.key, word).any(|w| w.txn == read.txn);
            let words = elements.iter().map(|element| element.word());
            (words.rev().find(|word| !own(*word)), false)
        }
    }
}

/// The axiom: two reads of one key by one transaction, from two others, return the same value.
fn agree(small: &Small, reads: &[&Read], chosen: &[Cut]) -> bool {
    (0..reads.len()).all(|a| {
        (0..a).all(|b| {
            let (one, other) = (reads[a], reads[b]);
            one.txn != other.txn
                || one.key != other.key
                || chosen[a] == Cut::Uncounted
                || chosen[b] == Cut::Uncounted
                || chosen[a] == chosen[b]
                || last_of_others(small, one) == last_of_others(small, other)
        })
    })
}
