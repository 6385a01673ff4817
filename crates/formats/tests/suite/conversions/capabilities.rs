//! What each format takes and gives back, as the book's pages state it.

use isolario_model::{Clock, Initial, Outcome, Value};

/// What is known of the times of transactions after a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Times {
    None,
    Order,
    Exact,
}

/// Which operations a format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinds {
    Registers,
    AndLists,
    All,
}

/// What to do with the database's own timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    Refused,
    LeftOut,
    Kept,
    Required,
}

/// The capabilities of one format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub name: &'static str,
    pub kinds: Kinds,
    pub outcomes: &'static [Outcome],
    /// The initial state of every history it reads; none if the file says which.
    pub initial: Option<&'static Initial>,
    /// Whether its writer wants that very initial state, and not only reads that mean the same.
    pub initial_is_strict: bool,
    /// Whether a transaction that did not commit may have read the initial state: where that is
    /// `nil`, Jepsen's reads of it are unobserved.
    pub failed_initial_reads: bool,
    pub times: Times,
    pub stamps: Stamps,
    pub session_names: bool,
    /// Whether all names of transactions survive.
    pub txn_names: bool,
    /// Whether histories may name versions apart from values.
    pub takes_versions: bool,
    /// Whether every history it reads names them.
    pub names_versions: bool,
    /// Whether two aborted transactions in a row stay two.
    pub aborted_stay_apart: bool,
    /// One register of a fixed name, one operation per transaction, and no names of these.
    pub single_register: bool,
    /// Whether keywords may be keys.
    pub keywords: bool,
}

const ALL: &[Outcome] = &[Outcome::Committed, Outcome::Aborted, Outcome::Unknown];
const SETTLED: &[Outcome] = &[Outcome::Committed, Outcome::Aborted];
const COMMITTED: &[Outcome] = &[Outcome::Committed];
const NIL: Initial = Initial::Value(Value::Nil);
const ZERO: Initial = Initial::Value(Value::Int(0));
const ZERO_UNLESS_WRITTEN: Initial = Initial::UnlessWritten(Value::Int(0));

/// A format that has everything; the others say what they lack.
const COMPLETE: Format = Format {
    name: "isolario",
    kinds: Kinds::All,
    outcomes: ALL,
    initial: None,
    initial_is_strict: false,
    failed_initial_reads: true,
    times: Times::Exact,
    stamps: Stamps::Kept,
    session_names: true,
    txn_names: true,
    takes_versions: true,
    names_versions: false,
    aborted_stay_apart: true,
    single_register: false,
    keywords: true,
};

/// A format of registers that hold numbers, without times.
const NARROW: Format = Format {
    kinds: Kinds::Registers,
    initial: Some(&ZERO),
    times: Times::None,
    stamps: Stamps::LeftOut,
    keywords: false,
    ..COMPLETE
};

const ELLE: Format = Format {
    kinds: Kinds::AndLists,
    initial: Some(&NIL),
    initial_is_strict: true,
    failed_initial_reads: false,
    stamps: Stamps::Refused,
    takes_versions: false,
    ..COMPLETE
};

/// All formats, in the order of [`isolario_formats::FORMATS`].
pub const TABLE: [Format; 11] = [
    COMPLETE,
    Format {
        name: "cobra",
        outcomes: COMMITTED,
        initial: Some(&Initial::Marked),
        names_versions: true,
        ..NARROW
    },
    Format { name: "dbcop", outcomes: SETTLED, session_names: false, txn_names: false, ..NARROW },
    Format {
        name: "viper",
        outcomes: COMMITTED,
        initial: Some(&Initial::Unwritten),
        txn_names: false,
        ..NARROW
    },
    Format {
        name: "chronos",
        kinds: Kinds::AndLists,
        outcomes: COMMITTED,
        stamps: Stamps::Required,
        ..NARROW
    },
    Format { name: "elle-edn", ..ELLE },
    Format { name: "elle-json", keywords: false, ..ELLE },
    Format {
        name: "jepsen-log",
        kinds: Kinds::Registers,
        outcomes: COMMITTED,
        times: Times::Order,
        txn_names: false,
        single_register: true,
        ..ELLE
    },
    Format {
        name: "plume",
        outcomes: SETTLED,
        initial: Some(&ZERO_UNLESS_WRITTEN),
        initial_is_strict: true,
        txn_names: false,
        takes_versions: false,
        aborted_stay_apart: false,
        ..NARROW
    },
    Format { name: "jsonl", ..COMPLETE },
    Format { name: "text", takes_versions: false, ..COMPLETE },
];

