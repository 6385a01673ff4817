//! Queries that also tell which rows they show.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, ObjectName, Query,
    Select, SelectItem, SetExpr, TableFactor, WildcardAdditionalOptions,
};

use super::{Refusal, Rewrite};

/// A text that tells rows, beside the columns of a query.
#[derive(Clone)]
pub(super) struct Export {
    /// Expressions that it consists of, one after the other.
    parts: Vec<String>,
    /// Whether it tells one row of a table, and not what a subquery gathered.
    pub(super) is_row: bool,
}

/// The last part of a name.
pub(super) fn last_name(name: &ObjectName) -> Option<&str> {
    name.0.last()?.as_ident().map(|ident| ident.value.as_str())
}

impl Rewrite<'_> {
    /// Adds columns to a query that tell the rows it shows.
    pub(super) fn query(&mut self, query: &mut Query) -> Result<Vec<Export>, Refusal> {
        if query.with.is_some() {
            return Err(Refusal::Construct("WITH"));
        }
        if query.fetch.is_some() || !query.pipe_operators.is_empty() {
            return Err(Refusal::Construct("FETCH"));
        }
        let exports = match &mut *query.body {
            SetExpr::Select(select) => {
                let exports = self.exports(select)?;
                self.add(select, &exports)?;
                exports
            }
            SetExpr::SetOperation { .. } => {
                // The same texts in every branch: no row becomes different from another by them.
                let mut exports = Vec::new();
                self.gather_branches(&mut query.body, &mut exports)?;
                self.add_to_branches(&mut query.body, &exports)?;
                exports
            }
            _ => return Err(Refusal::Construct("a query that is not a SELECT")),
        };
        Ok(exports)
    }

    fn add(&mut self, select: &mut Select, exports: &[Export]) -> Result<(), Refusal> {
        for export in exports {
            let text = self.expr(&self.names.product.concatenation(&export.parts))?;
            select.projection.push(self.item(text));
        }
        Ok(())
    }

    fn gather_branches(
        &mut self,
        body: &mut SetExpr,
        exports: &mut Vec<Export>,
    ) -> Result<(), Refusal> {
        match body {
            SetExpr::Select(select) => {
                let sources = self.sources(select)?;
                self.expand_wildcards(select)?;
                exports.extend(self.companions(select, &sources)?);
                Ok(())
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.gather_branches(left, exports)?;
                self.gather_branches(right, exports)
            }
            _ => Err(Refusal::Construct("a branch that is not a SELECT")),
        }
    }

    /// Branches have the same columns under the same names.
    fn add_to_branches(&mut self, body: &mut SetExpr, exports: &[Export]) -> Result<(), Refusal> {
        let first = self.next;
        match body {
            SetExpr::Select(select) => self.add(select, exports),
            SetExpr::SetOperation { left, right, .. } => {
                self.add_to_branches(left, exports)?;
                self.next = first;
                self.add_to_branches(right, exports)
            }
            _ => Err(Refusal::Construct("a branch that is not a SELECT")),
        }
    }

    /// What a query can tell, in the form that does not change its meaning.
    fn exports(&mut self, select: &mut Select) -> Result<Vec<Export>, Refusal> {
        let sources = self.sources(select)?;
        self.expand_wildcards(select)?;
        let is_aggregate = is_aggregate(select);
        let is_plain = !is_aggregate && select.distinct.is_none();
        let mut exports = if select.distinct.is_some() {
            self.companions(select, &sources)?
        } else if is_aggregate {
            sources.iter().map(|source| self.gathered(source)).collect()
        } else {
            sources
        };
        let mut subqueries = Vec::new();
        if let Some(condition) = &select.selection {
            find_subqueries(condition, &mut subqueries);
        }
        let mut inner: Vec<Export> = Vec::new();
        for subquery in subqueries {
            // Of a correlated subquery, each row of the answer has its own.
            if is_plain || !is_correlated(subquery) {
                inner.extend(self.subquery_companions(subquery)?);
            }
        }
        exports.extend(inner);
        Ok(exports)
    }

    /// Expressions that tell the rows of each relation of a query. Subqueries among the relations
    /// are instrumented on the way.
    fn sources(&mut self, select: &mut Select) -> Result<Vec<Export>, Refusal> {
        let mut exports = Vec::new();
        for table in &mut select.from {
            let joined = table.joins.iter_mut().map(|join| &mut join.relation);
            for factor in std::iter::once(&mut table.relation).chain(joined) {
                self.source(factor, &mut exports)?;
            }
        }
        Ok(exports)
    }

    fn source(
        &mut self,
        factor: &mut TableFactor,
        exports: &mut Vec<Export>,
    ) -> Result<(), Refusal> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let name = last_name(name).ok_or(Refusal::Construct("a name"))?;
                if self.names.schema.columns(name).is_none() {
                    return Err(Refusal::Relation(name.to_owned()));
                }
                let qualifier = alias.as_ref().map_or(name, |alias| alias.name.value.as_str());
                exports
                    .push(Export { parts: self.row_parts(Some(qualifier)).to_vec(), is_row: true });
                Ok(())
            }
            TableFactor::Derived { subquery, alias: Some(alias), .. }
                if alias.columns.is_empty() =>
            {
                let first = self.next;
                let inner = self.query(subquery)?;
                for at in 0..inner.len() as u32 {
                    let column = format!("{}.isolario_seen_{}", alias.name.value, first + 1 + at);
                    exports.push(Export { parts: vec![column], is_row: false });
                }
                Ok(())
            }
            _ => Err(Refusal::Construct("a relation that is neither a table nor a subquery")),
        }
    }

    fn gathered(&self, export: &Export) -> Export {
        Export { parts: vec![self.names.product.gathering(&export.parts)], is_row: false }
    }

    /// Scalar subqueries that tell the rows of each relation of a query, all of them in one text.
    fn companions(&self, select: &Select, sources: &[Export]) -> Result<Vec<Export>, Refusal> {
        let companion = |source: &Export| {
            let gathered = self.gathered(source);
            let mut all = select.clone();
            all.distinct = None;
            all.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
            all.having = None;
            let gathered = self.expr(&self.names.product.concatenation(&gathered.parts))?;
            all.projection = vec![SelectItem::UnnamedExpr(gathered)];
            let subquery = Expr::Subquery(Box::new(query_of(all)));
            Ok(Export { parts: vec![subquery.to_string()], is_row: false })
        };
        sources.iter().map(companion).collect()
    }

    /// The same for a subquery of a condition.
    fn subquery_companions(&mut self, subquery: &Query) -> Result<Vec<Export>, Refusal> {
        let SetExpr::Select(select) = &*subquery.body else {
            return Err(Refusal::Construct("a compound subquery in a condition"));
        };
        let mut select = select.clone();
        let sources = self.sources(&mut select)?;
        self.companions(&select, &sources)
    }

    /// A wildcard would show our columns, too: it stands for those that the schema has.
    fn expand_wildcards(&self, select: &mut Select) -> Result<(), Refusal> {
        let is_wildcard = |item: &SelectItem| match item {
            SelectItem::Wildcard(options) => *options == WildcardAdditionalOptions::default(),
            _ => false,
        };
        let has_any = select.projection.iter().any(|item| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        });
        if !has_any {
            return Ok(());
        }
        if select.projection.len() != 1 || !is_wildcard(&select.projection[0]) {
            return Err(Refusal::Construct("a wildcard among other columns"));
        }
        let mut items = Vec::new();
        for table in &select.from {
            let joined = table.joins.iter().map(|join| &join.relation);
            for factor in std::iter::once(&table.relation).chain(joined) {
                let TableFactor::Table { name, alias, .. } = factor else {
                    return Err(Refusal::Construct("a wildcard over a subquery"));
                };
                let name = last_name(name).ok_or(Refusal::Construct("a name"))?;
                let qualifier = alias.as_ref().map_or(name, |alias| alias.name.value.as_str());
                for column in self.names.schema.columns(name).into_iter().flatten() {
                    let parts = vec![Ident::new(qualifier), Ident::new(&column.name)];
                    items.push(SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)));
                }
            }
        }
        select.projection = items;
        Ok(())
    }
}

