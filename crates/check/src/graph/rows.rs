//! Rows of different lengths in one piece of memory: compressed sparse rows, filled by counting
//! sort.

use std::ops::Range;

use super::InEdges;

/// Entries by row. As a graph, row `n` holds the predecessors of node `n`.
#[derive(Clone)]
pub(crate) struct Rows<T> {
    /// Where each row begins, and where the last one ends.
    starts: Vec<u32>,
    entries: Vec<T>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Rows { starts: vec![0], entries: Vec::new() }
    }
}

impl<T: Copy + Default> Rows<T> {
    /// Sorts items (row, entry) into so many rows; within a row they stay in the order they come.
    /// The items are gone through twice, to count and to place them.
    pub(crate) fn group<I>(rows: usize, items: I) -> Self
    where
        I: Iterator<Item = (u32, T)> + Clone,
    {
        // While items are placed, `starts[row + 1]` is where the next entry of the row goes; in the
        // end that is where the row ends and the next one begins.
        let mut starts = vec![0u32; rows + 1];
        items.clone().for_each(|(row, _)| starts[row as usize + 1] += 1);
        let mut total = 0;
        for start in &mut starts[1..] {
            total += std::mem::replace(start, total);
        }
        let mut entries = vec![T::default(); total as usize];
        items.for_each(|(row, entry)| {
            let next = &mut starts[row as usize + 1];
            entries[*next as usize] = entry;
            *next += 1;
        });
        Rows { starts, entries }
    }
}

impl<T> Rows<T> {
    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The entries of a row.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> &[T] {
        &self.entries[self.span(row)]
    }

    /// Where a row's entries are among all of them.
    #[inline]
    pub(crate) fn span(&self, row: usize) -> Range<usize> {
        self.starts[row] as usize..self.starts[row + 1] as usize
    }

    /// The entries of all rows, one row after the other.
    pub(crate) fn entries(&self) -> &[T] {
        &self.entries
    }

    /// All rows, to be changed in place.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        let mut rest = self.entries.as_mut_slice();
        self.starts.windows(2).map(move |ends| {
            let (row, tail) = std::mem::take(&mut rest).split_at_mut((ends[1] - ends[0]) as usize);
            rest = tail;
            row
        })
    }

    /// Rows of entries that are one behind the other already, by where each ends.
    pub(crate) fn cut(entries: Vec<T>, ends: impl Iterator<Item = usize>) -> Self {
        let starts = std::iter::once(0).chain(ends.map(|end| end as u32)).collect();
        Rows { starts, entries }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = T>) {
        self.entries.extend(row);
        self.starts.push(self.entries.len() as u32);
    }

    /// The same rows of something else.
    pub(crate) fn map<U>(&self, map: impl Fn(&T) -> U) -> Rows<U> {
        Rows { starts: self.starts.clone(), entries: self.entries.iter().map(map).collect() }
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.len() * size_of::<u32>() + self.entries.len() * size_of::<T>()
    }
}

impl Rows<u32> {
    /// A graph of edges (before, after).
    pub(crate) fn graph(nodes: usize, edges: &[(u32, u32)]) -> Self {
        Rows::group(nodes, edges.iter().map(|(before, after)| (*after, *before)))
    }
}

impl InEdges for Rows<u32> {
    fn node_count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn next_in(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        let before = self.get(node as usize).get(*cursor as usize).copied();
        *cursor += 1;
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_grouped_by_row_and_stay_in_order() {
        let items = [(2, 'a'), (0, 'b'), (2, 'c'), (0, 'd'), (3, 'e')];
        let mut rows = Rows::group(5, items.into_iter());
        let all = |rows: &Rows<char>| -> Vec<String> {
            (0..rows.len()).map(|row| rows.get(row).iter().collect()).collect()
        };
        assert_eq!(all(&rows), ["bd", "", "ac", "e", ""]);
        assert_eq!(rows.entries(), ['b', 'd', 'a', 'c', 'e']);
        rows.iter_mut().for_each(<[char]>::reverse);
        rows.push("xy".chars());
        assert_eq!(all(&rows), ["db", "", "ca", "e", "", "xy"]);
        assert_eq!(all(&rows.map(char::to_ascii_uppercase)), ["DB", "", "CA", "E", "", "XY"]);
        assert_eq!(Rows::<char>::default().len(), 0);
    }
}
