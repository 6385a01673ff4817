//! Failed comparisons that do not tell what they found, where all other calls follow one another.
//!
//! Let versions 0 to n be those of the chain, and e(j) the earliest moment at which version j can
//! be written, given those before it and their reads. A call that did not find version j, from s to
//! f, came before it or after its successor: version j was written at s or later, or version j + 1
//! at f or earlier. If e(j + 1) > f only the former is left, and e(j) rises to s at least. Now s ≤ f
//! < e(j + 1), so that later versions are not put off: going from the last version to the first
//! raises every e(j) to the earliest moments at which all can be. It remains to ask whether the
//! calls had not finished by then. The initial version is written at no time, so that it cannot
//! rise; and nothing follows the last version, unless a call of unknown outcome replaced it: which
//! one matters to nobody else, and the one that started first can do it earliest.
//!
//! A search decides these histories, too, but a check then takes 1.1 to 1.3 times as long, loading
//! included, and five times as long with a thousand clients on one key.

use super::Placed;
use super::calls::{Action, Call};
use super::sources::{NONE, Otherwise, Sources};

/// Gives every call the earliest moment it can have; `order` is the chain with its reads.
pub(super) fn place(sources: &Sources<'_>, order: &[u32]) -> Result<Vec<Placed>, Otherwise> {
    let mut chain = Chain::new(sources, order)?;
    chain.raise()?;
    chain.place()
}

struct Chain<'s, 'c> {
    sources: &'s Sources<'c>,
    /// The chain with its reads, and who replaced the last version.
    order: Vec<u32>,
    /// The positions in it at which versions were written, from version 1 on.
    writes: Vec<u32>,
    /// When each version was written at the earliest, from version 0 on.
    earliest: Vec<i64>,
    /// Per version, the calls that did not find it.
    misses: Vec<Vec<u32>>,
}

impl<'s, 'c> Chain<'s, 'c> {
    fn new(sources: &'s Sources<'c>, order: &[u32]) -> Result<Self, Otherwise> {
        let mut version_of = vec![NONE; sources.calls.len()];
        let mut chain = Chain {
            sources,
            order: order.to_vec(),
            writes: Vec::new(),
            earliest: vec![i64::MIN],
            misses: Vec::new(),
        };
        let mut now = i64::MIN;
        for (position, at) in (0..).zip(order) {
            now = now.max(chain.call(*at).start);
            if chain.call(*at).action.new_word().is_some() {
                chain.writes.push(position);
                chain.earliest.push(now);
                version_of[*at as usize] = chain.writes.len() as u32;
            }
        }
        chain.misses = vec![Vec::new(); chain.earliest.len()];
        for (at, writer) in &sources.misses {
            let version = if *writer == NONE { 0 } else { version_of[*writer as usize] };
            // What a call of unknown outcome would have written was never there.
            if let Some(misses) = chain.misses.get_mut(version as usize) {
                misses.push(*at);
            }
        }
        chain.replace_last(now)?;
        Ok(chain)
    }

    fn call(&self, at: u32) -> &'c Call {
        &self.sources.calls[at as usize]
    }

    /// Lets a call of unknown outcome replace the last version if that can help.
    fn replace_last(&mut self, now: i64) -> Result<(), Otherwise> {
        if self.misses.last().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let last = self.writes.last().map_or(NONE, |position| self.order[*position as usize]);
        let can = |at: &u32| {
            !self.sources.kept[*at as usize]
                && matches!(self.call(*at).action, Action::Swap(..))
                && self.sources.source(*at) == last
        };
        let first =
            (0..self.sources.calls.len() as u32).filter(can).min_by_key(|at| self.call(*at).start);
        let Some(first) = first else { return Ok(()) };
        if self.sources.misses.iter().any(|(_, writer)| *writer == first) {
            // That nobody found it is then a condition, too.
            return Err(Otherwise::Choices);
        }
        self.writes.push(self.order.len() as u32);
        self.order.push(first);
        self.earliest.push(now.max(self.call(first).start));
        self.misses.push(Vec::new());
        Ok(())
    }

    /// Raises the earliest moments to what the failed comparisons allow.
    fn raise(&mut self) -> Result<(), Otherwise> {
        for version in (0..self.earliest.len()).rev() {
            let next = self.earliest.get(version + 1).copied();
            let comes_before = |at: &&u32| next.is_none_or(|next| self.call(**at).finish < next);
            let starts =
                self.misses[version].iter().filter(comes_before).map(|at| self.call(*at).start);
            if let Some(start) = starts.max() {
                if version == 0 {
                    return Err(Otherwise::Choices);
                }
                self.earliest[version] = self.earliest[version].max(start);
            }
        }
        Ok(())
    }

    /// Places calls, unless one had finished by then: the search then shows why there is no order.
    fn place(&self) -> Result<Vec<Placed>, Otherwise> {
        let mut placed = Vec::with_capacity(self.sources.calls.len());
        let mut version = 0;
        for (position, at) in (0..).zip(&self.order) {
            let Call { op, start, finish, .. } = *self.call(*at);
            if self.writes.get(version) == Some(&position) {
                version += 1;
            }
            let moment = self.earliest[version].max(start);
            if finish < moment {
                return Err(Otherwise::Choices);
            }
            placed.push(Placed { at: moment, rank: 2 * position + 1, op });
        }
        for (version, misses) in self.misses.iter().enumerate() {
            placed.extend(misses.iter().map(|at| self.place_miss(self.call(*at), version)));
        }
        let nowhere = self.sources.misses.iter().filter(|(_, writer)| self.is_nowhere(*writer));
        let free = self.sources.free.iter().chain(nowhere.map(|(at, _)| at));
        placed.extend(free.map(|at| Placed::at_start(self.call(*at))));
        Ok(placed)
    }

    /// Whether what a call would have written was never there.
    fn is_nowhere(&self, writer: u32) -> bool {
        writer != NONE && !self.sources.kept[writer as usize]
    }

    /// Before the version was written, if that is not too late, else after its successor.
    fn place_miss(&self, call: &Call, version: usize) -> Placed {
        let write = |version: usize| {
            (self.earliest[version], version.checked_sub(1).map(|at| 2 * self.writes[at] + 1))
        };
        if let (moment, Some(rank)) = write(version)
            && call.start <= moment
        {
            let rank = if call.start == moment { rank - 1 } else { 0 };
            return Placed { at: call.start, rank, op: call.op };
        }
        match (self.earliest.len() > version + 1).then(|| write(version + 1)) {
            Some((moment, Some(rank))) if call.start <= moment => {
                Placed { at: moment, rank: rank + 1, op: call.op }
            }
            _ => Placed { at: call.start, rank: u32::MAX, op: call.op },
        }
    }
}
