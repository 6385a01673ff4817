//! The file format of scripts: a line is a fact about the script or a step of a session.

use isolario_model::{AnomalyKind, Level};

use super::answer::{Expectation, ExpectedAnswer};
use super::{Script, ScriptAction, ScriptFamily, ScriptStep};

/// A script that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct ScriptError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub message: String,
    /// How it would be right.
    pub remedy: String,
}

/// What stands between a statement and what is expected of it. In SQL it would begin a comment.
const ARROW: &str = "-->";

/// The session whose steps come before all others, in a transaction that needs no `begin`.
const SETUP: &str = "setup";
/// The session whose steps come after all others, likewise.
const FINALLY: &str = "finally";

/// Bounds that no sensible script meets, so that nothing grows with a bad one.
const MOST_SESSIONS: usize = 16;
const MOST_KEYS: usize = 16;
const MOST_NODES: usize = 16;
const MOST_TRIES: u32 = 100;

/// The words that a statement in SQL begins with.
const SQL: [&str; 30] = [
    "select",
    "insert",
    "update",
    "delete",
    "with",
    "values",
    "replace",
    "merge",
    "create",
    "drop",
    "alter",
    "truncate",
    "set",
    "lock",
    "unlock",
    "declare",
    "fetch",
    "move",
    "open",
    "close",
    "savepoint",
    "release",
    "rollback",
    "call",
    "do",
    "execute",
    "pragma",
    "analyze",
    "table",
    "handler",
];

impl Script {
    /// Reads a script. Its name is that of its file.
    pub fn parse(name: &str, text: &str) -> Result<Script, ScriptError> {
        let mut parser = Parser::new(name);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            parser.line = u32::try_from(number + 1).unwrap_or(u32::MAX);
            if !line.is_empty() && !line.starts_with('#') {
                parser.read(line)?;
            }
        }
        parser.finish()
    }
}

struct Parser {
    script: Script,
    line: u32,
    /// For each session, the position of the `begin` of its open transaction.
    open: Vec<Option<usize>>,
    /// For each key, whether it is a list; unknown as long as it is only read.
    is_list: Vec<Option<bool>>,
}

impl Parser {
    fn new(name: &str) -> Parser {
        let script = Script {
            name: name.to_owned(),
            title: String::new(),
            about: String::new(),
            anomaly: None,
            forbidden_by: Vec::new(),
            databases: Vec::new(),
            nodes: 1,
            tries: 1,
            family: ScriptFamily::Registers,
            keys: Vec::new(),
            sessions: Vec::new(),
            steps: Vec::new(),
        };
        Parser { script, line: 0, open: Vec::new(), is_list: Vec::new() }
    }

    fn wrong(&self, message: impl Into<String>, remedy: impl Into<String>) -> ScriptError {
        ScriptError { line: self.line, message: message.into(), remedy: remedy.into() }
    }

    /// One line. A name before a colon makes it a step.
    fn read(&mut self, line: &str) -> Result<(), ScriptError> {
        let (is_together, step) = match line.strip_prefix('&') {
            Some(step) => (true, step.trim_start()),
            None => (false, line),
        };
        match step.split_once(':') {
            Some((name, rest)) if is_name(name.trim()) => {
                self.step(name.trim(), rest.trim(), is_together)
            }
            _ => {
                let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                self.fact(word, rest.trim())
            }
        }
    }

    fn fact(&mut self, word: &str, rest: &str) -> Result<(), ScriptError> {
        let names = || rest.split([',', ' ']).filter(|name| !name.is_empty());
        match word {
            "title" => self.script.title = rest.to_owned(),
            "about" => {
                let gap = if self.script.about.is_empty() { "" } else { " " };
                self.script.about += gap;
                self.script.about += rest;
            }
            "anomaly" => self.script.anomaly = Some(self.anomaly(rest)?),
            "forbidden-by" => {
                self.script.forbidden_by =
                    names().map(|name| self.level(name)).collect::<Result<_, _>>()?;
            }
            "on" => self.script.databases = names().map(str::to_owned).collect(),
            "nodes" => self.script.nodes = self.number(rest, MOST_NODES)?,
            "tries" => self.script.tries = self.number(rest, MOST_TRIES as usize)? as u32,
            _ => {
                return Err(self.wrong(
                    format!("{word:?} is neither a fact about the script nor a session"),
                    "a line is `SESSION: STATEMENT` or begins with title, about, anomaly, \
                     forbidden-by, on, nodes or tries; comments begin with #",
                ));
            }
        }
        Ok(())
    }

