//! Schemas from the statements that make them.

use sqlparser::ast::{
    BinaryOperator, ColumnDef, ColumnOption, CreateIndex, CreateTable, CreateView, DataType, Expr,
    IndexColumn, Insert, ObjectName, SelectItem, SetExpr, Statement, TableConstraint, TableFactor,
    TableObject, Value,
};

use super::{Column, Schema, Table, Type, View};
use crate::product::Product;

/// Why a statement is not understood as part of a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {statement}")]
pub struct SchemaError {
    problem: String,
    statement: String,
}

impl Schema {
    /// Adds what a statement makes: a table, an index, a view, or the first rows of a table.
    pub fn take_statement(&mut self, product: &Product, sql: &str) -> Result<(), SchemaError> {
        let taken = match product.parse(sql) {
            Err(error) => Err(error.to_string()),
            Ok(Statement::CreateTable(create)) => {
                table(&create).map(|table| self.tables.push(table))
            }
            Ok(Statement::CreateIndex(create)) => self.take_index(&create),
            Ok(Statement::CreateView(create)) => self.take_view(&create),
            Ok(Statement::Insert(insert)) => self.take_rows(&insert),
            Ok(_) => Err("not a statement of a schema".to_owned()),
        };
        taken.map_err(|problem| SchemaError { problem, statement: sql.to_owned() })
    }

    fn known(&mut self, name: &ObjectName) -> Result<&mut Table, String> {
        let name = last(name);
        let found = self.tables.iter_mut().find(|table| table.name == name);
        found.ok_or_else(|| format!("there is no table {name}"))
    }

    fn take_index(&mut self, create: &CreateIndex) -> Result<(), String> {
        let table = self.known(&create.table_name)?;
        let columns = positions(table, create.columns.iter().map(indexed))?;
        match (create.unique, columns.as_slice()) {
            (true, [at]) => table.columns[*at].unique = true,
            (true, _) => return Err("unique indexes of several columns are not known".to_owned()),
            (false, _) => table.indexes.push(columns),
        }
        Ok(())
    }

    /// A view of plain columns of one table, by a condition.
    fn take_view(&mut self, create: &CreateView) -> Result<(), String> {
        let unknown = || "only views of columns of one table by a condition are known".to_owned();
        let SetExpr::Select(select) = &*create.query.body else { return Err(unknown()) };
        let [from] = select.from.as_slice() else { return Err(unknown()) };
        let TableFactor::Table { name, .. } = &from.relation else { return Err(unknown()) };
        let Some(condition) = &select.selection else { return Err(unknown()) };
        let table = self.known(name)?;
        let column = |item: &SelectItem| {
            let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item else {
                return Err(unknown());
            };
            let found = table.columns.iter().find(|column| column.name == name.value);
            let found = found.ok_or_else(|| format!("there is no column {name}"))?;
            Ok(Column::plain(&found.name, found.ty))
        };
        let columns = select.projection.iter().map(column).collect::<Result<_, _>>()?;
        let (table, condition) = (table.name.clone(), condition.to_string());
        self.views.push(View { name: last(&create.name), table, columns, condition });
        Ok(())
    }

    fn take_rows(&mut self, insert: &Insert) -> Result<(), String> {
        let unknown = || "only rows of literals are known".to_owned();
        let TableObject::TableName(name) = &insert.table else { return Err(unknown()) };
        let source = insert.source.as_ref().map(|source| &*source.body);
        let Some(SetExpr::Values(values)) = source else { return Err(unknown()) };
        let table = self.known(name)?;
        let given = match insert.columns.is_empty() {
            true => (0..table.columns.len()).collect(),
            false => positions(table, insert.columns.iter().map(|name| Some(name.value.clone())))?,
        };
        for (at, column) in table.columns.iter_mut().enumerate() {
            // In SQLite, an integer that is the primary key counts up without being told.
            let counts = table.primary_key == [at] && column.ty == Type::Integer;
            column.auto_increment |= counts && !given.contains(&at);
        }
        for row in &values.rows {
            let value = |at: usize| match given.iter().position(|other| *other == at) {
                Some(position) => row.get(position).map(ToString::to_string),
                None => Some("DEFAULT".to_owned()),
            };
            let places = table.columns.iter().enumerate();
            let literals = places.filter(|(_, column)| !column.auto_increment);
            let literals: Option<_> = literals.map(|(at, _)| value(at)).collect();
            table.rows.push(literals.ok_or("a row has too few values")?);
        }
        Ok(())
    }
}

