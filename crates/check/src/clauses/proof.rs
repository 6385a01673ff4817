//! How every clause came about.

/// The reason for which a clause is given, as part of a proof whose size may be limited.
pub(crate) trait Given {
    /// Number of bytes it takes beyond its own size.
    fn bytes(&self) -> usize {
        0
    }
}

/// Where a clause comes from.
pub(super) enum Inference<G> {
    /// It is given for a reason of the client.
    Given(G),
    /// It follows from the clauses of other steps, and from what is certain about these variables.
    Learned { from: Box<[u32]>, certain: Box<[u32]> },
}

impl<G: Given> Inference<G> {
    fn bytes(&self) -> usize {
        let contents = match self {
            Inference::Given(given) => given.bytes(),
            Inference::Learned { from, certain } => size_of_val(&**from) + size_of_val(&**certain),
        };
        size_of::<Self>() + contents
    }
}

/// The steps that clauses in use rest on.
pub(super) struct Proof<G> {
    pub(super) steps: Vec<Inference<G>>,
    bytes: usize,
    /// Whether it grew too large, and nothing is kept any more.
    is_lost: bool,
}

impl<G> Default for Proof<G> {
    fn default() -> Self {
        Proof { steps: Vec::new(), bytes: 0, is_lost: false }
    }
}

impl<G: Given> Proof<G> {
    pub(super) fn add(&mut self, step: Inference<G>) -> u32 {
        if self.is_lost {
            return 0;
        }
        self.bytes += step.bytes();
        self.steps.push(step);
        self.steps.len() as u32 - 1
    }

    /// Number of bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Gives up what was kept. The search goes on; only the grounds of a contradiction could not be named any more.
    pub(super) fn lose(&mut self) {
        *self = Proof { is_lost: true, ..Proof::default() };
    }

    /// Keeps what some steps rest on. Returns the new number of each step that is kept.
    pub(super) fn keep(&mut self, roots: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut is_used = vec![false; self.steps.len()];
        let mut open: Vec<u32> = roots.filter(|_| !self.is_lost).collect();
        while let Some(step) = open.pop() {
            if !std::mem::replace(&mut is_used[step as usize], true)
                && let Inference::Learned { from, .. } = &self.steps[step as usize]
            {
                open.extend(from);
            }
        }
        let mut numbers = vec![0u32; self.steps.len()];
        let mut kept = Vec::new();
        for (at, mut step) in std::mem::take(&mut self.steps).into_iter().enumerate() {
            if !is_used[at] {
                continue;
            }
            if let Inference::Learned { from, .. } = &mut step {
                // A step rests on earlier ones, which have their new numbers.
                from.iter_mut().for_each(|step| *step = numbers[*step as usize]);
            }
            numbers[at] = kept.len() as u32;
            kept.push(step);
        }
        self.bytes = kept.iter().map(Inference::bytes).sum();
        self.steps = kept;
        numbers
    }
}
