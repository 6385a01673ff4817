//! Cut isolation (Plume, Definition 3): reads of a key from other transactions agree.
//!
//! Nothing else is checked. Reads from nowhere, from aborted transactions and from the reader
//! itself do not count.

use isolario_model::Outcome;

use crate::small::{Read, Seen, Small, Txns, Write, bit};
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

/// What a read can stand for, and the version that it saw then.
type Explanation = (Cut, Option<u64>);

/// Whether some outcomes and some resolution of the reads satisfy cut isolation.
pub(crate) fn satisfied(small: &Small) -> bool {
    outcomes(small).any(|committed| {
        let reads: Vec<&Read> =
            small.reads.iter().filter(|read| committed & bit(read.txn) != 0).collect();
        let cuts: Vec<Vec<Explanation>> =
            reads.iter().map(|read| cuts(small, read, committed)).collect();
        some_choice(&cuts, &mut Vec::new(), &|chosen| agree(&reads, chosen))
    })
}

/// All ways to explain a read. None are left where only transactions of unknown outcome wrote what
/// it saw and all of them are taken for aborted: having been read, one of them did commit.
fn cuts(small: &Small, read: &Read, committed: Txns) -> Vec<Explanation> {
    match read.seen {
        Seen::Version(word) => {
            cuts_of(small, read, committed, word, small.may_be_initial(read.key, word))
        }
        Seen::Other(word) => other_cuts(small, read, committed, word),
        Seen::Contradiction => vec![(Cut::Uncounted, None)],
        Seen::List(elements) => {
            if !elements
                .iter()
                .all(|element| may_be_shown(small, read, element.to_bits(), committed))
            {
                return Vec::new();
            }
            let own = |word: u64| small.writes_of(read.key, word).any(|w| w.txn == read.txn);
            let mut words = elements.iter().map(|element| element.to_bits());
            match words.rfind(|word| !own(*word)) {
                Some(word) => cuts_of(small, read, committed, word, false),
                None => vec![(Cut::Init(None), None)],
            }
        }
    }
}

/// The ways to explain a read of a version, or of the last element that is not the reader's own.
fn cuts_of(
    small: &Small,
    read: &Read,
    committed: Txns,
    version: u64,
    initial: bool,
) -> Vec<Explanation> {
    let mut cuts = Vec::new();
    let mut wrote_it = false;
    for write in small.writes_of(read.key, version) {
        wrote_it = true;
        cuts.extend(cut(small, read, committed, &write));
    }
    if initial {
        cuts.push(Cut::Init(Some(version)));
    } else if !wrote_it {
        cuts.push(Cut::Uncounted);
    }
    cuts.into_iter().map(|cut| (cut, Some(version))).collect()
}

/// The ways to explain that a register held another version than this: any one that somebody wrote, or
/// the first one, or one of which nobody knows.
fn other_cuts(small: &Small, read: &Read, committed: Txns, word: u64) -> Vec<Explanation> {
    let others = small.writes.iter().filter(|w| w.key == read.key && w.word != word);
    let cuts = others.filter_map(|w| Some((cut(small, read, committed, w)?, Some(w.word))));
    let initial = small.encoded_initial_version();
    let init = (initial != Some(word)).then_some((Cut::Init(initial), initial));
    let cuts: Vec<Explanation> = cuts.chain(init).collect();
    if cuts.is_empty() { vec![(Cut::Uncounted, None)] } else { cuts }
}

/// What a read of a write stands for; none if its writer is not there.
fn cut(small: &Small, read: &Read, committed: Txns, write: &Write) -> Option<Cut> {
    if write.txn == read.txn || small.outcomes[write.txn] == Outcome::Aborted {
        return Some(Cut::Uncounted);
    }
    (committed & bit(write.txn) != 0).then_some(Cut::Txn(write.txn))
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

/// The axiom: two reads of one key by one transaction, from two others, return the same value.
fn agree(reads: &[&Read], chosen: &[Explanation]) -> bool {
    (0..reads.len()).all(|a| {
        (0..a).all(|b| {
            let (one, other) = (reads[a], reads[b]);
            let ((cut, version), (other_cut, other_version)) = (chosen[a], chosen[b]);
            one.txn != other.txn
                || one.key != other.key
                || cut == Cut::Uncounted
                || other_cut == Cut::Uncounted
                || cut == other_cut
                || version == other_version
        })
    })
}
