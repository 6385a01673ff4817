//! The graph of an anomaly: transactions as boxes, the reasons of its argument as arrows.
//!
//! [`Picture`] says what is to be drawn; [`Layout`] says where. Both are the same for every renderer
//! that draws: SVG, DOT and HTML.

mod geometry;
mod layout;
mod order;
mod route;
mod wrapped;

use std::fmt;

use isolario_model::{
    Anomaly, Edge, EdgeKind, Evidence, History, KeyId, OpId, Outcome, Reason, SessionId, TxnId,
    VersionOrder,
};

use crate::involved::{InvolvedTxn, involved};
use crate::names::{Names, counted, middle_cut};
use crate::sentences::{acknowledged, down_in_words, explain, last_write, summary};

pub(crate) use geometry::{Point, Rect};
pub(crate) use layout::{LINE, Layout, PADDING};
pub(crate) use route::Route;

/// Of an argument in more cases, only the first are drawn.
pub(crate) const MOST_CASES: usize = 20;
/// A longer cycle is wrapped: columns would make it too wide.
const LONGEST_IN_COLUMNS: usize = 7;
/// Of a longer cycle, only the steps that tell most are drawn, and so many of them.
const LONGEST_CYCLE: usize = 40;
const FOLDED_CYCLE: usize = 24;
/// Where all is asked for, so much is.
const LONGEST_OF_ALL: usize = 400;
/// More reasons behind reasons than these are left to the words.
const MOST_REASONS: usize = 40;
/// How deep reasons behind reasons are drawn.
const DEEPEST: usize = 2;
/// How many operations a box shows.
const MOST_LINES: usize = 12;
/// How wide the text of a box is, in characters.
const WIDEST_LINE: usize = 34;
/// How wide the name of a session is in a box.
const WIDEST_PLACE: usize = 14;

/// What is to be drawn.
pub(crate) struct Picture {
    /// What it shows, in a sentence.
    pub(crate) about: String,
    /// Which case of an argument by cases it is.
    pub(crate) case: Option<Case>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    /// Whether it is one cycle, too long for a column per session. Reasons behind its arrows are left
    /// to the words.
    pub(crate) is_long: bool,
    /// How many steps of a very long cycle are folded away.
    pub(crate) folded: usize,
}

/// One case of an argument by cases, counted from 1.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

impl Case {
    /// How many cases there are that nobody draws.
    pub(crate) fn undrawn(self) -> usize {
        self.of.saturating_sub(MOST_CASES)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {} of {}", self.number, self.of)
    }
}

/// A transaction, or the initial state.
pub(crate) struct Node {
    pub(crate) txn: TxnId,
    pub(crate) title: String,
    /// Where it ran, and the name of that session; nothing for the initial state.
    pub(crate) session: Option<(SessionId, String)>,
    pub(crate) lines: Vec<Line>,
    /// Whether only reasons behind reasons need it.
    pub(crate) is_aside: bool,
}

impl Node {
    /// Where it ran, in words, for pictures without columns.
    pub(crate) fn place(&self) -> Option<String> {
        self.session.as_ref().map(|(_, name)| format!("session {}", middle_cut(name, WIDEST_PLACE)))
    }
}

/// A line in a box.
pub(crate) struct Line {
    pub(crate) text: String,
    /// Whether the anomaly is about it.
    pub(crate) matters: bool,
}

/// An arrow.
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: EdgeKind,
    pub(crate) label: String,
    /// Why it is there.
    pub(crate) why: String,
    /// Whether it is only supposed, to see where that leads.
    pub(crate) is_supposed: bool,
    /// The arrow that it is a reason for; none for those of the argument itself.
    pub(crate) behind: Option<usize>,
}

/// Which operations boxes show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Those that matter; the rest is counted.
    Relevant,
    /// All.
    All,
}

impl Picture {
    /// The pictures of an anomaly: one, or one for each case of its argument.
    pub(crate) fn all_of(names: Names<'_>, anomaly: &Anomaly, shown: Shown) -> Vec<Picture> {
        let about = summary(names, anomaly);
        let involved = involved(names.history(), anomaly);
        let draw = |case: Option<Case>, edges: &[Edge]| {
            let mut picture = Picture {
                about: about.clone(),
                case,
                nodes: Vec::new(),
                links: Vec::new(),
                is_long: edges.len() > LONGEST_IN_COLUMNS,
                folded: 0,
            };
            match &anomaly.evidence {
                Evidence::Read { read, saw, .. } => {
                    picture.bad_read(names, names.history().op(*read).key(), *read, *saw);
                }
                Evidence::Row { key, read, saw, .. } => {
                    picture.bad_read(names, Some(*key), *read, *saw);
                }
                Evidence::Lost { key, write, down, found } => {
                    picture.lost_commit(names, *key, [*write, *found], *down);
                }
                _ => picture.argument(names, edges, shown),
            }
            picture.fill(names, &involved, shown);
            if let Evidence::Lost { write, .. } = &anomaly.evidence {
                picture.acknowledged(names.history(), *write);
            }
            picture
        };
        match &anomaly.evidence {
            Evidence::Cases { cycles } => {
                let case = |number| Case { number, of: cycles.len() };
                let drawn = (1..).zip(cycles.iter().take(MOST_CASES));
                drawn.map(|(number, cycle)| draw(Some(case(number)), cycle)).collect()
            }
            evidence => vec![draw(None, evidence.edges())],
        }
    }

