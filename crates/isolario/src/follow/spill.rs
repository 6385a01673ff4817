//! Levels of a file that is too large to be loaded, followed to its end.

use std::path::Path;
use std::rc::Rc;

use isolario_check::{Figures, Inquiry, Options, check};
use isolario_model::{Findings, History, Level, LevelResult, Verdict, Witness};

use super::sorted::Runs;
use super::{Decided, FollowError, Following, Input, Settings};

/// What came of the levels of a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Spilled {
    /// The answers, in the order of the levels. That a level is satisfied comes without an order: it is not
    /// kept.
    pub results: Vec<LevelResult>,
    /// What the evidence is about: the part of the history that proves what is violated. Transactions
    /// without a name have the one that they go by in the whole.
    pub part: History,
    /// How large the history is, as far as it was read.
    pub figures: Figures,
    /// How many bytes were sorted on disk.
    pub bytes: u64,
    /// How often a level had to read the file again.
    pub restarts: u32,
}

/// Decides levels of a file in bounded memory. Where transactions are not about in the order in which they
/// finished, they are sorted in a directory first.
pub fn decide(
    input: Input<'_>,
    levels: &[Level],
    options: &Options,
    settings: Settings,
    directory: &Path,
) -> Result<Spilled, FollowError> {
    let mut runs: Option<Rc<Runs>> = None;
    let (mut figures, mut restarts) = (Figures::default(), 0);
    let mut answers = Vec::new();
    for level in levels {
        let mut following = Following::new(input, *level, options, settings)?;
        following.sort_into(directory, runs.take())?;
        let decided = following.to_end()?;
        let read = decided.as_ref().map_or(following.follower().figures(), |one| one.figures);
        if read.operations >= figures.operations {
            figures = read;
        }
        restarts += following.follower().restarts();
        let holds = || LevelResult {
            level: *level,
            engine: following.follower().engine(),
            verdict: Verdict::Satisfied(Witness::Empty),
        };
        answers.push(decided.ok_or_else(holds));
        runs = following.runs.take();
    }
    let bytes = runs.map_or(0, |runs| runs.bytes());
    let part = common_part(&input, &answers)?;
    let several = answers.iter().filter(|answer| is_told_by_part(answer)).count() > 1;
    let result = |answer: Result<Box<Decided>, LevelResult>| match answer {
        Ok(decided) if several && decided.result.verdict.is_violated() => {
            of_part(&part, &decided.result, options)
        }
        Ok(decided) => decided.result,
        Err(holds) => holds,
    };
    let results = answers.into_iter().map(result).collect();
    Ok(Spilled { results, part, figures, bytes, restarts })
}

/// Whether an answer has evidence in terms of a part of the history.
fn is_told_by_part(answer: &Result<Box<Decided>, LevelResult>) -> bool {
    answer.as_ref().is_ok_and(|decided| decided.part.txn_count() > 0)
}

/// A part of the history that proves all answers. One that proves an answer does so with more
/// transactions, too.
fn common_part(
    input: &Input<'_>,
    answers: &[Result<Box<Decided>, LevelResult>],
) -> Result<History, FollowError> {
    let told: Vec<&Decided> = answers
        .iter()
        .filter(|answer| is_told_by_part(answer))
        .filter_map(|answer| answer.as_ref().ok().map(Box::as_ref))
        .collect();
    let questions: Vec<&Inquiry> = told.iter().filter_map(|one| one.question.as_ref()).collect();
    match (&told[..], &questions[..]) {
        ([], _) => Ok(History::default()),
        ([one], _) => Ok(one.part.clone()),
        (_, [first, others @ ..]) if questions.len() == told.len() => {
            let mut joint = (*first).clone();
            others.iter().for_each(|other| joint.join(other));
            Ok(super::told(joint, input, true)?.into_part()?)
        }
        // One of them is about everything that there is.
        _ => Ok(told
            .iter()
            .max_by_key(|one| one.part.txn_count())
            .map_or_else(History::default, |one| one.part.clone())),
    }
}

/// What was decided of a smaller part, told of a larger one.
fn of_part(part: &History, result: &LevelResult, options: &Options) -> LevelResult {
    let told = check(part, &[result.level], options).pop();
    match told {
        Some(told) if told.verdict.is_violated() => told,
        // No evidence is better than evidence about another part.
        _ => LevelResult {
            level: result.level,
            engine: result.engine,
            verdict: Verdict::Violated(Findings { total: 1, ..Findings::default() }),
        },
    }
}
