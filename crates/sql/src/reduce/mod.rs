//! Smaller scripts: what can be taken from a script, one thing at a time.
//!
//! A smaller script may be wrong, since a statement refers to a column that is gone, say. Whoever
//! tries it finds out that it does not show the same any more.

mod statement;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use isolario_model::Value;
use sqlparser::ast::Statement;

use crate::product::Product;
use crate::round::{Element, Round};
use crate::schema::{Schema, Table, Type};
use crate::script::{Action, Script, Step};
use statement::{remove_inserted, smaller_statements};
use values::{replaced, smaller_everywhere, smaller_rows, smaller_values};

/// What is taken from a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// All tables and views that no statement names, at once.
    Unused,
    /// Several transactions at once.
    Many,
    /// A transaction.
    Transactions,
    /// Several statements at once.
    ManyStatements,
    /// A statement.
    Statements,
    /// A table or a view.
    Relations,
    /// A row of a table.
    Rows,
    /// A column of a table.
    Columns,
    /// A constraint, a key or an index.
    Constraints,
    /// A part of a statement: a column it shows, a part of its condition, an order, a join, a row.
    Clauses,
    /// A value in a statement or a row becomes NULL, 0 or 1.
    Values,
}

impl Reduction {
    /// All of them, those first that take most.
    pub const ALL: [Reduction; 11] = [
        Reduction::Unused,
        Reduction::Many,
        Reduction::Transactions,
        Reduction::ManyStatements,
        Reduction::Statements,
        Reduction::Relations,
        Reduction::Clauses,
        Reduction::Rows,
        Reduction::Columns,
        Reduction::Constraints,
        Reduction::Values,
    ];
}

impl Script {
    /// All scripts that are smaller by one thing of a kind.
    pub fn reductions(&self, kind: Reduction, product: &Product) -> Vec<Script> {
        match kind {
            Reduction::Unused => self.without_unused(),
            Reduction::Many => self.without_many(),
            Reduction::Transactions => self.without_txns(),
            Reduction::ManyStatements => self.without_many_statements(),
            Reduction::Statements => self.without_statements(),
            Reduction::Relations => self.without_relations(),
            Reduction::Rows => self.without_rows(),
            Reduction::Columns => self.without_columns(product),
            Reduction::Constraints => self.without_constraints(),
            Reduction::Clauses => self.with_smaller_statements(product),
            Reduction::Values => self.with_smaller_values(product),
        }
    }

    /// The same without a transaction, whose work is done before the others begin: the first rows are those that it
    /// leaves. They are told by a round of it alone. None if it leaves nothing else than what was there.
    pub fn folded(&self, txn: u32, alone: &Round) -> Option<Script> {
        let last = alone.transactions.iter().rfind(|txn| txn.is_final)?;
        let mut folded = self.clone();
        folded.steps.retain(|step| step.txn != txn);
        for (table, statement) in folded.schema.tables.iter_mut().zip(&last.statements) {
            let literals = |row: &Vec<Value>| {
                let columns = table.columns.iter().zip(row);
                let given = columns.filter(|(column, _)| !column.auto_increment);
                given.map(|(column, value)| literal(column.ty, value)).collect()
            };
            let rows: Vec<Vec<String>> = statement.rows.iter().map(literals).collect();
            table.rows = rows;
        }
        (folded.schema != self.schema).then_some(folded)
    }

    /// The same with these transactions only.
    pub fn with_txns(&self, txns: &[u32]) -> Script {
        let steps = self.steps.iter().filter(|step| txns.contains(&step.txn)).cloned().collect();
        Script { schema: self.schema.clone(), steps }
    }

    /// The same with these statements only, and with the transactions that they are part of.
    pub fn with_statements(&self, wanted: &[Element]) -> Script {
        let mut sent: BTreeMap<u32, u32> = BTreeMap::new();
        let mut is_wanted = |step: &&Step| match step.action {
            Action::Statement(_) => {
                let statement = sent.entry(step.txn).or_default();
                *statement += 1;
                wanted.contains(&Element { txn: step.txn, statement: *statement })
            }
            _ => wanted.iter().any(|element| element.txn == step.txn),
        };
        let steps = self.steps.iter().filter(|step| is_wanted(step)).cloned().collect();
        Script { schema: self.schema.clone(), steps }
    }