    /// Says in every box what its transaction did.
    fn fill(&mut self, names: Names<'_>, involved: &[InvolvedTxn], shown: Shown) {
        for part in involved {
            // Other cases bring transactions of their own, and so do reasons that are not drawn.
            if self.case.is_none() && !self.is_long {
                self.node(names, part.txn);
            }
            if let Some(node) = self.nodes.iter_mut().find(|node| node.txn == part.txn) {
                node.lines = lines(names, part, shown);
            }
        }
        self.set_aside();
    }

    fn node(&mut self, names: Names<'_>, txn: TxnId) -> usize {
        if let Some(at) = self.nodes.iter().position(|node| node.txn == txn) {
            return at;
        }
        let history = names.history();
        let (title, session) = if txn.is_init() {
            ("initial state".to_owned(), None)
        } else {
            let ended = match history.outcome(txn) {
                Outcome::Committed => "",
                Outcome::Aborted => " (aborted)",
                Outcome::Unknown => " (unknown)",
            };
            let session = (history.session_of(txn), names.session(txn));
            (format!("{}{ended}", names.txn(txn)), Some(session))
        };
        let node = Node { txn, title: cut(&title), session, lines: Vec::new(), is_aside: false };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn bad_read(&mut self, names: Names<'_>, key: Option<KeyId>, read: OpId, saw: Option<OpId>) {
        let history = names.history();
        let reader = history.op_txn(read);
        let Some(write) = saw.filter(|write| history.op_txn(*write) != reader) else { return };
        let Some(key) = key else { return };
        let reason = Reason::Read { key, read, write: saw };
        self.edge(names, &Edge { from: history.op_txn(write), to: reader, reason }, None);
    }

    /// From the write to its acknowledgement, the time when the server was down, and the read.
    fn lost_commit(&mut self, names: Names<'_>, key: KeyId, ops: [OpId; 2], down: [i64; 2]) {
        let history = names.history();
        let [writer, reader] = ops.map(|op| history.op_txn(op));
        let from = self.node(names, writer);
        let server = self.node(names, TxnId::INIT);
        self.nodes[server].title = "the server".to_owned();
        let text = down_in_words(history, down);
        self.nodes[server].lines = vec![Line { text, matters: true }];
        let to = self.node(names, reader);
        let x = names.key(key);
        for (from, to, kind, label, why) in [
            (
                from,
                server,
                EdgeKind::RealTime,
                "then ended".to_owned(),
                "acknowledged before the server ended",
            ),
            (
                server,
                to,
                EdgeKind::RealTime,
                "then began".to_owned(),
                "began after the server was back",
            ),
            (
                to,
                from,
                EdgeKind::ReadWrite,
                format!("misses {x}"),
                "does not find what was acknowledged",
            ),
        ] {
            let (label, why) = (cut(&label), why.to_owned());
            self.links.push(Link { from, to, kind, label, why, is_supposed: false, behind: None });
        }
    }

    /// Says when the client learnt that its transaction had committed.
    fn acknowledged(&mut self, history: &History, write: OpId) {
        let writer = self.nodes.iter_mut().find(|node| node.txn == history.op_txn(write));
        let line = acknowledged(history, write).map(|text| Line { text, matters: true });
        if let Some(writer) = writer {
            writer.lines.extend(line);
        }
    }

    fn argument(&mut self, names: Names<'_>, edges: &[Edge], shown: Shown) {
        let is_kept = kept(edges, shown);
        let mut drawn = Vec::new();
        let mut hidden = 0;
        for (edge, is_kept) in edges.iter().zip(is_kept) {
            if !is_kept {
                hidden += 1;
                continue;
            }
            self.gap(names, std::mem::take(&mut hidden), edge.from);
            drawn.extend(self.edge(names, edge, None).map(|at| (at, edge.clone())));
        }
        if !self.is_long {
            self.reasons(names, drawn);
        }
    }

    /// An arrow for steps that are not drawn, from the last box to the one that they lead to.
    fn gap(&mut self, names: Names<'_>, hidden: usize, to: TxnId) {
        if hidden == 0 || self.nodes.is_empty() {
            return;
        }
        let from = self.nodes.len() - 1;
        let to = self.node(names, to);
        let steps = counted(hidden as u64, "more step");
        self.folded += hidden;
        self.links.push(Link {
            from,
            to,
            kind: EdgeKind::CommitOrder,
            label: format!("… {hidden} more"),
            why: format!("{steps} are folded here; the words below have them"),
            is_supposed: false,
            behind: None,
        });
    }

    /// The reasons behind the arrows so far, level by level.
    fn reasons(&mut self, names: Names<'_>, mut open: Vec<(usize, Edge)>) {
        let mut reasons = 0;
        for _ in 0..DEEPEST {
            let mut next = Vec::new();
            for (link, edge) in &open {
                for reason in behind(names, edge) {
                    if reasons < MOST_REASONS
                        && let Some(at) = self.edge(names, &reason, Some(*link))
                    {
                        reasons += 1;
                        next.push((at, reason));
                    }
                }
            }
            open = next;
        }
    }

    /// Adds an arrow unless the same one is there already.
    fn edge(&mut self, names: Names<'_>, edge: &Edge, behind: Option<usize>) -> Option<usize> {
        let (from, to) = (self.node(names, edge.from), self.node(names, edge.to));
        let kind = edge.reason.kind();
        let about = edge.reason.key().map_or(String::new(), |key| format!(" {}", names.key(key)));
        let is_supposed = matches!(
            &edge.reason,
            Reason::Overwrite { known: VersionOrder::Assumed, .. }
                | Reason::AntiDependency { known: VersionOrder::Assumed, .. }
        );
        let supposed = if is_supposed { " (supposed)" } else { "" };
        let label = cut(&format!("{}{about}{supposed}", kind.name()));
        let same = |link: &Link| (link.from, link.to, &link.label) == (from, to, &label);
        if from == to || self.links.iter().any(same) {
            return None;
        }
        let why = explain(names, edge).sentence;
        self.links.push(Link { from, to, kind, label, why, is_supposed, behind });
        Some(self.links.len() - 1)
    }

    /// Marks the transactions that no arrow of the argument itself touches.
    fn set_aside(&mut self) {
        let main = self.links.iter().filter(|link| link.behind.is_none());
        let touched: Vec<usize> = main.flat_map(|link| [link.from, link.to]).collect();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            node.is_aside = !touched.is_empty() && !touched.contains(&at);
        }
    }
}