    fn anomaly(&self, name: &str) -> Result<AnomalyKind, ScriptError> {
        AnomalyKind::find(&name.replace('-', "")).ok_or_else(|| {
            self.wrong(
                format!("there is no anomaly {name:?}"),
                "`isolario explain` lists the anomalies; omit the line if none of them applies",
            )
        })
    }

    fn level(&self, name: &str) -> Result<Level, ScriptError> {
        Level::find(name).ok_or_else(|| {
            self.wrong(format!("there is no level {name:?}"), "`isolario levels` lists the levels")
        })
    }

    fn number(&self, text: &str, most: usize) -> Result<usize, ScriptError> {
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        let remedy = format!("write a number from 1 to {most}");
        number.ok_or_else(|| self.wrong(format!("{text:?} is not valid here"), remedy))
    }

    fn step(&mut self, name: &str, rest: &str, is_together: bool) -> Result<(), ScriptError> {
        let (statement, expected) = match rest.split_once(ARROW) {
            Some((statement, expected)) => (statement.trim(), Some(expected.trim())),
            None => (rest, None),
        };
        let session = self.session(name)?;
        let before = self.script.steps.last().map(|step| step.session);
        if is_together && before.is_none_or(|before| before == session) {
            return Err(self.wrong(
                "& sends a step together with the one before it, of another session",
                "remove the &, or move the line",
            ));
        }
        let action = self.action(statement)?;
        self.place(session, &action)?;
        let expected = match expected {
            Some(text) => self.expected(text, &action)?,
            None => Expectation::default(),
        };
        self.push(session, action, expected, is_together);
        Ok(())
    }

    fn push(
        &mut self,
        session: usize,
        action: ScriptAction,
        expected: Expectation,
        together: bool,
    ) {
        let line = self.line;
        self.script.steps.push(ScriptStep { line, session, action, expected, together });
    }

    fn session(&mut self, name: &str) -> Result<usize, ScriptError> {
        let known = self.script.sessions.iter().position(|known| known == name);
        let mut others = self.open.iter().zip(&self.script.sessions);
        let is_anybody_open = others.any(|(open, name)| open.is_some() && name != SETUP);
        match known {
            Some(session) if name == SETUP && self.script.sessions.len() > 1 => Err(self.wrong(
                format!("setup continues after {} has begun", self.script.sessions[session + 1]),
                "move all setup lines to the beginning",
            )),
            Some(session) => Ok(session),
            None if self.script.sessions.len() == MOST_SESSIONS => {
                Err(self.wrong(format!("more than {MOST_SESSIONS} sessions"), "use fewer sessions"))
            }
            None if name == FINALLY && is_anybody_open => Err(self.wrong(
                "finally begins before all transactions have ended",
                "end every transaction before, with commit or rollback",
            )),
            None => {
                self.script.sessions.push(name.to_owned());
                self.open.push(None);
                Ok(self.script.sessions.len() - 1)
            }
        }
    }

    /// A transaction has to be open, or not, as the statement needs it. That of setup and finally
    /// opens by itself; statements in SQL stand alone there, since some of them cannot be part of
    /// a transaction.
    fn place(&mut self, session: usize, action: &ScriptAction) -> Result<(), ScriptError> {
        let name = self.script.sessions[session].clone();
        let by_itself = name == SETUP || name == FINALLY;
        match (action, self.open[session]) {
            (ScriptAction::Begin { .. } | ScriptAction::Commit | ScriptAction::Rollback, _)
                if by_itself =>
            {
                let message = format!("{name} needs no begin and no end");
                Err(self.wrong(message, "remove the line"))
            }
            (ScriptAction::Begin { .. }, Some(_)) => Err(self.wrong(
                format!("{name} has begun a transaction already"),
                format!("end that one first: `{name}: commit`"),
            )),
            (ScriptAction::Begin { .. }, None) => {
                self.open[session] = Some(self.script.steps.len());
                Ok(())
            }
            (ScriptAction::Sql(_), None) if by_itself => Ok(()),
            (_, None) if by_itself => {
                self.open[session] = Some(self.script.steps.len());
                let begin = ScriptAction::Begin { node: 0, writes: false };
                self.push(session, begin, Expectation::default(), false);
                Ok(())
            }
            (_, None) => Err(self.wrong(
                format!("{name} has not begun a transaction"),
                format!("write `{name}: begin` before it"),
            )),
            (action, Some(_)) => {
                if action.is_end() {
                    self.open[session] = None;
                }
                Ok(())
            }
        }
    }