/// A query without anything around its SELECT.
pub(super) fn query_of(select: Select) -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(select))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

const AGGREGATES: [&str; 5] = ["count", "sum", "min", "max", "avg"];

fn is_aggregate(select: &Select) -> bool {
    let has_groups = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(by, _) => !by.is_empty(),
    };
    let is_function = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            let mut found = false;
            walk(expr, &mut |part| found |= is_aggregate_function(part));
            found
        }
        _ => false,
    };
    has_groups || select.having.is_some() || select.projection.iter().any(is_function)
}

fn is_aggregate_function(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    last_name(&function.name)
        .is_some_and(|name| AGGREGATES.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

/// The subqueries of a condition, those within others left aside.
pub(super) fn find_subqueries<'e>(expr: &'e Expr, found: &mut Vec<&'e Query>) {
    walk(expr, &mut |part| match part {
        Expr::InSubquery { subquery, .. } | Expr::Exists { subquery, .. } => found.push(subquery),
        Expr::Subquery(subquery) => found.push(subquery),
        _ => {}
    });
}

/// Whether a subquery speaks of columns of the query around it. An unqualified name is taken for its
/// own.
fn is_correlated(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else { return true };
    let mut own = Vec::new();
    for table in &select.from {
        let joined = table.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&table.relation).chain(joined) {
            match factor {
                TableFactor::Table { name, alias: None, .. } => own.extend(last_name(name)),
                TableFactor::Table { alias: Some(alias), .. }
                | TableFactor::Derived { alias: Some(alias), .. } => {
                    own.push(alias.name.value.as_str());
                }
                _ => {}
            }
        }
    }
    let mut is_correlated = false;
    let mut look = |part: &Expr| {
        if let Expr::CompoundIdentifier(parts) = part {
            is_correlated |=
                parts.first().is_some_and(|first| !own.contains(&first.value.as_str()));
        }
    };
    if let Some(condition) = &select.selection {
        walk(condition, &mut look);
    }
    is_correlated
}

/// Goes through an expression, subqueries left aside. How deep it can be is limited by the parser.
fn walk<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    visit(expr);
    match expr {
        Expr::BinaryOp { left, right, .. } => {
            walk(left, visit);
            walk(right, visit);
        }
        Expr::UnaryOp { expr, .. }
        | Expr::Nested(expr)
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::InSubquery { expr, .. }
        | Expr::Cast { expr, .. } => walk(expr, visit),
        Expr::Between { expr, low, high, .. } => {
            for part in [expr, low, high] {
                walk(part, visit);
            }
        }
        Expr::InList { expr, list, .. } => {
            walk(expr, visit);
            list.iter().for_each(|part| walk(part, visit));
        }
        Expr::Like { expr, pattern, .. } => {
            walk(expr, visit);
            walk(pattern, visit);
        }
        Expr::Function(function) => {
            if let FunctionArguments::List(list) = &function.args {
                for argument in &list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(part)) = argument {
                        walk(part, visit);
                    }
                }
            }
        }
        _ => {}
    }
}
