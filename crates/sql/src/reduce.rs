//! Smaller scripts: what can be taken from a script, one thing at a time.
//!
//! A smaller script may be wrong, since a statement refers to a column that is gone, say. Whoever
//! tries it finds out that it does not show the same any more.

use sqlparser::ast::{BinaryOperator, Expr, Query, Select, SetExpr, Statement, UnaryOperator};

use crate::product::Product;
use crate::schema::{Schema, Table};
use crate::script::{Action, Script};

/// What is taken from a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// Several transactions at once.
    Many,
    /// A transaction.
    Transactions,
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
}

impl Reduction {
    /// All of them, those first that take most.
    pub const ALL: [Reduction; 8] = [
        Reduction::Many,
        Reduction::Transactions,
        Reduction::Statements,
        Reduction::Relations,
        Reduction::Clauses,
        Reduction::Rows,
        Reduction::Columns,
        Reduction::Constraints,
    ];
}

impl Script {
    /// All scripts that are smaller by one thing of a kind.
    pub fn reductions(&self, kind: Reduction, product: &Product) -> Vec<Script> {
        match kind {
            Reduction::Many => self.without_many(),
            Reduction::Transactions => self.without_txns(),
            Reduction::Statements => self.without_statements(),
            Reduction::Relations => self.without_relations(),
            Reduction::Rows => self.without_rows(),
            Reduction::Columns => self.without_columns(product),
            Reduction::Constraints => self.without_constraints(),
            Reduction::Clauses => self.with_smaller_statements(product),
        }
    }

    /// The same with these transactions only.
    pub fn with_txns(&self, txns: &[u32]) -> Script {
        let steps = self.steps.iter().filter(|step| txns.contains(&step.txn)).cloned().collect();
        Script { schema: self.schema.clone(), steps }
    }

    /// Without one half of the transactions, one quarter, and so on, down to two of them.
    fn without_many(&self) -> Vec<Script> {
        let txns = self.txns();
        let mut smaller = Vec::new();
        let mut size = txns.len() / 2;
        while size > 1 {
            for gone in txns.chunks(size) {
                let rest = txns.iter().copied().filter(|txn| !gone.contains(txn));
                smaller.push(self.with_txns(&rest.collect::<Vec<_>>()));
            }
            size /= 2;
        }
        smaller
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
        let is_statement = |at: &usize| matches!(self.steps[*at].action, Action::Statement(_));
        let without = |at: usize| {
            let mut smaller = self.clone();
            smaller.steps.remove(at);
            smaller
        };
        (0..self.steps.len()).filter(is_statement).map(without).collect()
    }

