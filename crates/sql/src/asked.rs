//! Queries of one table, whose condition is held against all of its rows.

use sqlparser::ast::{Expr, GroupByExpr, SetExpr, Statement, TableFactor};

/// A query of one table.
pub(crate) struct Asked<'q> {
    /// The table, as the query names it.
    pub(crate) table: String,
    /// The condition.
    pub(crate) condition: &'q Expr,
    /// Whether it locks what it shows.
    pub(crate) locks: bool,
}

impl Asked<'_> {
    /// A statement as such a query; none if it is something else.
    pub(crate) fn of(statement: &Statement) -> Option<Asked<'_>> {
        let Statement::Query(query) = statement else { return None };
        if query.with.is_some() || query.limit_clause.is_some() {
            return None;
        }
        let SetExpr::Select(select) = &*query.body else { return None };
        let [from] = select.from.as_slice() else { return None };
        let TableFactor::Table { name, alias: None, .. } = &from.relation else { return None };
        let is_grouped =
            !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
        if !from.joins.is_empty() || is_grouped || select.having.is_some() {
            return None;
        }
        let condition = select.selection.as_ref()?;
        Some(Asked { table: name.to_string(), condition, locks: !query.locks.is_empty() })
    }
}