    fn action(&mut self, statement: &str) -> Result<ScriptAction, ScriptError> {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let first = words.first().map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        match (first.as_str(), &words[words.len().min(1)..]) {
            ("begin", []) => Ok(ScriptAction::Begin { node: 0, writes: false }),
            ("begin", [place]) if place.starts_with('@') => {
                let node = self.number(&place[1..], MOST_NODES)? - 1;
                Ok(ScriptAction::Begin { node, writes: false })
            }
            ("commit", []) => Ok(ScriptAction::Commit),
            ("rollback", []) => Ok(ScriptAction::Rollback),
            ("read", [key]) => Ok(ScriptAction::Read(self.key(key, None)?)),
            ("write", [key, value]) => {
                let value = self.value(value)?;
                Ok(ScriptAction::Write(self.key(key, Some(false))?, value))
            }
            // Without a name of a table, it is no statement in SQL.
            ("delete", [key]) => Ok(ScriptAction::Delete(self.key(key, Some(false))?)),
            ("append", [key, element]) => {
                let element = self.value(element)?;
                Ok(ScriptAction::Append(self.key(key, Some(true))?, element))
            }
            (verb, _) if SQL.contains(&verb) => Ok(ScriptAction::Sql(statement.to_owned())),
            _ => Err(self.wrong(
                format!("{statement:?} is not a statement"),
                "expected begin, commit, rollback, `read KEY`, `write KEY NUMBER`, `delete KEY`, \
                 `append KEY NUMBER`, or a statement in SQL",
            )),
        }
    }

    fn value(&self, text: &str) -> Result<i64, ScriptError> {
        let value = text.parse().ok().filter(|value| *value > 0);
        value.ok_or_else(|| {
            self.wrong(format!("{text:?} cannot be written"), "write a positive whole number")
        })
    }

    fn key(&mut self, name: &str, is_list: Option<bool>) -> Result<usize, ScriptError> {
        if !is_name(name) {
            return Err(self.wrong(
                format!("{name:?} is not the name of a key"),
                "a name is letters, digits and underscores, such as x",
            ));
        }
        let known = self.script.keys.iter().position(|known| known == name);
        let key = match known {
            Some(key) => key,
            None if self.script.keys.len() == MOST_KEYS => {
                return Err(self.wrong(format!("more than {MOST_KEYS} keys"), "use fewer keys"));
            }
            None => {
                self.script.keys.push(name.to_owned());
                self.is_list.push(None);
                self.script.keys.len() - 1
            }
        };
        match (self.is_list[key], is_list) {
            (Some(was), Some(is)) if was != is => Err(self.wrong(
                format!("{name} is written and appended to"),
                "a key is either a register or a list: use two keys",
            )),
            (was, is) => {
                self.is_list[key] = is.or(was);
                Ok(key)
            }
        }
    }

    fn expected(&self, text: &str, action: &ScriptAction) -> Result<Expectation, ScriptError> {
        let mut expected = Expectation::default();
        let mut rest = text;
        if let Some(after) = rest.strip_prefix("waits") {
            expected.waits = true;
            rest = after.trim_start_matches(',').trim();
        }
        if let Some(code) = rest.strip_prefix("fails") {
            let code = code.trim();
            expected.fails = Some(Some(code.to_owned()).filter(|code| !code.is_empty()));
            return Ok(expected);
        }
        if let Some(after) = rest.strip_prefix("not ") {
            expected.negated = true;
            rest = after.trim();
        }
        if rest.is_empty() && expected.waits && !expected.negated {
            return Ok(expected);
        }
        for part in rest.split(" or ") {
            let answer = answer(part.trim(), action);
            expected.answers.push(answer.ok_or_else(|| self.no_answer(part, action))?);
        }
        Ok(expected)
    }