    /// The same with sessions and transactions counted from the first, in the order in which they come.
    #[must_use]
    pub fn renumbered(&self) -> Script {
        let (txns, mut sessions) = (self.txns(), Vec::new());
        let mut renumbered = self.clone();
        for step in &mut renumbered.steps {
            if !sessions.contains(&step.session) {
                sessions.push(step.session);
            }
            let place =
                |of: &[u32], wanted| of.iter().take_while(|other| **other != wanted).count();
            step.session = place(&sessions, step.session) as u32;
            step.txn = place(&txns, step.txn) as u32 + 1;
        }
        renumbered
    }

    /// Without one half of the transactions, one quarter, and so on, down to two of them.
    fn without_many(&self) -> Vec<Script> {
        let txns = self.txns();
        let without = |gone: &[u32]| {
            let rest = txns.iter().copied().filter(|txn| !gone.contains(txn));
            self.with_txns(&rest.collect::<Vec<_>>())
        };
        chunks(&txns).map(without).collect()
    }

    /// The same for statements, whoever sends them.
    fn without_many_statements(&self) -> Vec<Script> {
        let statements: Vec<usize> = self.statements().collect();
        let without = |gone: &[usize]| {
            let rest = self.steps.iter().enumerate().filter(|(at, _)| !gone.contains(at));
            let steps = rest.map(|(_, step)| step.clone()).collect();
            Script { schema: self.schema.clone(), steps }
        };
        chunks(&statements).map(without).collect()
    }

    /// Where its statements are among its steps.
    fn statements(&self) -> impl Iterator<Item = usize> {
        let steps = self.steps.iter().enumerate();
        steps.filter(|(_, step)| matches!(step.action, Action::Statement(_))).map(|(at, _)| at)
    }

    fn without_txns(&self) -> Vec<Script> {
        let txns = self.txns();
        let without = |gone: &u32| {
            let rest: Vec<u32> = txns.iter().copied().filter(|txn| txn != gone).collect();
            self.with_txns(&rest)
        };
        txns.iter().map(without).collect()
    }

    fn without_statements(&self) -> Vec<Script> {
        let without = |at: usize| {
            let mut smaller = self.clone();
            smaller.steps.remove(at);
            smaller
        };
        self.statements().map(without).collect()
    }

    fn with_schema(&self, change: impl FnOnce(&mut Schema)) -> Script {
        let mut smaller = self.clone();
        change(&mut smaller.schema);
        smaller
    }

    /// Without everything that neither statements name nor what they name is built on.
    fn without_unused(&self) -> Vec<Script> {
        let mut used: BTreeSet<&str> = BTreeSet::new();
        for at in self.statements() {
            if let Action::Statement(sql) = &self.steps[at].action {
                used.extend(sql.split(|c: char| !c.is_alphanumeric() && c != '_'));
            }
        }
        let Schema { tables, views } = &self.schema;
        for view in views {
            if used.contains(&*view.name) {
                used.insert(&view.table);
            }
        }
        // A table refers to one that comes before it.
        for table in tables.iter().rev() {
            if used.contains(&*table.name) {
                let targets = table.columns.iter().filter_map(|column| column.references.as_ref());
                used.extend(targets.map(|(table, _)| table.as_str()));
            }
        }
        let smaller = self.with_schema(|schema| {
            schema.views.retain(|view| used.contains(&*view.name));
            schema.tables.retain(|table| used.contains(&*table.name));
        });
        if smaller == *self { Vec::new() } else { vec![smaller] }
    }

    fn without_relations(&self) -> Vec<Script> {
        let views = (0..self.schema.views.len())
            .map(|at| self.with_schema(|schema| drop(schema.views.remove(at))));
        let tables = (0..self.schema.tables.len())
            .map(|at| self.with_schema(|schema| drop(schema.tables.remove(at))));
        views.chain(tables).collect()
    }

    fn without_rows(&self) -> Vec<Script> {
        let mut smaller = Vec::new();
        for (at, table) in self.schema.tables.iter().enumerate() {
            for row in 0..table.rows.len() {
                smaller.push(self.with_schema(|schema| drop(schema.tables[at].rows.remove(row))));
            }
        }
        smaller
    }

