//! Which row and which column each box stands in.
//!
//! Sessions are columns, and time runs down. A cyclic graph cannot have all arrows point down: those
//! that are most plainly "before" are given their way first, so that the arrow against the stream is
//! an anti-dependency or an inferred one, as the argument has it.

use isolario_model::EdgeKind;

use super::Picture;

/// Up to this many columns, the best order is found by trying all.
const FEW_COLUMNS: usize = 6;

/// Where boxes stand.
pub(super) struct Order {
    /// The row of each box.
    pub(super) rows: Vec<usize>,
    /// The column of each box.
    pub(super) columns: Vec<usize>,
    pub(super) column_count: usize,
}

impl Order {
    pub(super) fn of(picture: &Picture) -> Order {
        let rows = rows(picture);
        let (own, count) = own_columns(picture);
        let order = arrange(picture, &rows, &own, count);
        let columns = own.iter().map(|column| order[*column]).collect();
        Order { rows, columns, column_count: count }
    }
}

/// How readily an arrow is believed to point down.
pub(super) fn plainness(kind: EdgeKind) -> usize {
    match kind {
        EdgeKind::Initial => 0,
        EdgeKind::Session => 1,
        EdgeKind::RealTime => 2,
        EdgeKind::WriteRead => 3,
        EdgeKind::WriteWrite => 4,
        EdgeKind::Stated => 5,
        EdgeKind::CommitOrder => 6,
        EdgeKind::ReadWrite => 7,
        _ => 8,
    }
}

/// The length of the longest way down to each box, along the arrows that may point down.
fn rows(picture: &Picture) -> Vec<usize> {
    let count = picture.nodes.len();
    let mut down: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut arrows: Vec<(usize, usize, usize)> = Vec::new();
    for (a, one) in picture.nodes.iter().enumerate() {
        for (b, other) in picture.nodes.iter().enumerate() {
            // Two boxes of one column never share a row.
            let session = |at: &super::Node| at.session.as_ref().map(|(session, _)| *session);
            if session(one).is_some() && session(one) == session(other) && one.txn < other.txn {
                arrows.push((0, a, b));
            }
        }
    }
    let links = picture.links.iter();
    arrows.extend(links.map(|link| (1 + plainness(link.kind), link.from, link.to)));
    arrows.sort_by_key(|arrow| arrow.0);
    for (_, from, to) in arrows {
        if from != to && !leads(&down, to, from) {
            down[from].push(to);
        }
    }
    let mut rows = vec![0; count];
    // Rows only grow, and by at most one box per round.
    for _ in 0..count {
        for from in 0..count {
            for to in &down[from] {
                rows[*to] = rows[*to].max(rows[from] + 1);
            }
        }
    }
    rows
}

/// Whether the arrows lead from one box to another.
fn leads(down: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; down.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if !std::mem::replace(&mut seen[at], true) {
            open.extend(&down[at]);
        }
    }
    false
}

/// A column per session, and one for the initial state.
fn own_columns(picture: &Picture) -> (Vec<usize>, usize) {
    let mut sessions: Vec<_> = picture
        .nodes
        .iter()
        .map(|node| node.session.as_ref().map(|(session, _)| *session))
        .collect();
    let of_nodes = sessions.clone();
    sessions.sort_unstable();
    sessions.dedup();
    let columns = of_nodes.iter().map(|session| sessions.partition_point(|other| other < session));
    (columns.collect(), sessions.len())
}

/// The place of each column: the arrangement in which arrows are short and cross little.
fn arrange(picture: &Picture, rows: &[usize], own: &[usize], count: usize) -> Vec<usize> {
    let cost = |order: &[usize]| -> usize {
        let ends: Vec<_> = (picture.links.iter())
            .map(|link| [link.from, link.to].map(|at| (order[own[at]], rows[at])))
            .collect();
        let far: usize = ends.iter().map(|[a, b]| a.0.abs_diff(b.0)).sum();
        let crossings = ends
            .iter()
            .enumerate()
            .map(|(at, one)| ends[at + 1..].iter().filter(|other| cross(one, other)).count());
        4 * far + 6 * crossings.sum::<usize>()
    };
    let mut best: Vec<usize> = (0..count).collect();
    let mut least = cost(&best);
    if count <= FEW_COLUMNS {
        for order in permutations(count) {
            if cost(&order) < least {
                (least, best) = (cost(&order), order);
            }
        }
        return best;
    }
    // Many columns: exchange two while that helps.
    let mut improved = true;
    while improved {
        improved = false;
        for a in 0..count {
            for b in a + 1..count {
                best.swap(a, b);
                let new = cost(&best);
                if new < least {
                    (least, improved) = (new, true);
                } else {
                    best.swap(a, b);
                }
            }
        }
    }
    best
}

/// Whether two straight arrows cross: ends that lie on different sides, left to right.
fn cross(one: &[(usize, usize); 2], other: &[(usize, usize); 2]) -> bool {
    let side = |a: (usize, usize), b: (usize, usize), p: (usize, usize)| -> i64 {
        let n = |x: usize| x as i64;
        ((n(b.0) - n(a.0)) * (n(p.1) - n(a.1)) - (n(b.1) - n(a.1)) * (n(p.0) - n(a.0))).signum()
    };
    side(one[0], one[1], other[0]) * side(one[0], one[1], other[1]) < 0
        && side(other[0], other[1], one[0]) * side(other[0], other[1], one[1]) < 0
}

/// All orders of a few things, in lexical order.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = |start: &Vec<usize>| {
            let free: Vec<usize> = (0..count).filter(|at| !start.contains(at)).collect();
            free.into_iter().map(|at| [&start[..], &[at]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}