    fn no_answer(&self, text: &str, action: &ScriptAction) -> ScriptError {
        let remedy = match action {
            ScriptAction::Read(_) | ScriptAction::ReadList(_) => {
                "a read answers with a number, `nothing` or a list such as [1, 2]; `not` negates the \
                 answer, and `waits` and `fails` can be expected, too"
            }
            ScriptAction::Sql(_) => {
                "SQL answers with rows such as (1, 10), (2, 20), with `no rows` or with `2 rows`; \
                 it can also be said to be `not` that, to `waits` or to `fails`"
            }
            _ => {
                "this statement has no answer: expect `waits` or `fails`, optionally with an error code"
            }
        };
        self.wrong(format!("{text:?} cannot be expected here"), remedy)
    }

    /// What can be said only when all lines are known.
    fn finish(mut self) -> Result<Script, ScriptError> {
        self.end_by_themselves();
        if let Some((session, begun)) =
            self.open.iter().enumerate().find_map(|(session, begun)| Some((session, (*begun)?)))
        {
            self.line = self.script.steps[begun].line;
            let name = &self.script.sessions[session];
            return Err(self.wrong(
                format!("{name} begins a transaction that never ends"),
                format!("add `{name}: commit` or `{name}: rollback`"),
            ));
        }
        self.settle_writes();
        self.settle_lists();
        self.script.family = self.family()?;
        if let Some(anomaly) = self.script.anomaly
            && self.script.forbidden_by.is_empty()
        {
            self.script.forbidden_by = anomaly.names().forbidden_by.to_vec();
        }
        if self.script.title.is_empty() {
            self.script.title = self.script.name.replace('-', " ");
        }
        Ok(self.script)
    }

    /// Setup commits before the first step of anybody else, finally at the end.
    fn end_by_themselves(&mut self) {
        for session in 0..self.open.len() {
            let name = self.script.sessions[session].as_str();
            if (name != SETUP && name != FINALLY) || self.open[session].take().is_none() {
                continue;
            }
            let last = self.script.steps.iter().rposition(|step| step.session == session);
            let at = last.map_or(0, |last| last + 1);
            let line = self.script.steps[at - 1].line;
            let (action, expected) = (ScriptAction::Commit, Expectation::default());
            self.script
                .steps
                .insert(at, ScriptStep { line, session, action, expected, together: false });
        }
    }

    /// Whether each transaction writes.
    fn settle_writes(&mut self) {
        for at in 0..self.script.steps.len() {
            let (step, later) = (&self.script.steps[at], &self.script.steps[at + 1..]);
            let own = later.iter().filter(|other| other.session == step.session);
            let mut own = own.take_while(|other| !other.action.is_end());
            let any = own.any(|other| other.action.writes());
            if let ScriptAction::Begin { writes, .. } = &mut self.script.steps[at].action {
                *writes = any;
            }
        }
    }

    /// Reads of what is appended to are reads of lists.
    fn settle_lists(&mut self) {
        for step in &mut self.script.steps {
            if let ScriptAction::Read(key) = step.action
                && self.is_list[key] == Some(true)
            {
                step.action = ScriptAction::ReadList(key);
            }
        }
    }

