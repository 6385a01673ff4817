//! What the attempts at a level do.

use isolario_model::Attempt;

/// What an attempt does, and where it leaves the level to the next one.
pub fn attempt(attempt: Attempt) -> &'static str {
    match attempt {
        Attempt::PromisedOrder => {
            "executes the transactions once more in the order that the database promises"
        }
        Attempt::Certificate => {
            "compares every result with the versions that the database states, and looks for cycles"
        }
        Attempt::Linearization => "looks for an order of the operations of each key",
        Attempt::Replay => {
            "executes the transactions in the order that times or positions suggest, repairs the order \
             where a read returned something else, and passes if that does not explain every read"
        }
        Attempt::Reads => {
            "refutes the level by a read that is wrong by itself, or by a cycle of sessions and reads"
        }
        Attempt::Order => {
            "repairs an order of the commits until it has all that the level demands, and passes if a few \
             rounds do not do"
        }
        Attempt::Rule => "orders the writers by the rule of the level, and looks for cycles",
        Attempt::Versions => {
            "looks for cycles over the order of versions, and passes if a write that followed no read \
             leaves that order open"
        }
        Attempt::Segments => {
            "solves the segments of the order of commits that contradict it, and passes if they hold too \
             much of the history"
        }
        Attempt::Search => "searches for an order of the versions over the whole history",
        Attempt::Suppositions => {
            "supposes what each read saw that may have seen several writes, and learns from the cycles"
        }
        Attempt::Rows => {
            "replays the predicates on the order that was found, and decides again with the rows that make \
             a difference"
        }
        _ => "has nothing to try",
    }
}
