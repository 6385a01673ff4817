//! Smaller statements: what can be taken from one, a part at a time.

use sqlparser::ast::{BinaryOperator, Expr, Query, Select, SetExpr, Statement, UnaryOperator};

/// Takes a column from an insert, with its values.
pub(super) fn remove_inserted(statement: &mut Statement, table: &str, column: &str) {
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

/// All statements that are smaller by one part.
pub(super) fn smaller_statements(statement: &Statement) -> Vec<Statement> {
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
