//! The hard families: histories made of graphs that satisfy a level exactly if the graph has no
//! triangle (AWDIT, Section 4). Finding triangles fast is a famous problem; so no checker is
//! expected to grow slower than n^1.5 on them.

use isolario::model::{
    Initial, Level, Meta, Op, Outcome, SinkError, TxnEnd, TxnSink, TxnStart, Value,
};
use isolario_workload::Rng;

/// A graph without directions: per node, its neighbours.
pub struct Graph {
    neighbours: Vec<Vec<u32>>,
}

impl Graph {
    /// A graph of so many nodes, with these edges, each given once.
    pub fn new(nodes: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
        let mut neighbours = vec![Vec::new(); nodes as usize];
        for (a, b) in edges {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        Graph { neighbours }
    }

    /// Nodes on two sides, and most edges between the sides: many edges and no triangle. The
    /// sides are dealt at random, so that numbers do not give them away.
    pub fn two_sided(nodes: u32, seed: u64) -> Graph {
        const EDGES_IN_TEN: u64 = 9;
        let mut rng = Rng::derive(seed, &[nodes.into()]);
        let sides: Vec<bool> = (0..nodes).map(|_| rng.below(2) == 0).collect();
        let pairs = (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b)));
        let across = pairs.filter(|(a, b)| sides[*a as usize] != sides[*b as usize]);
        Graph::new(nodes, across.filter(|_| rng.below(10) < EDGES_IN_TEN))
    }

    fn nodes(&self) -> impl Iterator<Item = u32> {
        0..self.neighbours.len() as u32
    }

    fn neighbours(&self, node: u32) -> &[u32] {
        &self.neighbours[node as usize]
    }
}

/// A way to make a history of a graph. Every node has a transaction that writes and one that
/// reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Every transaction in a session of its own: hard at each level from read committed to
    /// causal (Section 4.1, Theorem 1.3).
    ManySessions,
    /// All that write in one session, all that read in another: hard at read atomic (Section 4.2,
    /// Theorem 1.4).
    TwoSessions,
    /// One session, first all that write: hard at read committed (Section 4.2, Theorem 1.5).
    OneSession,
}

impl Family {
    pub const ALL: [Family; 3] = [Family::ManySessions, Family::TwoSessions, Family::OneSession];

    pub fn name(self) -> &'static str {
        match self {
            Family::ManySessions => "many-sessions",
            Family::TwoSessions => "two-sessions",
            Family::OneSession => "one-session",
        }
    }

    /// The levels at which it is hard.
    pub fn levels(self) -> &'static [Level] {
        match self {
            Family::ManySessions => &[Level::ReadCommitted, Level::ReadAtomic, Level::Causal],
            Family::TwoSessions => &[Level::ReadAtomic],
            Family::OneSession => &[Level::ReadCommitted],
        }
    }

    /// Read atomic does not ask which read came first; the others do, and need the reads that
    /// only say whom a transaction has seen.
    fn has_sightings(self) -> bool {
        self != Family::TwoSessions
    }

    fn session(self, txn: u64, writes: bool) -> u64 {
        match self {
            Family::ManySessions => txn,
            Family::TwoSessions => writes.into(),
            Family::OneSession => 0,
        }
    }

    /// Tells a sink the history of a graph, and counts its operations.
    pub fn write(self, graph: &Graph, sink: &mut dyn TxnSink) -> Result<u64, SinkError> {
        sink.meta(&Meta { initial: Initial::UnlessWritten(Value::Int(0)), ..Meta::default() })?;
        let mut teller =
            Teller { family: self, nodes: graph.neighbours.len() as u64, sink, txns: 0, ops: 0 };
        for node in graph.nodes() {
            teller.writer(node, graph.neighbours(node))?;
        }
        for node in graph.nodes() {
            teller.reader(node, graph.neighbours(node))?;
        }
        Ok(teller.ops)
    }
}

struct Teller<'s> {
    family: Family,
    nodes: u64,
    sink: &'s mut dyn TxnSink,
    txns: u64,
    ops: u64,
}

impl Teller<'_> {
    /// Writes its own key and those of its neighbours, and for each neighbour a key that only
    /// this one will read.
    fn writer(&mut self, node: u32, neighbours: &[u32]) -> Result<(), SinkError> {
        self.begin(true)?;
        self.write(u64::from(node), node)?;
        for &other in neighbours {
            self.write(u64::from(other), node)?;
            if self.family.has_sightings() {
                self.write(self.sighting(node, other), node)?;
            }
        }
        self.end()
    }

    /// Sees all its neighbours, then reads their own keys.
    fn reader(&mut self, node: u32, neighbours: &[u32]) -> Result<(), SinkError> {
        self.begin(false)?;
        if self.family.has_sightings() {
            for &other in neighbours {
                self.read(self.sighting(other, node), other)?;
            }
        }
        for &other in neighbours {
            self.read(u64::from(other), other)?;
        }
        self.end()
    }

    /// The key by which `reader` sees `writer`. The first keys are those of the nodes.
    fn sighting(&self, writer: u32, reader: u32) -> u64 {
        self.nodes * (u64::from(writer) + 1) + u64::from(reader)
    }

    fn begin(&mut self, writes: bool) -> Result<(), SinkError> {
        let session = self.family.session(self.txns, writes).into();
        let id = Some(self.txns.into());
        self.txns += 1;
        self.sink.begin(&TxnStart { session, id, line: None })
    }

    fn write(&mut self, key: u64, node: u32) -> Result<(), SinkError> {
        self.ops += 1;
        self.sink.op(&Op::Write { key: key.into(), value: owner(node).into() })
    }

    fn read(&mut self, key: u64, writer: u32) -> Result<(), SinkError> {
        self.ops += 1;
        self.sink.op(&Op::Read { key: key.into(), value: Some(owner(writer).into()) })
    }

    fn end(&mut self) -> Result<(), SinkError> {
        self.sink.end(&TxnEnd::new(Outcome::Committed))
    }
}

/// The value that says who wrote; 0 is nobody.
fn owner(node: u32) -> u64 {
    u64::from(node) + 1
}