    fn with_schema(&self, change: impl FnOnce(&mut Schema)) -> Script {
        let mut smaller = self.clone();
        change(&mut smaller.schema);
        smaller
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

fn remove_inserted(statement: &mut Statement, table: &str, column: &str) {
    let Statement::Insert(insert) = statement else { return };
    if insert.table.to_string() != table {
        return;
    }
    let Some(at) = insert.columns.iter().position(|name| name.value == column) else { return };
    insert.columns.remove(at);
    match insert.source.as_mut().map(|source| &mut *source.body) {
        Some(SetExpr::Values(values)) => {
            values.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        Some(SetExpr::Select(select)) => drop(select.projection.remove(at)),
        _ => {}
    }
}

fn smaller_statements(statement: &Statement) -> Vec<Statement> {
    let mut smaller = Vec::new();
    match statement {
        Statement::Query(query) => {
            let queries = smaller_queries(query).into_iter();
            smaller.extend(queries.map(|query| Statement::Query(Box::new(query))));
        }
        Statement::Update(update) => {
            for selection in smaller_conditions(update.selection.as_ref()) {
                let mut other = update.clone();
                other.selection = selection;
                smaller.push(Statement::Update(other));
            }
            for at in 0..update.assignments.len() {
                let mut other = update.clone();
                other.assignments.remove(at);
                smaller.extend((!other.assignments.is_empty()).then_some(Statement::Update(other)));
            }
        }
        Statement::Delete(delete) => {
            for selection in smaller_conditions(delete.selection.as_ref()) {
                let mut other = delete.clone();
                other.selection = selection;
                smaller.push(Statement::Delete(other));
            }
        }
        Statement::Insert(insert) => {
            let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|source| &*source.body)
            else {
                return smaller;
            };
            for at in 0..values.rows.len() {
                let mut other = insert.clone();
                if let Some(source) = &mut other.source
                    && let SetExpr::Values(values) = &mut *source.body
                {
                    values.rows.remove(at);
                }
                smaller.extend((values.rows.len() > 1).then_some(Statement::Insert(other)));
            }
        }
        _ => {}
    }
    smaller
}

fn smaller_queries(query: &Query) -> Vec<Query> {
    let mut smaller = Vec::new();
    let mut with = |change: &dyn Fn(&mut Query)| {
        let mut other = query.clone();
        change(&mut other);
        smaller.push(other);
    };
    if query.order_by.is_some() || query.limit_clause.is_some() {
        with(&|query| {
            query.order_by = None;
            query.limit_clause = None;
        });
    }
    match &*query.body {
        SetExpr::Select(select) => {
            for select in smaller_selects(select) {
                with(&|query| *query.body = SetExpr::Select(Box::new(select.clone())));
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            with(&|query| query.body.clone_from(left));
            with(&|query| query.body.clone_from(right));
        }
        _ => {}
    }
    smaller
}

fn smaller_selects(select: &Select) -> Vec<Select> {
    let mut smaller = Vec::new();
    for selection in smaller_conditions(select.selection.as_ref()) {
        smaller.push(Select { selection, ..select.clone() });
    }
    for at in 0..select.projection.len() {
        let mut other = select.clone();
        other.projection.remove(at);
        smaller.extend((!other.projection.is_empty()).then_some(other));
    }
    if select.distinct.is_some() {
        smaller.push(Select { distinct: None, ..select.clone() });
    }
    for (at, table) in select.from.iter().enumerate() {
        for join in 0..table.joins.len() {
            let mut other = select.clone();
            other.from[at].joins.remove(join);
            smaller.push(other);
        }
    }
    smaller
}

/// No condition, and every condition with something less in it.
fn smaller_conditions(condition: Option<&Expr>) -> Vec<Option<Expr>> {
    let Some(condition) = condition else { return Vec::new() };
    let mut smaller = vec![None];
    smaller.extend(smaller_exprs(condition).into_iter().map(Some));
    smaller
}

/// How deep expressions are nested is limited by the parser.
fn smaller_exprs(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Nested(inner) => {
            let mut smaller = vec![(**inner).clone()];
            let nested = |inner| Expr::Nested(Box::new(inner));
            smaller.extend(smaller_exprs(inner).into_iter().map(nested));
            smaller
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => vec![(**expr).clone()],
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            let both = |left: Expr, right: Expr| Expr::BinaryOp {
                left: Box::new(left),
                op: op.clone(),
                right: Box::new(right),
            };
            let mut smaller = vec![(**left).clone(), (**right).clone()];
            smaller.extend(smaller_exprs(left).into_iter().map(|l| both(l, (**right).clone())));
            smaller.extend(smaller_exprs(right).into_iter().map(|r| both((**left).clone(), r)));
            smaller
        }
        Expr::InList { expr, list, negated } if list.len() > 1 => (0..list.len())
            .map(|gone| {
                let mut list = list.clone();
                list.remove(gone);
                Expr::InList { expr: expr.clone(), list, negated: *negated }
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Type;
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
    fn every_kind_takes_something() {
        let script = script(&["SELECT c0, c1 FROM t0"; 4]);
        for kind in Reduction::ALL {
            assert!(!script.reductions(kind, &Product::SQLITE).is_empty(), "{kind:?}");
        }
    }
}
