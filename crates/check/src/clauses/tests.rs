use isolario_oracle::random::Rng;

use super::*;

impl Given for usize {}

const VARIABLES: usize = 9;

fn problem(rng: &mut Rng) -> Vec<Vec<Literal>> {
    let literal = |rng: &mut Rng| Literal(rng.below(2 * VARIABLES) as u32);
    let clause = |rng: &mut Rng| (0..3).map(|_| literal(rng)).collect();
    (0..rng.below(60)).map(|_| clause(rng)).map(without_repeats).collect()
}

fn without_repeats(mut clause: Vec<Literal>) -> Vec<Literal> {
    clause.sort_unstable();
    clause.dedup();
    clause
}

fn holds(values: u32, clause: &[Literal]) -> bool {
    clause.iter().any(|literal| (values >> literal.var() & 1 == 1) == literal.is_positive())
}

fn is_satisfiable(problem: &[&Vec<Literal>]) -> bool {
    (0..1u32 << VARIABLES).any(|values| problem.iter().all(|clause| holds(values, clause)))
}

fn clauses(problem: &[Vec<Literal>]) -> Clauses<usize> {
    let mut clauses = Clauses::default();
    (0..VARIABLES).for_each(|var| clauses.add_variable(!Literal::of(var as u32)));
    for (number, clause) in problem.iter().enumerate() {
        clauses.back_to(0, |_| ());
        clauses.add(clause.clone(), number);
    }
    clauses
}

fn first_free(clauses: &Clauses<usize>) -> Option<Literal> {
    let free = (0..VARIABLES).find(|var| clauses.is_free(*var))?;
    Some(clauses.phase(free))
}

#[test]
fn the_search_agrees_with_brute_force_and_names_a_contradiction() {
    let mut counts = [0, 0];
    for seed in 0..3_000 {
        let problem = problem(&mut Rng::new(seed));
        let mut clauses = clauses(&problem);
        let grounds = clauses.solve(&|| false, first_free).err();
        let grounds = grounds.map(|grounds| grounds.into_iter().copied().collect::<Vec<_>>());
        assert_eq!(
            grounds.is_none(),
            is_satisfiable(&problem.iter().collect::<Vec<_>>()),
            "{seed}"
        );
        counts[usize::from(grounds.is_none())] += 1;
        match grounds {
            None => {
                let is_true = |literal: &Literal| clauses.is_true(*literal);
                assert!(problem.iter().all(|clause| clause.iter().any(is_true)), "{seed}");
            }
            Some(grounds) => {
                let few: Vec<&Vec<Literal>> = grounds.iter().map(|at| &problem[*at]).collect();
                assert!(!is_satisfiable(&few), "{seed}");
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
}

/// The clause of a step, and the steps and certain literals that it was learned from.
struct Recorded {
    literals: Vec<Literal>,
    from: Vec<u32>,
    certain: Vec<Literal>,
}

/// As `solve` does it, with each step on record.
fn record(clauses: &mut Clauses<usize>, problem: &[Vec<Literal>]) -> Vec<Recorded> {
    let given = problem.iter().map(|literals| (literals.clone(), Vec::new(), Vec::new()));
    let record = |(literals, from, certain)| Recorded { literals, from, certain };
    let mut steps: Vec<Recorded> = given.map(record).collect();
    loop {
        if let Some(conflict) = clauses.contradiction.clone().or_else(|| clauses.propagate()) {
            let Some(lesson) = clauses.learn(&conflict) else { return steps };
            let Inference::Learned { from, certain } = &clauses.proof.steps[lesson.step as usize]
            else {
                panic!("a lesson is learned");
            };
            assert_eq!(lesson.step as usize, steps.len());
            let value = |var: &u32| clauses.states[*var as usize].value.unwrap();
            steps.push(record((
                lesson.literals.clone(),
                from.to_vec(),
                certain.iter().map(value).collect(),
            )));
            clauses.back_to(lesson.level, |_| ());
            clauses.keep(lesson);
        } else if let Some(literal) = first_free(clauses) {
            clauses.decide(literal);
        } else {
            return steps;
        }
    }
}

#[test]
fn every_learned_clause_follows_from_its_antecedents_alone() {
    let mut learned = 0;
    for seed in 0..3_000 {
        let problem = problem(&mut Rng::new(seed));
        let steps = record(&mut clauses(&problem), &problem);
        for step in &steps[problem.len()..] {
            let certain = step.certain.iter().map(|literal| vec![*literal]);
            let denied = step.literals.iter().map(|literal| vec![!*literal]);
            let units: Vec<Vec<Literal>> = certain.chain(denied).collect();
            let from = step.from.iter().map(|at| &steps[*at as usize].literals);
            let all: Vec<&Vec<Literal>> = from.chain(&units).collect();
            assert!(!is_satisfiable(&all), "{seed}");
            learned += 1;
        }
    }
    assert!(learned > 1_000, "{learned}");
}

#[test]
fn what_is_forgotten_is_learned_again_and_grounds_are_not_lost() {
    let mut refuted = 0;
    for seed in 0..1_000 {
        let problem = problem(&mut Rng::new(seed));
        let mut clauses = clauses(&problem);
        let grounds = loop {
            let Some(conflict) = clauses.contradiction.clone().or_else(|| clauses.propagate())
            else {
                match first_free(&clauses) {
                    Some(literal) => clauses.decide(literal),
                    None => break None,
                }
                continue;
            };
            let Some(lesson) = clauses.learn(&conflict) else {
                break Some(clauses.grounds(&conflict));
            };
            clauses.back_to(lesson.level, |_| ());
            clauses.keep(lesson);
            if clauses.clauses.len() == problem.len() + 3 {
                clauses.forget(u64::MAX);
            }
        };
        assert_eq!(
            grounds.is_none(),
            is_satisfiable(&problem.iter().collect::<Vec<_>>()),
            "{seed}"
        );
        if let Some(grounds) = grounds {
            let few: Vec<&Vec<Literal>> = grounds.iter().map(|at| &problem[**at]).collect();
            assert!(!is_satisfiable(&few), "{seed}");
            refuted += 1;
        }
    }
    assert!(refuted > 100, "{refuted}");
}