    /// Without a column, in inserts as well.
    fn without_columns(&self, product: &Product) -> Vec<Script> {
        let mut smaller = Vec::new();
        for (at, table) in self.schema.tables.iter().enumerate() {
            for gone in 0..table.columns.len() {
                if table.columns.len() == 1 || table.columns[gone].auto_increment {
                    continue;
                }
                let mut script =
                    self.with_schema(|schema| remove_column(&mut schema.tables[at], gone));
                let name = &table.columns[gone].name;
                script.rewrite(product, |statement| {
                    remove_inserted(statement, &table.name, name);
                });
                smaller.push(script);
            }
        }
        smaller
    }

    fn rewrite(&mut self, product: &Product, change: impl Fn(&mut Statement)) {
        for step in &mut self.steps {
            if let Action::Statement(sql) = &mut step.action
                && let Ok(mut statement) = product.parse(sql)
            {
                change(&mut statement);
                *sql = statement.to_string();
            }
        }
    }

    fn without_constraints(&self) -> Vec<Script> {
        let mut smaller = Vec::new();
        for (at, table) in self.schema.tables.iter().enumerate() {
            let mut change = |change: &dyn Fn(&mut Table)| {
                smaller.push(self.with_schema(|schema| change(&mut schema.tables[at])));
            };
            if !table.indexes.is_empty() {
                change(&|table| table.indexes.clear());
            }
            if !table.primary_key.is_empty()
                && !table.columns.iter().any(|column| column.auto_increment)
            {
                change(&|table| table.primary_key.clear());
            }
            for number in 0..table.columns.len() {
                let column = &table.columns[number];
                if column.unique {
                    change(&|table| table.columns[number].unique = false);
                }
                if column.not_null && !table.primary_key.contains(&number) {
                    change(&|table| table.columns[number].not_null = false);
                }
                if column.at_least.is_some() || column.default.is_some() {
                    change(&|table| {
                        table.columns[number].at_least = None;
                        table.columns[number].default = None;
                    });
                }
                if column.references.is_some() {
                    change(&|table| table.columns[number].references = None);
                }
            }
        }
        smaller
    }

    fn with_smaller_values(&self, product: &Product) -> Vec<Script> {
        let sent = self.steps.iter().filter_map(|step| match &step.action {
            Action::Statement(sql) => Some(sql.as_str()),
            _ => None,
        });
        let sent: Vec<&str> = sent.collect();
        let mut smaller = Vec::new();
        for (literal, value) in smaller_everywhere(&sent, &self.schema.tables, product) {
            let mut script = self.clone();
            for step in &mut script.steps {
                if let Action::Statement(sql) = &mut step.action {
                    *sql = replaced(sql, &literal, value, product);
                }
            }
            let rows = script.schema.tables.iter_mut().flat_map(|table| &mut table.rows);
            for same in rows.flatten().filter(|other| **other == literal) {
                value.clone_into(same);
            }
            smaller.push(script);
        }
        for at in self.statements() {
            let Action::Statement(sql) = &self.steps[at].action else { continue };
            for sql in smaller_values(sql, product) {
                let mut script = self.clone();
                script.steps[at].action = Action::Statement(sql);
                smaller.push(script);
            }
        }
        for (at, table) in self.schema.tables.iter().enumerate() {
            for (row, literals) in smaller_rows(table) {
                smaller.push(self.with_schema(|schema| schema.tables[at].rows[row] = literals));
            }
        }
        smaller
    }

    fn with_smaller_statements(&self, product: &Product) -> Vec<Script> {
        let mut smaller = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let Action::Statement(sql) = &step.action else { continue };
            let Ok(statement) = product.parse(sql) else { continue };
            for statement in smaller_statements(&statement) {
                let mut script = self.clone();
                script.steps[at].action = Action::Statement(statement.to_string());
                smaller.push(script);
            }
        }
        smaller
    }
}