    fn family(&mut self) -> Result<ScriptFamily, ScriptError> {
        let mut family = None;
        for at in 0..self.script.steps.len() {
            let of = match &self.script.steps[at].action {
                ScriptAction::Begin { .. } | ScriptAction::Commit | ScriptAction::Rollback => {
                    continue;
                }
                ScriptAction::Read(_) | ScriptAction::Write(..) | ScriptAction::Delete(_) => {
                    ScriptFamily::Registers
                }
                ScriptAction::ReadList(_) | ScriptAction::Append(..) => ScriptFamily::Lists,
                ScriptAction::Sql(_) => ScriptFamily::Sql,
            };
            self.line = self.script.steps[at].line;
            match family {
                Some(known) if known != of => {
                    return Err(self.wrong(
                        "this script mixes registers, lists and SQL",
                        "use only one of them: each has a table of its own",
                    ));
                }
                _ => family = Some(of),
            }
        }
        family.ok_or_else(|| {
            self.wrong("this script does nothing", "add steps, such as `T1: begin`, `T1: read x`")
        })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// An answer that this statement can give.
fn answer(text: &str, action: &ScriptAction) -> Option<ExpectedAnswer> {
    match action {
        ScriptAction::Read(_) | ScriptAction::ReadList(_) => match text.strip_prefix('[') {
            Some(elements) => {
                let elements = elements.strip_suffix(']')?.split([',', ' ']);
                let elements = elements.filter(|element| !element.is_empty());
                Some(ExpectedAnswer::List(elements.map(|e| e.parse().ok()).collect::<Option<_>>()?))
            }
            None if text == "nothing" => Some(ExpectedAnswer::Value(None)),
            None => text.parse().ok().map(|value| ExpectedAnswer::Value(Some(value))),
        },
        ScriptAction::Sql(_) => match text.split_once(' ') {
            Some(("no", "rows")) => Some(ExpectedAnswer::Rows(Vec::new())),
            Some((count, "row" | "rows")) => count.parse().ok().map(ExpectedAnswer::Count),
            _ => rows(text).map(ExpectedAnswer::Rows),
        },
        _ => None,
    }
}

/// Rows in parentheses: `(1, 10), (2, 'a, b')`.
fn rows(text: &str) -> Option<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        rest = rest.strip_prefix('(')?;
        let mut row = Vec::new();
        loop {
            let (value, after) = value(rest.trim_start())?;
            row.push(value);
            rest = after.trim_start();
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
        }
        rest = rest.strip_prefix(')')?.trim_start().trim_start_matches(',').trim_start();
        rows.push(row);
    }
    (!rows.is_empty()).then_some(rows)
}

