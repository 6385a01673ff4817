//! Registers whose values tell who wrote them, in nearly linear time.
//!
//! A call that replaced what it found followed its source at once: no other write came between. So
//! a plain write (or the initial state), whatever replaced it, whatever replaced that, and so on,
//! with the reads of each version, form a *block* that stays together in every order, and whose
//! inner order is given (MTC, Algorithm 2, is the case of one block). It must agree with real time.
//!
//! Blocks are then ordered as Gibbons and Korach order a write with its reads ("Testing Shared
//! Memories", 1997). Let *first* be the earliest finish in a block and *last* the latest start.
//! Block B must precede block A if and only if something in B had finished before something in A
//! started: first(B) < last(A). If there is a cycle of such demands there is one of two blocks:
//! take the block of the cycle with the least first, M, and the one before it, P; then first(M) ≤
//! first(of the one before P) < last(P), so that M and P demand to precede each other. Sorting by
//! the smaller of first and last puts blocks in order if there is one: let A come before B in it
//! and B demand to precede A, first(B) < last(A). Then the smaller one of A's is its first, since
//! last(A) being it would say last(A) ≤ first(B). If first(A) < last(B), they contradict each other.
//! Otherwise first(A) = last(B) ≤ first(B), a tie, in which blocks with last ≤ first go first.

use super::Placed;
use super::calls::{Action, Call, Register};
use super::conflict::{Conflict, Ends};
use super::misses;
use super::sources::{NONE, Otherwise, Sources};

/// Calls that stay together, in their order.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) begin: usize,
    pub(super) end: usize,
    /// The earliest finish.
    first: i64,
    /// The latest start.
    last: i64,
    /// Whether it begins with the initial state.
    is_initial: bool,
}

impl Block {
    /// What blocks are sorted by.
    fn key(&self) -> (i64, bool) {
        (self.first.min(self.last), self.first < self.last)
    }
}

/// Puts the calls of a register in order.
pub(super) fn order(register: &Register<'_>) -> Result<Vec<Placed>, Otherwise> {
    let sources = Sources::new(register.calls, register.initial)?;
    let mut blocks = Blocks { sources: &sources, order: Vec::new(), blocks: Vec::new() };
    blocks.form()?;
    if sources.misses.is_empty() {
        return blocks.place();
    }
    // Without plain writes everything follows the initial state, one after the other.
    misses::place(&sources, &blocks.order)
}

struct Blocks<'s, 'c> {
    sources: &'s Sources<'c>,
    /// All calls, block by block.
    order: Vec<u32>,
    /// That of the initial state first.
    blocks: Vec<Block>,
}

impl Blocks<'_, '_> {
    fn form(&mut self) -> Result<(), Otherwise> {
        let calls = self.sources.calls;
        self.add(NONE)?;
        let is_root = |at: &u32| {
            self.sources.kept[*at as usize]
                && matches!(calls[*at as usize].action, Action::Write(_))
        };
        let roots: Vec<u32> = (0..calls.len() as u32).filter(is_root).collect();
        for root in roots {
            self.add(root)?;
        }
        let count = |at: &u32| {
            let counts = !matches!(calls[*at as usize].action, Action::Free | Action::Differs(_));
            self.sources.kept[*at as usize] && counts
        };
        if self.order.len() < (0..calls.len() as u32).filter(count).count() {
            return Err(Otherwise::Broken(self.cycle()));
        }
        Ok(())
    }

    /// Adds the block that begins with a writer.
    fn add(&mut self, root: u32) -> Result<(), Otherwise> {
        let begin = self.order.len();
        let is_initial = root == NONE;
        let mut block = Block {
            begin,
            end: begin,
            first: if is_initial { i64::MIN } else { i64::MAX },
            last: i64::MIN,
            is_initial,
        };
        let mut writer = root;
        loop {
            if writer != NONE {
                self.append(writer, &mut block)?;
            }
            for at in self.sources.reads(writer) {
                self.append(*at, &mut block)?;
            }
            match self.sources.next(writer) {
                Some(next) => writer = next,
                None => break,
            }
        }
        block.end = self.order.len();
        self.blocks.push(block);
        Ok(())
    }

    /// Appends a call, which must not have finished before one that it follows started.
    fn append(&mut self, at: u32, block: &mut Block) -> Result<(), Otherwise> {
        let Call { start, finish, .. } = self.sources.calls[at as usize];
        self.order.push(at);
        if finish < block.last {
            let order = &self.order[block.begin..];
            return Err(Otherwise::Broken(Conflict::backwards(self.sources, order)));
        }
        block.first = block.first.min(finish);
        block.last = block.last.max(start);
        Ok(())
    }

    /// Calls that replaced each other in a cycle.
    fn cycle(&self) -> Conflict {
        let mut placed = vec![false; self.sources.calls.len()];
        self.order.iter().for_each(|at| placed[*at as usize] = true);
        let is_left = |at: &u32| {
            let swaps = matches!(self.sources.calls[*at as usize].action, Action::Swap(..));
            swaps && self.sources.kept[*at as usize] && !placed[*at as usize]
        };
        // Whoever is left follows someone who is left, so that going back ends in a cycle.
        let mut at = (0..self.sources.calls.len() as u32).find(is_left).unwrap_or_default();
        let mut cycle = Vec::new();
        while !placed[at as usize] {
            placed[at as usize] = true;
            cycle.push(at);
            at = self.sources.source(at);
        }
        let begin = cycle.iter().position(|other| *other == at).unwrap_or_default();
        Conflict::cycle(self.sources, &cycle[begin..])
    }

    /// Orders the blocks, and gives every call the earliest moment it can have.
    fn place(mut self) -> Result<Vec<Placed>, Otherwise> {
        // The initial state comes first whatever the times.
        if let [_, others @ ..] = &mut self.blocks[..] {
            others.sort_by_key(Block::key);
        }
        let mut placed = Vec::with_capacity(self.sources.calls.len());
        let mut last: Option<Block> = None;
        let mut now = i64::MIN;
        for block in &self.blocks {
            if let Some(earlier) = last.filter(|earlier| block.first < earlier.last) {
                let ends = [earlier, *block].map(|block| {
                    let order = &self.order[block.begin..block.end];
                    Ends::new(self.sources.calls, order, block.is_initial)
                });
                return Err(Otherwise::Broken(Conflict::crossing(self.sources, &ends)));
            }
            if last.is_none_or(|earlier| earlier.last < block.last) {
                last = Some(*block);
            }
            for at in &self.order[block.begin..block.end] {
                let Call { op, start, .. } = self.sources.calls[*at as usize];
                now = now.max(start);
                placed.push(Placed { at: now, rank: placed.len() as u32, op });
            }
        }
        let free =
            self.sources.free.iter().map(|at| Placed::at_start(&self.sources.calls[*at as usize]));
        placed.extend(free);
        Ok(placed)
    }
}