/// The last part of a name.
fn last(name: &ObjectName) -> String {
    let ident = name.0.last().and_then(|part| part.as_ident());
    ident.map_or_else(String::new, |ident| ident.value.clone())
}

fn indexed(column: &IndexColumn) -> Option<String> {
    match &column.column.expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        _ => None,
    }
}

/// Where columns of these names stand in a table.
fn positions(
    table: &Table,
    names: impl Iterator<Item = Option<String>>,
) -> Result<Vec<usize>, String> {
    let position = |name: Option<String>| {
        let name = name.ok_or("expected the name of a column")?;
        let found = table.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| format!("{} has no column {name}", table.name))
    };
    names.map(position).collect()
}

fn table(create: &CreateTable) -> Result<Table, String> {
    let name = last(&create.name);
    let no_columns = Vec::with_capacity(create.columns.len());
    let mut table = Table {
        name,
        columns: no_columns,
        primary_key: Vec::new(),
        indexes: Vec::new(),
        rows: Vec::new(),
    };
    for (at, def) in create.columns.iter().enumerate() {
        let (column, is_key) = column(def)?;
        table.columns.push(column);
        table.primary_key.extend(is_key.then_some(at));
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                table.primary_key = positions(&table, key.columns.iter().map(indexed))?;
            }
            TableConstraint::ForeignKey(key) => {
                let (from, to) = (key.columns.as_slice(), key.referred_columns.as_slice());
                let ([from], [to]) = (from, to) else {
                    return Err("foreign keys of several columns are not known".to_owned());
                };
                let at = positions(&table, [Some(from.value.clone())].into_iter())?[0];
                table.columns[at].references = Some((last(&key.foreign_table), to.value.clone()));
            }
            TableConstraint::Unique(unique) => {
                let [at] = positions(&table, unique.columns.iter().map(indexed))?[..] else {
                    return Err("unique constraints of several columns are not known".to_owned());
                };
                table.columns[at].unique = true;
            }
            _ => return Err("a constraint that is not known".to_owned()),
        }
    }
    for at in table.primary_key.clone() {
        table.columns[at].not_null = true;
    }
    Ok(table)
}

/// A column, and whether it is the primary key.
fn column(def: &ColumnDef) -> Result<(Column, bool), String> {
    let ty = match &def.data_type {
        DataType::Int(_) | DataType::Integer(_) | DataType::BigInt(_) => Type::Integer,
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => Type::Text,
        DataType::Decimal(_) | DataType::Numeric(_) => Type::Decimal,
        DataType::Bool | DataType::Boolean => Type::Boolean,
        DataType::Date => Type::Date,
        other => return Err(format!("columns of the type {other} are not known")),
    };
    let mut column = Column::plain(&def.name.value, ty);
    let mut is_key = false;
    for option in &def.options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => column.not_null = true,
            ColumnOption::Default(value) => column.default = Some(value.to_string()),
            ColumnOption::Unique(_) => column.unique = true,
            ColumnOption::PrimaryKey(_) => is_key = true,
            ColumnOption::Generated { generation_expr: None, .. } => column.auto_increment = true,
            ColumnOption::DialectSpecific(tokens) => {
                let text: Vec<String> = tokens.iter().map(ToString::to_string).collect();
                column.auto_increment |= text.join(" ").eq_ignore_ascii_case("AUTO_INCREMENT");
            }
            ColumnOption::ForeignKey(key) => {
                let to = key.referred_columns.first().map(|name| name.value.clone());
                column.references = to.map(|to| (last(&key.foreign_table), to));
            }
            ColumnOption::Check(check) => column.at_least = Some(at_least(&check.expr)?),
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok((column, is_key))
}

/// The number that a check asks for at least.
fn at_least(check: &Expr) -> Result<i64, String> {
    if let Expr::BinaryOp { op: BinaryOperator::GtEq, right, .. } = check
        && let Expr::Value(value) = &**right
        && let Value::Number(number, _) = &value.value
        && let Ok(number) = number.parse()
    {
        return Ok(number);
    }
    Err(format!("checks other than `column >= number` are not known, such as {check}"))
}