/// A value at the beginning of a text, and what comes after it.
fn value(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('\'') {
        let (value, rest) = quoted.split_once('\'')?;
        return Some((value.to_owned(), rest));
    }
    let end = text.find([',', ')'])?;
    let value = text[..end].trim();
    (!value.is_empty()).then(|| (value.to_owned(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Script {
        Script::parse("test", text).unwrap()
    }

    fn error(text: &str) -> (u32, String, String) {
        let ScriptError { line, message, remedy } = Script::parse("test", text).unwrap_err();
        (line, message, remedy)
    }

    #[test]
    fn a_script_is_facts_and_steps() {
        let script = parse(
            "# Two withdrawals\n\
             title P4 lost update\n\
             anomaly lost-update\n\
             about Both read x,\n\
             about and both write it.\n\
             tries 3\n\
             setup: write x 1\n\
             T1: begin @2\n\
             T1: read x --> 1\n\
             T1: write x 2 --> waits\n\
             T2: begin\n\
             T2: read x --> not 1 or nothing\n\
             T1: commit\n\
             & T2: commit\n",
        );
        assert_eq!((script.title.as_str(), script.tries), ("P4 lost update", 3));
        assert_eq!(script.about, "Both read x, and both write it.");
        assert_eq!(script.anomaly, Some(AnomalyKind::LostUpdate));
        assert_eq!(script.forbidden_by, AnomalyKind::LostUpdate.names().forbidden_by);
        assert_eq!(
            (script.sessions.as_slice(), script.keys.as_slice()),
            (["setup", "T1", "T2"].map(str::to_owned).as_slice(), ["x".to_owned()].as_slice())
        );
        let words: Vec<_> = script
            .steps
            .iter()
            .map(|step| {
                format!("{} {} {}", step.session, script.action_text(&step.action), step.expected)
            })
            .collect();
        assert_eq!(
            words,
            [
                "0 begin ",
                "0 write x 1 ",
                "0 commit ",
                "1 begin @2 ",
                "1 read x 1",
                "1 write x 2 waits",
                "2 begin ",
                "2 read x not 1 or nothing",
                "1 commit ",
                "2 commit ",
            ]
        );
        let together: Vec<_> = script.steps.iter().map(|step| step.together).collect();
        assert_eq!(together.iter().position(|together| *together), Some(9));
        let writes =
            |at: usize| matches!(script.steps[at].action, ScriptAction::Begin { writes: true, .. });
        assert!(writes(0) && writes(3) && !writes(6));
    }

    #[test]
    fn what_comes_finally_comes_after_all_transactions() {
        let script =
            parse("setup: write x 1\nT1: begin\nT1: write x 2\nT1: commit\nfinally: read x --> 2");
        let words: Vec<_> =
            script.steps.iter().map(|step| script.action_text(&step.action)).collect();
        assert_eq!(
            words,
            [
                "begin",
                "write x 1",
                "commit",
                "begin",
                "write x 2",
                "commit",
                "begin",
                "read x",
                "commit",
            ]
        );
        let (line, message, _) = error("T1: begin\nfinally: read x\nT1: commit");
        assert_eq!(
            (line, message.as_str()),
            (2, "finally begins before all transactions have ended")
        );
    }

    #[test]
    fn a_key_that_is_appended_to_is_a_list() {
        let script = parse("T1: begin\nT1: read x --> [1, 2]\nT1: append x 3\nT1: commit");
        assert_eq!(script.family, ScriptFamily::Lists);
        assert_eq!(script.steps[1].action, ScriptAction::ReadList(0));
        assert_eq!(script.steps[1].expected.answers, [ExpectedAnswer::List(vec![1, 2])]);
    }

    #[test]
    fn statements_in_sql_answer_with_rows() {
        let script = parse(
            "setup: INSERT INTO t VALUES (1)\n\
             T1: begin\n\
             T1: select * from t --> (1, 'a, (b)'), (2, null)\n\
             T1: UPDATE t SET v = 1 --> 2 rows\n\
             T1: SELECT 1 --> no rows\n\
             T1: commit --> fails 40001",
        );
        assert_eq!(script.family, ScriptFamily::Sql);
        let expected: Vec<_> = script.steps.iter().map(|step| step.expected.to_string()).collect();
        assert_eq!(
            expected,
            ["", "", "(1, a, (b)), (2, null)", "2 rows", "no rows", "fails 40001"]
        );
    }

    #[test]
    fn mistakes_have_a_line_and_a_remedy() {
        for (text, line, message, remedy) in [
            ("\nhello world", 2, "\"hello\" is neither", "a line is `SESSION: STATEMENT`"),
            ("T1: begin\nT1: rea x", 2, "\"rea x\" is not a statement", "expected begin, commit"),
            ("T1: read x", 1, "T1 has not begun", "write `T1: begin` before it"),
            ("T1: begin\nT1: begin", 2, "T1 has begun a transaction already", "end that one first"),
            ("T1: begin\nT1: read x", 1, "that never ends", "add `T1: commit`"),
            ("anomaly lost", 1, "there is no anomaly \"lost\"", "`isolario explain` lists"),
            ("forbidden-by chaos", 1, "there is no level \"chaos\"", "`isolario levels`"),
            ("T1: begin\nT1: write x 0", 2, "\"0\" cannot be written", "a positive whole number"),
            ("T1: begin\nT1: read x --> two", 2, "\"two\" cannot be expected", "a read answers"),
            ("T1: begin\nT1: commit --> 2", 2, "\"2\" cannot be expected", "has no answer"),
            ("setup: begin", 1, "setup needs no begin", "remove the line"),
            ("T1: begin\nT1: write x 1\nT1: append x 2", 3, "written and appended", "use two keys"),
            (
                "T1: begin\nT1: write x 1\nT1: SELECT 1\nT1: commit",
                3,
                "mixes registers, lists and SQL",
                "use only one of them",
            ),
            ("& T1: begin", 1, "& sends a step together", "remove the &"),
            ("nodes 0", 1, "\"0\" is not valid here", "from 1 to 16"),
            ("# nothing", 1, "does nothing", "add steps"),
        ] {
            let (at, said, hint) = error(text);
            assert_eq!(at, line, "{text}: {said}");
            assert!(said.contains(message), "{said}");
            assert!(hint.contains(remedy), "{hint}");
        }
    }

    #[test]
    fn transactions_that_read_before_they_write_are_recognised() {
        let with = |steps: &str| parse(steps).reads_before_writes();
        assert!(with("T1: begin\nT1: read x\nT1: write x 1\nT1: commit"));
        assert!(!with("T1: begin\nT1: write x 1\nT1: commit"));
        let later = "T1: begin\nT1: read x\nT1: commit\nT1: begin\nT1: write x 1\nT1: commit";
        assert!(!with(later));
    }
}