/// A value as a literal of a column.
fn literal(ty: Type, value: &Value) -> String {
    match value {
        Value::Nil => "NULL".to_owned(),
        Value::Bool(true) => "TRUE".to_owned(),
        Value::Bool(false) => "FALSE".to_owned(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        day if ty == Type::Date => format!("'{day}'"),
        number => number.to_string(),
    }
}

/// The halves of a list, its quarters, and so on, down to pairs.
fn chunks<T>(list: &[T]) -> impl Iterator<Item = &[T]> {
    let sizes = std::iter::successors(Some(list.len() / 2), |size| Some(size / 2));
    sizes.take_while(|size| *size > 1).flat_map(|size| list.chunks(size))
}

fn remove_column(table: &mut Table, gone: usize) {
    // Rows have no values for columns that count up.
    let given = table.columns[..gone].iter().filter(|column| !column.auto_increment).count();
    for row in &mut table.rows {
        row.remove(given);
    }
    table.columns.remove(gone);
    let shift = |at: &mut usize| *at -= usize::from(*at > gone);
    table.primary_key.retain(|at| *at != gone);
    table.primary_key.iter_mut().for_each(shift);
    table.indexes.retain(|index| !index.contains(&gone));
    table.indexes.iter_mut().flatten().for_each(shift);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::{Instrumented, StatementKind};
    use crate::round::{Recorded, RecordedTxn};
    use crate::schema::View;
    use crate::script::Step;

    fn script(statements: &[&str]) -> Script {
        let columns = [("c0", Type::Integer), ("c1", Type::Integer), ("c2", Type::Text)];
        let mut table = Table::plain("t0", &columns, &[&["1", "2", "'a'"], &["3", "4", "'b'"]]);
        table.primary_key = vec![1];
        table.indexes = vec![vec![2]];
        let step = |(number, sql): (usize, &&str)| Step {
            session: number as u32,
            txn: number as u32 + 1,
            action: Action::Statement((*sql).to_owned()),
        };
        Script {
            schema: Schema { tables: vec![table], views: Vec::new() },
            steps: statements.iter().enumerate().map(step).collect(),
        }
    }

    fn smaller(sql: &str) -> Vec<String> {
        let scripts = script(&[sql]).reductions(Reduction::Clauses, &Product::POSTGRES);
        let text = |script: Script| match &script.steps[0].action {
            Action::Statement(sql) => sql.clone(),
            _ => unreachable!(),
        };
        scripts.into_iter().map(text).collect()
    }

    #[test]
    fn statements_lose_one_part_at_a_time() {
        assert_eq!(
            smaller("SELECT c0, c1 FROM t0 WHERE c0 = 1 AND (c1 = 2 OR c1 = 3) ORDER BY c0"),
            [
                "SELECT c0, c1 FROM t0 WHERE c0 = 1 AND (c1 = 2 OR c1 = 3)",
                "SELECT c0, c1 FROM t0 ORDER BY c0",
                "SELECT c0, c1 FROM t0 WHERE c0 = 1 ORDER BY c0",
                "SELECT c0, c1 FROM t0 WHERE (c1 = 2 OR c1 = 3) ORDER BY c0",
                "SELECT c0, c1 FROM t0 WHERE c0 = 1 AND c1 = 2 OR c1 = 3 ORDER BY c0",
                "SELECT c0, c1 FROM t0 WHERE c0 = 1 AND (c1 = 2) ORDER BY c0",
                "SELECT c0, c1 FROM t0 WHERE c0 = 1 AND (c1 = 3) ORDER BY c0",
                "SELECT c1 FROM t0 WHERE c0 = 1 AND (c1 = 2 OR c1 = 3) ORDER BY c0",
                "SELECT c0 FROM t0 WHERE c0 = 1 AND (c1 = 2 OR c1 = 3) ORDER BY c0",
            ]
        );
        assert_eq!(
            smaller("UPDATE t0 SET c0 = 1, c1 = 2"),
            ["UPDATE t0 SET c1 = 2", "UPDATE t0 SET c0 = 1"]
        );
        assert_eq!(smaller("DELETE FROM t0 WHERE c0 = 1"), ["DELETE FROM t0"]);
        assert_eq!(
            smaller("INSERT INTO t0 (c0) VALUES (1), (2)"),
            ["INSERT INTO t0 (c0) VALUES (2)", "INSERT INTO t0 (c0) VALUES (1)"]
        );
    }

    #[test]
    fn a_column_goes_from_its_table_its_rows_and_inserts() {
        let script = script(&["INSERT INTO t0 (c0, c1, c2) VALUES (5, 6, 'c')"]);
        let smaller = script.reductions(Reduction::Columns, &Product::POSTGRES);
        let table = &smaller[0].schema.tables[0];
        assert_eq!(table.rows, [["2", "'a'"], ["4", "'b'"]]);
        assert_eq!((&table.primary_key, &table.indexes), (&vec![0], &vec![vec![1]]));
        let expected = "INSERT INTO t0 (c1, c2) VALUES (6, 'c')".to_owned();
        assert_eq!(smaller[0].steps[0].action, Action::Statement(expected));
        assert!(smaller[1].schema.tables[0].primary_key.is_empty());
    }

    #[test]
    fn the_work_of_a_transaction_may_be_done_before() {
        let script = script(&["INSERT INTO t0 VALUES (5, 6, 'c')", "SELECT c0 FROM t0"]);
        let sent = Instrumented::plain(StatementKind::Select, String::new());
        let mut last = RecordedTxn::new(2, 0);
        last.is_final = true;
        let mut look = Recorded::new(1, "", &sent);
        look.rows = vec![vec![5.into(), Value::Nil, Value::Text("it's".into())]];
        last.statements.push(look);
        let mut alone = Round { transactions: vec![last], ..Round::default() };
        let folded = script.folded(1, &alone).unwrap();
        assert_eq!(folded.txns(), [2]);
        assert_eq!(folded.schema.tables[0].rows, [["5", "NULL", "'it''s'"]]);
        // One that leaves what was there before does nothing that could be done before.
        let as_they_were = |row: &Vec<String>| {
            let number = |at: usize| Value::from(row[at].parse::<i64>().unwrap());
            vec![number(0), number(1), Value::Text(row[2].trim_matches('\'').into())]
        };
        let rows = script.schema.tables[0].rows.iter().map(as_they_were).collect();
        alone.transactions[0].statements[0].rows = rows;
        assert_eq!(script.folded(1, &alone), None);
    }

    #[test]
    fn some_statements_stay_with_the_transactions_they_are_part_of() {
        let step = |session, txn, sql: &str| Step {
            session,
            txn,
            action: match sql {
                "BEGIN" => Action::Begin,
                "COMMIT" => Action::Commit,
                _ => Action::Statement(sql.to_owned()),
            },
        };
        let steps = vec![
            step(4, 7, "BEGIN"),
            step(1, 9, "BEGIN"),
            step(4, 7, "SELECT 1"),
            step(1, 9, "SELECT 2"),
            step(4, 7, "SELECT 3"),
            step(4, 7, "COMMIT"),
            step(4, 12, "SELECT 4"),
            step(1, 9, "COMMIT"),
        ];
        let script = Script { steps, ..script(&[]) };
        let element = |txn, statement| Element { txn, statement };
        let some = script.with_statements(&[element(7, 2), element(12, 1)]);
        let expected = [
            step(4, 7, "BEGIN"),
            step(4, 7, "SELECT 3"),
            step(4, 7, "COMMIT"),
            step(4, 12, "SELECT 4"),
        ];
        assert_eq!(some.steps, expected);
        let turns: Vec<(u32, u32)> =
            script.renumbered().steps.iter().map(|step| (step.session, step.txn)).collect();
        assert_eq!(turns, [(0, 1), (1, 2), (0, 1), (1, 2), (0, 1), (0, 1), (0, 3), (1, 2)]);
    }

    #[test]
    fn what_no_statement_names_goes_at_once() {
        let mut script = script(&["SELECT c0 FROM v1"]);
        let mut child = Table::plain("t1", &[("c0", Type::Integer)], &[]);
        child.columns[0].references = Some(("t0".to_owned(), "c0".to_owned()));
        let other = Table::plain("t2", &[("c0", Type::Integer)], &[]);
        let view = |name: &str, table: &str| View {
            name: name.to_owned(),
            table: table.to_owned(),
            columns: Vec::new(),
            condition: "c0 > 1".to_owned(),
        };
        script.schema.tables.extend([child, other]);
        script.schema.views.extend([view("v0", "t2"), view("v1", "t1")]);
        let [smaller] = script.without_unused().try_into().unwrap();
        let tables: Vec<&str> = smaller.schema.tables.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(tables, ["t0", "t1"]);
        assert_eq!(smaller.schema.views.len(), 1);
        assert!(smaller.without_unused().is_empty());
    }

    #[test]
    fn every_kind_takes_something() {
        let mut script = script(&["SELECT c0, c1 FROM t0 LIMIT 3"; 4]);
        script.schema.tables.push(Table::plain("t1", &[("c0", Type::Integer)], &[]));
        for kind in Reduction::ALL {
            assert!(!script.reductions(kind, &Product::SQLITE).is_empty(), "{kind:?}");
        }
    }
}
