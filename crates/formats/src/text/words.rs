//! The words that mean something, each in its place only (a key may be called `r`), and what a
//! misspelt one may have meant.

/// What a line may begin with that is not a transaction.
pub(super) const DIRECTIVES: &[&str] = &["initial", "clock", "session"];

/// What may stand between the name of a transaction and its colon.
pub(super) const FACTS: &[&str] = &["committed", "aborted", "unknown", "db", "snapshot", "error"];

/// What an operation begins with.
pub(super) const OPERATIONS: &[&str] =
    &["r", "w", "delete", "append", "insert", "cas", "select", "update", "aggregate"];

/// How a conditional write ended.
pub(super) const RESULTS: &[&str] = &["ok", "failed"];

/// Texts that need quotes although they look like names: somewhere they mean something else.
pub(super) const RESERVED: &[&str] =
    &["nil", "null", "true", "false", "_", "initial", "clock", "session"];

/// The known word nearest to a misspelt one, if any is near.
///
/// Words that begin alike count as near, so that `read` finds `r` and `abort` finds `aborted`.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    const NEAR: usize = 2;
    let misspelt = known
        .iter()
        .filter(|candidate| candidate.len() > NEAR)
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= NEAR)
        .min_by_key(|(distance, _)| *distance);
    let alike = || known.iter().find(|k| word.starts_with(**k) || k.starts_with(word)).copied();
    misspelt.map(|(_, candidate)| candidate).or_else(alike)
}

/// How many letters to insert, remove or replace to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    // Longer words cannot be near any known one.
    for (i, a) in from.chars().take(32).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["r", "w", "append", "delete", "aborted"];
        assert_eq!(nearest("apend", &known), Some("append"));
        assert_eq!(nearest("read", &known), Some("r"));
        assert_eq!(nearest("abort", &known), Some("aborted"));
        assert_eq!(nearest("del", &known), Some("delete"));
        assert_eq!(nearest("increment", &known), None);
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
