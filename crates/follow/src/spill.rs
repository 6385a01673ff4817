//! Levels of a file that is too large to be loaded, followed to its end.

use std::cmp::Reverse;
use std::path::Path;
use std::rc::Rc;

use isolario_check::{CheckOptions, HistoryCounts, HistoryQuery, PartPositions, check};
use isolario_model::{
    Attempt, Findings, History, Level, LevelNodes, LevelResult, Verdict, VerdictKind, Witness,
};

use super::sorted::Runs;
use super::{Decided, FollowError, Following, Input, Order, Settings};

/// What came of the levels of a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Spilled {
    /// The answers, in the order of the levels. That a level is satisfied comes without an order: that is not
    /// in memory.
    pub results: Vec<LevelResult>,
    /// What the evidence is about: the part of the history that proves what is violated. Transactions
    /// without a name have the one that they go by in the whole.
    pub part: History,
    /// Where the part is in the history.
    pub places: PartPositions,
    /// By level, the order by which it is satisfied, if it was to be kept, and if it takes no more than an
    /// order.
    pub orders: Vec<Option<Rc<Order>>>,
    /// How large the history is, as far as it was read.
    pub figures: HistoryCounts,
    /// How many bytes were sorted on disk.
    pub bytes: u64,
    /// How often a level went back, to read some of the file again, or all of it.
    pub returns: u32,
    /// How often that was to the beginning.
    pub restarts: u32,
}

/// Decides levels of a file in bounded memory. Where transactions are not about in the order in which they
/// finished, they are sorted in a directory first. The file is read once per level, stronger ones first: what
/// they show of weaker ones need not be shown again.
pub fn decide(
    input: Input<'_>,
    levels: &[Level],
    options: &CheckOptions,
    settings: Settings,
    directory: &Path,
) -> Result<Spilled, FollowError> {
    let mut runs: Option<Rc<Runs>> = None;
    let (mut figures, mut returns, mut restarts) = (HistoryCounts::default(), 0, 0);
    let mut found: Vec<Option<Shown>> = levels.iter().map(|_| None).collect();
    for at in stronger_first(levels) {
        if let Some(shown) = shown_by_stronger(at, levels, &found) {
            found[at] = Some(shown);
            continue;
        }
        let mut following = Following::new(input, levels[at], options, settings)?;
        following.sort_into(directory, runs.take())?;
        if settings.orders {
            following.keep_order_in(directory)?;
        }
        let decided = following.to_end()?;
        let read = decided.as_ref().map_or(following.follower().figures(), |one| one.figures);
        if read.operations >= figures.operations {
            figures = read;
        }
        returns += following.follower().restarts();
        restarts += following.restarts();
        let answer = decided.ok_or_else(|| holds(levels[at], following.follower().decided_by()));
        runs = following.runs.take();
        found[at] = Some((answer, following.into_order()?.map(Rc::new)));
    }
    let (answers, orders): (Vec<Answered>, Vec<_>) = found.into_iter().flatten().unzip();
    let bytes = runs.map_or(0, |runs| runs.bytes());
    let (part, places) = common_part(&input, settings.piece, &answers)?;
    let results = told_of(&part, &places, answers, options);
    Ok(Spilled { results, part, places, orders, figures, bytes, returns, restarts })
}

fn holds(level: Level, decided_by: Attempt) -> LevelResult {
    LevelResult { level, decided_by, verdict: Verdict::Satisfied(Witness::Empty) }
}

/// Where levels are among those that are asked for, none after one that it implies.
fn stronger_first(levels: &[Level]) -> Vec<usize> {
    let implied = |at: &usize| levels.iter().filter(|other| levels[*at].implies(**other)).count();
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by_key(|at| Reverse(implied(at)));
    order
}

/// What a stronger level that holds shows of a weak one: an order of whole transactions that gives what the
/// one demands gives what the other does.
fn shown_by_stronger(at: usize, levels: &[Level], found: &[Option<Shown>]) -> Option<Shown> {
    let shows = |stronger: &Level| {
        stronger.shape().nodes == LevelNodes::One
            && stronger.implies(levels[at])
            && Level::Causal.implies(levels[at])
    };
    let mut stronger = levels.iter().zip(found).filter(|(stronger, _)| shows(stronger));
    stronger.find_map(|(_, found)| match found {
        Some((Err(_), order)) => Some((Err(holds(levels[at], Attempt::Order)), order.clone())),
        _ => None,
    })
}

/// A level's answer, if it is more than that the level holds.
type Answered = Result<Box<Decided>, LevelResult>;

/// The same with the order that shows it, if that was kept.
type Shown = (Answered, Option<Rc<Order>>);

/// The answers that have evidence, in terms of a part of the history.
fn told_by_parts(answers: &[Answered]) -> impl Iterator<Item = &Decided> {
    let decided = answers.iter().filter_map(|answer| answer.as_ref().ok().map(Box::as_ref));
    decided.filter(|one| one.result.verdict.kind() != VerdictKind::Undecided)
}

/// A part of the history that has those by which the answers are told.
fn common_part(
    input: &Input<'_>,
    piece: usize,
    answers: &[Answered],
) -> Result<(History, PartPositions), FollowError> {
    let parts: Vec<_> = told_by_parts(answers).map(|one| (&one.part, &one.places)).collect();
    match parts[..] {
        [] => Ok((History::default(), PartPositions::default())),
        [(part, places)] => Ok((part.clone(), places.clone())),
        _ => Ok(super::told(HistoryQuery::about(parts), input, piece, true)?.into_part()?),
    }
}

/// The answers with evidence that is about a common part. They are asked of it together, since levels may
/// be violated for the same reason; one that is not found again keeps the evidence that it has.
fn told_of(
    part: &History,
    places: &PartPositions,
    answers: Vec<Answered>,
    options: &CheckOptions,
) -> Vec<LevelResult> {
    let told: Vec<Level> = told_by_parts(&answers).map(|one| one.result.level).collect();
    if told.len() < 2 {
        let result = |answer: Answered| match answer {
            Ok(decided) if told.contains(&decided.result.level) => decided.result,
            Ok(decided) => decided.result,
            Err(holds) => holds,
        };
        return answers.into_iter().map(result).collect();
    }
    let found = check(part, &told, options);
    let again = |own: &LevelResult| {
        let is_same =
            |one: &&LevelResult| one.level == own.level && one.verdict.kind() == own.verdict.kind();
        found.iter().find(is_same).cloned()
    };
    let result = |answer: Answered| match answer {
        Ok(decided) if told.contains(&decided.result.level) => {
            let Decided { result, part: own, places: mine, .. } = *decided;
            let larger = || mine.result_in_larger(&own, &result, (part, places));
            again(&result).or_else(larger).unwrap_or_else(|| without_evidence(&result))
        }
        Ok(decided) => decided.result,
        Err(holds) => holds,
    };
    answers.into_iter().map(result).collect()
}

/// Evidence that is about operations of other kinds than those that are followed has no other form.
fn without_evidence(result: &LevelResult) -> LevelResult {
    let verdict = Verdict::Violated(Findings { total: 1, ..Findings::default() });
    LevelResult { verdict, ..result.clone() }
}