/// Which steps of a cycle are drawn. Of a very long one those that tell most: an anti-dependency
/// before a read, a read before the order of a session; among equals, those near the ends.
fn kept(edges: &[Edge], shown: Shown) -> Vec<bool> {
    let count = edges.len();
    let most = match shown {
        Shown::Relevant if count > LONGEST_CYCLE => FOLDED_CYCLE,
        Shown::All => LONGEST_OF_ALL,
        Shown::Relevant => LONGEST_CYCLE,
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|at| {
        let from_the_ends = (*at).min(count - 1 - at);
        // The picture has a beginning and an end whatever they tell.
        (
            from_the_ends != 0,
            std::cmp::Reverse(order::plainness(edges[*at].reason.kind())),
            from_the_ends,
        )
    });
    let mut kept = vec![false; count];
    order.iter().take(most).for_each(|at| kept[*at] = true);
    kept
}

/// The arrows that a reason rests on, those that it takes for granted included.
fn behind(names: Names<'_>, edge: &Edge) -> Vec<Edge> {
    let history = names.history();
    let seen = |from: TxnId, key, read| {
        let write = last_write(history, from, key);
        Edge { from, to: history.op_txn(read), reason: Reason::Read { key, read, write } }
    };
    let mut found = match edge.reason {
        // Who read from whom is what the rule is about.
        Reason::Visible { key, read, .. } => vec![seen(edge.to, key, read)],
        Reason::AntiDependency { key, read, writer, .. } if !writer.is_init() => {
            vec![seen(writer, key, read)]
        }
        _ => Vec::new(),
    };
    if let Reason::Overwrite { key, known } | Reason::AntiDependency { key, known, .. } =
        &edge.reason
    {
        let earlier = match edge.reason {
            Reason::AntiDependency { writer, .. } => writer,
            _ => edge.from,
        };
        match known {
            VersionOrder::ReadModifyWrite { read } | VersionOrder::AppendedLater { read } => {
                found.push(seen(earlier, *key, *read));
            }
            VersionOrder::List { read } => {
                let is_own = history.op_txn(*read) == edge.to;
                found.push(seen(if is_own { earlier } else { edge.to }, *key, *read));
            }
            _ => {}
        }
    }
    found.extend(edge.reason.support().iter().cloned());
    found
}

/// The text of a box.
fn lines(names: Names<'_>, part: &InvolvedTxn, shown: Shown) -> Vec<Line> {
    let all: Vec<OpId> = match shown {
        Shown::Relevant => part.ops.clone(),
        Shown::All => names.history().txn_ops(part.txn).collect(),
    };
    let line = |op: &OpId| Line { text: cut(&names.op(*op)), matters: part.ops.contains(op) };
    let mut lines: Vec<Line> = all.iter().take(MOST_LINES).map(line).collect();
    let hidden = match shown {
        Shown::Relevant => part.omitted,
        Shown::All => 0,
    } + all.len().saturating_sub(MOST_LINES);
    if hidden > 0 {
        let more = if lines.is_empty() { "operation" } else { "more operation" };
        lines.push(Line { text: counted(hidden as u64, more), matters: false });
    }
    lines
}

fn cut(text: &str) -> String {
    middle_cut(text, WIDEST_LINE)
}
