//! Writes that leave their mark on the rows they write.

use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Ident, Insert, ObjectName,
    OnConflictAction, OnInsert, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    TableObject, Update,
};

use super::query::{find_subqueries, last_name};
use super::{Instrumented, Refusal, Rewrite, Shown, StatementKind};
use crate::schema::Table;

/// The table that a statement writes to.
pub(super) fn target(statement: &Statement) -> Option<String> {
    let name = match statement {
        Statement::Insert(insert) => inserted(insert),
        Statement::Update(update) => only_table(&update.table.relation),
        Statement::Delete(delete) => deleted(delete),
        _ => None,
    };
    name.map(str::to_owned)
}

fn inserted(insert: &Insert) -> Option<&str> {
    match &insert.table {
        TableObject::TableName(name) => last_name(name),
        _ => None,
    }
}

fn only_table(factor: &TableFactor) -> Option<&str> {
    match factor {
        TableFactor::Table { name, .. } => last_name(name),
        _ => None,
    }
}

fn deleted(delete: &Delete) -> Option<&str> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    match from.as_slice() {
        [table] if table.joins.is_empty() => only_table(&table.relation),
        _ => None,
    }
}

impl<'s> Rewrite<'s> {
    fn table(&self, name: Option<&str>) -> Result<&'s Table, Refusal> {
        let name = name.ok_or(Refusal::Construct("a write to more than one table"))?;
        self.names.schema.table(name).ok_or_else(|| Refusal::Relation(name.to_owned()))
    }

    fn written(&self, kind: StatementKind, table: &Table) -> Instrumented {
        let plain = Instrumented::plain(kind, String::new());
        Instrumented { target: Some(table.name.clone()), ..plain }
    }

    /// The assignment that appends this statement to the list of a row.
    fn append(&self, qualifier: Option<&str>) -> Result<Assignment, Refusal> {
        let list = &self.names.aux.list;
        let current = match qualifier {
            Some(qualifier) => format!("{qualifier}.{list}"),
            None => list.clone(),
        };
        let parts = [current, format!("',{}'", self.element)];
        let value = self.expr(&self.names.product.concatenation(&parts))?;
        let name = ObjectName::from(vec![Ident::new(list)]);
        Ok(Assignment { target: AssignmentTarget::ColumnName(name), value })
    }

    pub(super) fn update(&mut self, update: &mut Update) -> Result<Instrumented, Refusal> {
        let kind = StatementKind::Update;
        if !update.table.joins.is_empty() || update.from.is_some() {
            return Err(Refusal::Construct("an update of a join"));
        }
        let table = self.table(only_table(&update.table.relation))?;
        update.assignments.push(self.append(None)?);
        let is_partial = has_subqueries(update.selection.as_ref());
        Ok(Instrumented { is_partial, ..self.written(kind, table) })
    }

    pub(super) fn delete(&mut self, delete: &mut Delete) -> Result<Instrumented, Refusal> {
        if delete.using.is_some() || !delete.tables.is_empty() || delete.limit.is_some() {
            return Err(Refusal::Construct("a delete from a join, or with a limit"));
        }
        if delete.returning.is_some() {
            return Err(Refusal::Construct("a delete that returns something by itself"));
        }
        let table = self.table(deleted(delete))?;
        let is_partial = has_subqueries(delete.selection.as_ref());
        let written = Instrumented {
            is_partial,
            deletes: true,
            ..self.written(StatementKind::Delete, table)
        };
        if self.names.product.delete_returns {
            let row = self.expr(&self.row_text(None))?;
            delete.returning = Some(vec![self.item(row)]);
            return Ok(Instrumented { shows: vec![Shown { locked: true }], ..written });
        }
        let condition = delete.selection.as_ref().map(ToString::to_string);
        Ok(Instrumented { before: Some(self.locking_read(table, condition.as_deref())), ..written })
    }

    /// A read of the rows that a statement is about to delete, which keeps them as they are.
    fn locking_read(&self, table: &Table, condition: Option<&str>) -> String {
        let (row, name) = (self.row_text(None), &table.name);
        let condition = condition.map_or_else(String::new, |text| format!(" WHERE {text}"));
        let lock = if self.names.product.locking_reads { " FOR UPDATE" } else { "" };
        format!("SELECT {row} AS isolario_seen_0 FROM {name}{condition}{lock}")
    }

    pub(super) fn insert(
        &mut self,
        insert: &mut Insert,
        kind: StatementKind,
    ) -> Result<Instrumented, Refusal> {
        if !insert.assignments.is_empty() || insert.returning.is_some() {
            return Err(Refusal::Construct("INSERT … SET, or one that returns something"));
        }
        let table = self.table(inserted(insert))?;
        let mut written = self.written(kind, table);
        if kind == StatementKind::Replace {
            written.before = self.replaced(table, insert)?;
            written.deletes = true;
        }
        if insert.columns.is_empty() {
            insert.columns = table.columns.iter().map(|column| Ident::new(&column.name)).collect();
        }
        let aux = self.names.aux;
        insert.columns.extend([Ident::new(&aux.row), Ident::new(&aux.list)]);
        let source = insert.source.as_mut().ok_or(Refusal::Construct("INSERT without rows"))?;
        let rows = self.name_rows(table, source)?;
        if kind == StatementKind::Insert {
            written.inserts = rows;
        }
        written.is_partial = kind == StatementKind::InsertSelect;
        match &mut insert.on {
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => {
                assignments.push(self.append(Some(&table.name))?);
            }
            Some(OnInsert::OnConflict(conflict)) => {
                if let OnConflictAction::DoUpdate(update) = &mut conflict.action {
                    update.assignments.push(self.append(Some(&table.name))?);
                }
            }
            _ => {}
        }
        Ok(written)
    }

    /// Adds a name and a first list to each row that is inserted. Tells the names, where the rows are
    /// given.
    fn name_rows(&mut self, table: &Table, source: &mut Query) -> Result<Vec<String>, Refusal> {
        let mut names = Vec::new();
        let element = self.element.clone();
        match &mut *source.body {
            SetExpr::Values(values) => {
                for (number, row) in values.rows.iter_mut().enumerate() {
                    let name = format!("{}/{element}.{}", table.name, number + 1);
                    row.push(self.expr(&format!("'{name}'"))?);
                    row.push(self.expr(&format!("'{element}'"))?);
                    names.push(name);
                }
            }
            SetExpr::Select(select) => {
                let name = self.derived_name(table, select)?;
                select.projection.push(SelectItem::UnnamedExpr(self.expr(&name)?));
                let list = self.expr(&format!("'{element}'"))?;
                select.projection.push(SelectItem::UnnamedExpr(list));
            }
            _ => return Err(Refusal::Construct("an insert of a compound query")),
        }
        Ok(names)
    }

    /// A name for a row that is made of a row of another table: there is one for each of these.
    fn derived_name(&self, table: &Table, select: &Select) -> Result<String, Refusal> {
        let [from] = select.from.as_slice() else {
            return Err(Refusal::Construct("an insert of a join"));
        };
        let TableFactor::Table { name, alias, .. } = &from.relation else {
            return Err(Refusal::Construct("an insert of a subquery"));
        };
        if !from.joins.is_empty() || select.distinct.is_some() || select.having.is_some() {
            return Err(Refusal::Construct("an insert of a query that is not of plain rows"));
        }
        let name = last_name(name).ok_or(Refusal::Construct("a name"))?;
        if self.names.schema.columns(name).is_none() {
            return Err(Refusal::Relation(name.to_owned()));
        }
        let qualifier = alias.as_ref().map_or(name, |alias| alias.name.value.as_str());
        let prefix = format!("'{}/{}:'", table.name, self.element);
        let row = format!("{qualifier}.{}", self.names.aux.row);
        Ok(self.names.product.concatenation(&[prefix, row]))
    }

    /// The read of the rows that a REPLACE deletes: those that have one of its keys.
    fn replaced(&self, table: &Table, insert: &Insert) -> Result<Option<String>, Refusal> {
        let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|source| &*source.body)
        else {
            return Err(Refusal::Construct("REPLACE with a query"));
        };
        let position = |name: &str| match insert.columns.is_empty() {
            true => table.columns.iter().position(|column| column.name == name),
            false => insert.columns.iter().position(|column| column.value == name),
        };
        let mut conditions = Vec::new();
        for row in &values.rows {
            for key in table.keys() {
                let equal = |column: &&crate::schema::Column| {
                    let value: &Expr = row.get(position(&column.name)?)?;
                    Some(format!("{} = {value}", column.name))
                };
                // A key that is not given is counted up, and takes nobody's place.
                let parts: Option<Vec<String>> = key.iter().map(equal).collect();
                conditions.extend(parts.map(|parts| format!("({})", parts.join(" AND "))));
            }
        }
        Ok(match conditions.is_empty() {
            true => None,
            false => Some(self.locking_read(table, Some(&conditions.join(" OR ")))),
        })
    }
}

fn has_subqueries(condition: Option<&Expr>) -> bool {
    let mut found = Vec::new();
    if let Some(condition) = condition {
        find_subqueries(condition, &mut found);
    }
    !found.is_empty()
}