/// What a history may hold so that two formats take it, and what of it survives both.
#[derive(Clone, Debug)]
pub struct Common {
    pub kinds: Kinds,
    pub outcomes: Vec<Outcome>,
    pub initial: Initial,
    /// Whether both understand reads of that initial state.
    pub initial_reads: bool,
    pub failed_initial_reads: bool,
    pub clock: Clock,
    pub times: Times,
    pub has_stamps: bool,
    pub keeps_stamps: bool,
    pub session_names: bool,
    pub has_txn_names: bool,
    pub keeps_txn_names: bool,
    pub aborted_stay_apart: bool,
    pub single_register: bool,
}

impl Format {
    /// What both formats can express; none if they have nothing in common.
    pub fn common(&self, other: &Format) -> Option<Common> {
        let single_register = self.single_register || other.single_register;
        let both = [self, other];
        if single_register && !both.iter().all(|format| format.keywords) {
            return None;
        }
        let (initial, initial_reads) = common_initial(self, other)?;
        let keeps = |stamps| matches!(stamps, Stamps::Kept | Stamps::Required);
        let has_stamps = both.iter().all(|format| format.stamps != Stamps::Refused);
        if !has_stamps && both.iter().any(|format| format.stamps == Stamps::Required) {
            return None;
        }
        Some(Common {
            kinds: self.kinds.min(other.kinds),
            outcomes: self
                .outcomes
                .iter()
                .copied()
                .filter(|o| other.outcomes.contains(o))
                .collect(),
            initial,
            initial_reads,
            failed_initial_reads: self.failed_initial_reads && other.failed_initial_reads,
            clock: if single_register { Clock::EventOrder } else { Clock::Nanoseconds },
            times: self.times.min(other.times),
            has_stamps,
            keeps_stamps: has_stamps && both.iter().all(|format| keeps(format.stamps)),
            session_names: self.session_names && other.session_names,
            has_txn_names: !single_register,
            keeps_txn_names: !single_register && self.txn_names && other.txn_names,
            aborted_stay_apart: self.aborted_stay_apart && other.aborted_stay_apart,
            single_register,
        })
    }

    /// Why this format cannot take what another one has read, although it could take the history
    /// that the other one was given.
    pub fn refuses_what_comes_from(&self, other: &Format) -> Option<&'static str> {
        if self.stamps == Stamps::Required
            && !matches!(other.stamps, Stamps::Kept | Stamps::Required)
        {
            return Some("timestamps were left out");
        }
        if other.names_versions && !self.takes_versions {
            return Some("versions are named now");
        }
        let initial = other.initial.filter(|_| self.initial_is_strict)?;
        (!self.takes_initial(initial)).then_some("the initial state is another one now")
    }

    /// Whether this is its own initial state, or one that Plume text takes for its own.
    fn takes_initial(&self, initial: &Initial) -> bool {
        self.initial
            .is_none_or(|own| own == initial || (*own == ZERO_UNLESS_WRITTEN && *initial == ZERO))
    }

    /// Whether a read of the initial value stays one where no client writes that value. Formats
    /// that tell such reads by other means take any number for it.
    fn understands_reads_of(&self, initial: &Initial) -> bool {
        let by_other_means = matches!(self.initial, Some(Initial::Unwritten | Initial::Marked));
        self.takes_initial(initial) || (by_other_means && *initial == ZERO)
    }
}

/// An initial state for a history that both formats take, and whether it may be read. A format
/// that is not strict takes any initial state that no read refers to.
fn common_initial(one: &Format, other: &Format) -> Option<(Initial, bool)> {
    let both = [one, other];
    let may_be_read =
        |initial: &&Initial| both.iter().all(|format| format.understands_reads_of(initial));
    let is_taken = |initial: &&Initial| {
        both.iter().all(|format| !format.initial_is_strict || format.takes_initial(initial))
    };
    let candidates = [&ZERO, &NIL];
    let readable = candidates.into_iter().find(|initial| is_taken(initial) && may_be_read(initial));
    let taken = readable.or_else(|| candidates.into_iter().find(is_taken))?;
    Some((taken.clone(), readable.is_some()))
}
