//! Takes the rows of columns, one after the other, and knows when there are too few or too many.

use isolario_model::Stamp;

use super::block::{INLINE, LISTED, Pairs, Texts, Values};
use super::layout::unknown;
use crate::Problem;

/// Takes numbers or bytes from a column, one after the other.
pub(super) struct Stream<'b, T> {
    rest: &'b [T],
}

impl<'b, T: Copy> Stream<'b, T> {
    pub(super) fn new(column: &'b [T]) -> Self {
        Stream { rest: column }
    }

    /// What is not yet taken.
    pub(super) fn rest(&self) -> &'b [T] {
        self.rest
    }

    #[inline]
    pub(super) fn next(&mut self, what: &str) -> Result<T, Problem> {
        let (next, rest) = self.rest.split_first().ok_or_else(|| too_short(what))?;
        self.rest = rest;
        Ok(*next)
    }

    /// The next few.
    #[inline]
    pub(super) fn take(&mut self, count: usize, what: &str) -> Result<&'b [T], Problem> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| too_short(what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Checks that nothing is left.
    pub(super) fn finish(&self, what: &str) -> Result<(), Problem> {
        match self.rest.len() {
            0 => Ok(()),
            rest => Err(Problem::malformed(
                format!("an end of the {what} of a block"),
                format_args!("{rest} more than its transactions have use for"),
            )),
        }
    }
}

#[cold]
fn too_short(what: &str) -> Problem {
    Problem::malformed(format!("more {what} in a block"), "none")
}

/// Takes texts from a column, one after the other.
pub(super) struct TextStream<'b> {
    lengths: Stream<'b, i64>,
    text: &'b str,
}

impl<'b> TextStream<'b> {
    pub(super) fn new(texts: &'b Texts) -> Self {
        TextStream { lengths: Stream::new(&texts.lengths), text: &texts.text }
    }

    pub(super) fn next(&mut self, what: &str) -> Result<&'b str, Problem> {
        let len = self.lengths.next(what)?;
        let split = usize::try_from(len).ok().and_then(|len| self.text.split_at_checked(len));
        let (text, rest) =
            split.ok_or_else(|| Problem::malformed(format!("the length of {what}"), len))?;
        self.text = rest;
        Ok(text)
    }

    pub(super) fn finish(&self, what: &str) -> Result<(), Problem> {
        self.lengths.finish(what)?;
        Stream::new(self.text.as_bytes()).finish(what)
    }
}

/// The entry of a dictionary at a place.
#[inline]
pub(super) fn entry<T: Copy>(entries: &[T], place: i64, what: &str) -> Result<T, Problem> {
    let found = usize::try_from(place).ok().and_then(|place| entries.get(place)).copied();
    found.ok_or_else(|| no_entry(entries.len(), place, what))
}

#[cold]
fn no_entry(len: usize, place: i64, what: &str) -> Problem {
    Problem::malformed(format!("the index of one of {len} {what}"), place)
}

/// Takes values from a column.
pub(super) struct ValueStream<'b> {
    places: Stream<'b, u8>,
    pub(super) numbers: Stream<'b, i64>,
}

impl<'b> ValueStream<'b> {
    pub(super) fn new(column: &'b Values) -> Self {
        let Values { places, numbers } = column;
        ValueStream { places: Stream::new(places), numbers: Stream::new(numbers) }
    }

    /// The next value: an integer, or an entry of a dictionary of whatever kind is wanted.
    #[inline]
    pub(super) fn next<T: Copy>(
        &mut self,
        listed: &[T],
        inline: impl FnOnce(i64) -> T,
    ) -> Result<T, Problem> {
        let number = self.numbers.next("values")?;
        match self.places.next("locations of values")? {
            INLINE => Ok(inline(number)),
            LISTED => entry(listed, number, "values"),
            other => Err(unknown("the location of a value, 0 or 1", other)),
        }
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Problem> {
        self.numbers.take(count, "values")?;
        self.places.take(count, "locations of values")?;
        Ok(())
    }

    pub(super) fn finish(&self) -> Result<(), Problem> {
        self.places.finish("locations of values")?;
        self.numbers.finish("values")
    }
}

/// Takes pairs of numbers from a column.
pub(super) struct PairStream<'b> {
    firsts: Stream<'b, i64>,
    seconds: Stream<'b, i64>,
}

impl<'b> PairStream<'b> {
    pub(super) fn new(column: &'b Pairs) -> Self {
        let Pairs { firsts, seconds } = column;
        PairStream { firsts: Stream::new(firsts), seconds: Stream::new(seconds) }
    }

    pub(super) fn next(&mut self, what: &str) -> Result<(u64, u64), Problem> {
        Ok((self.firsts.next(what)? as u64, self.seconds.next(what)? as u64))
    }

    pub(super) fn stamp(&mut self) -> Result<Stamp, Problem> {
        let (physical, logical) = self.next("timestamps")?;
        Ok(Stamp { physical, logical })
    }

    pub(super) fn finish(&self, what: &str) -> Result<(), Problem> {
        self.firsts.finish(what)?;
        self.seconds.finish(what)
    }
}
