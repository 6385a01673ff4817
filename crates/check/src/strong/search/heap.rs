//! Which variable to decide next: the one most involved in recent conflicts, else the oldest.

/// A heap of variables by activity.
#[derive(Default)]
pub(super) struct Heap {
    activity: Vec<f64>,
    /// What a conflict adds; grows, so that older conflicts count less and less.
    step: f64,
    heap: Vec<u32>,
    /// The place of each variable in the heap.
    place: Vec<u32>,
}

const OUT: u32 = u32::MAX;
const TOO_LARGE: f64 = 1e100;

impl Heap {
    pub(super) fn new() -> Self {
        Heap { step: 1.0, ..Heap::default() }
    }

    /// Adds a new variable, numbered one more than the last.
    pub(super) fn add(&mut self) {
        let var = self.activity.len() as u32;
        self.activity.push(0.0);
        self.place.push(OUT);
        self.insert(var);
    }

    /// Puts a variable back.
    pub(super) fn insert(&mut self, var: u32) {
        if self.place[var as usize] == OUT {
            self.place[var as usize] = self.heap.len() as u32;
            self.heap.push(var);
            self.up(self.heap.len() - 1);
        }
    }

    /// Takes the first variable out.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let first = *self.heap.first()?;
        let last = self.heap.pop()?;
        self.place[first as usize] = OUT;
        if first != last {
            self.heap[0] = last;
            self.place[last as usize] = 0;
            self.down(0);
        }
        Some(first)
    }

    /// A variable was involved in a conflict.
    pub(super) fn bump(&mut self, var: u32) {
        self.activity[var as usize] += self.step;
        if self.activity[var as usize] > TOO_LARGE {
            self.activity.iter_mut().for_each(|activity| *activity /= TOO_LARGE);
            self.step /= TOO_LARGE;
        }
        let place = self.place[var as usize];
        if place != OUT {
            self.up(place as usize);
        }
    }

    /// A conflict is over.
    pub(super) fn decay(&mut self) {
        self.step /= 0.95;
    }

    fn is_before(&self, a: u32, b: u32) -> bool {
        let (one, other) = (self.activity[a as usize], self.activity[b as usize]);
        one > other || (one == other && a < b)
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.is_before(self.heap[at], self.heap[parent]) {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut first = at;
            for child in [left, right] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[first]) {
                    first = child;
                }
            }
            if first == at {
                break;
            }
            self.swap(at, first);
            at = first;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a] as usize] = a as u32;
        self.place[self.heap[b] as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_active_comes_first_and_ties_go_to_the_oldest() {
        let mut heap = Heap::new();
        (0..5).for_each(|_| heap.add());
        heap.bump(3);
        heap.decay();
        heap.bump(1);
        assert_eq!([heap.pop(), heap.pop(), heap.pop()], [Some(1), Some(3), Some(0)]);
        heap.insert(1);
        assert_eq!(
            [heap.pop(), heap.pop(), heap.pop(), heap.pop()],
            [Some(1), Some(2), Some(4), None]
        );
    }
}
