//! Random conditions over the columns in scope.

use super::Writer;
use crate::schema::{Column, Table, Type, literal};

/// A relation that a condition may speak of.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// What its columns are qualified with, if they are.
    pub(super) qualifier: Option<String>,
    /// Its columns.
    pub(super) columns: Vec<Column>,
}

impl Source {
    /// A relation whose columns are called by their names alone.
    pub(super) fn bare(columns: &[Column]) -> Source {
        Source { qualifier: None, columns: columns.to_vec() }
    }

    /// A relation whose columns are called by its name, too.
    pub(super) fn named(name: &str, columns: &[Column]) -> Source {
        Source { qualifier: Some(name.to_owned()), columns: columns.to_vec() }
    }

    /// How a column is called.
    pub(super) fn name(&self, column: &Column) -> String {
        match &self.qualifier {
            Some(qualifier) => format!("{qualifier}.{}", column.name),
            None => column.name.clone(),
        }
    }

    pub(super) fn of_type(&self, ty: Type) -> Vec<&Column> {
        self.columns.iter().filter(|column| column.ty == ty).collect()
    }
}

/// What conditions may contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room<'a> {
    /// How deep they may be nested.
    pub(super) depth: usize,
    /// Whether there may be subqueries.
    pub(super) subqueries: bool,
    /// A table that subqueries must not read: MySQL refuses those over the table that is written.
    pub(super) except: Option<&'a str>,
}

impl Writer<'_> {
    /// A condition over relations, one of which has columns.
    pub(super) fn condition(&mut self, scope: &[Source], room: Room<'_>) -> String {
        if room.depth > 0 && self.dice.percent(35) {
            let deeper = Room { depth: room.depth - 1, ..room };
            let left = self.condition(scope, deeper);
            return match self.dice.weighted(&[45, 40, 15]) {
                0 => format!("({left} AND {})", self.condition(scope, deeper)),
                1 => format!("({left} OR {})", self.condition(scope, deeper)),
                _ => format!("NOT ({left})"),
            };
        }
        if room.subqueries
            && self.dice.percent(12)
            && let Some(condition) = self.subquery_condition(scope, room)
        {
            return condition;
        }
        self.comparison(scope)
    }

    /// A column in scope: how it is called, and what it is.
    fn any_column(&mut self, scope: &[Source]) -> (String, Column) {
        let columns: Vec<(&Source, &Column)> =
            scope.iter().flat_map(|s| s.columns.iter().map(move |column| (s, column))).collect();
        let (source, column) = *self.dice.pick(&columns);
        (source.name(column), column.clone())
    }

    fn comparison(&mut self, scope: &[Source]) -> String {
        let (name, column) = self.any_column(scope);
        let ty = column.ty;
        if !column.not_null && self.dice.percent(4) {
            return format!("{name} IS {}NULL", self.dice.pick(&["", "NOT "]));
        }
        if ty == Type::Boolean {
            return format!("{name} = {}", literal(&mut self.dice, ty));
        }
        match self.dice.weighted(&[60, 12, 12, 8, 8]) {
            1 => {
                let (low, high) = (literal(&mut self.dice, ty), literal(&mut self.dice, ty));
                format!("{name} BETWEEN {low} AND {high}")
            }
            2 => {
                let list: Vec<String> =
                    (0..self.dice.between(2, 3)).map(|_| literal(&mut self.dice, ty)).collect();
                format!("{name} IN ({})", list.join(", "))
            }
            3 if ty == Type::Text => format!("{name} LIKE '{}%'", self.dice.pick(&["a", "b"])),
            4 => {
                let same: Vec<String> = scope
                    .iter()
                    .flat_map(|source| {
                        source.of_type(ty).into_iter().map(|column| source.name(column))
                    })
                    .filter(|other| *other != name)
                    .collect();
                match same.is_empty() {
                    true => self.plain_comparison(&name, ty),
                    false => {
                        let other = self.dice.pick(&same).clone();
                        format!("{name} {} {other}", self.operator())
                    }
                }
            }
            _ => self.plain_comparison(&name, ty),
        }
    }

    fn plain_comparison(&mut self, name: &str, ty: Type) -> String {
        let operator = self.operator();
        format!("{name} {operator} {}", literal(&mut self.dice, ty))
    }

    fn operator(&mut self) -> &'static str {
        ["=", "<", "<=", ">", ">=", "<>"][self.dice.weighted(&[40, 20, 10, 15, 10, 5])]
    }

    /// A condition with a subquery over a table, whose columns are qualified with `s`.
    fn subquery_condition(&mut self, scope: &[Source], room: Room<'_>) -> Option<String> {
        let open = |table: &&Table| room.except != Some(table.name.as_str());
        let tables: Vec<&Table> = self.schema.tables.iter().filter(open).collect();
        if tables.is_empty() {
            return None;
        }
        let table = *self.dice.pick(&tables);
        let inner = Source::named("s", &table.columns);
        let (outer, column) = self.any_column(scope);
        let same = inner.of_type(column.ty);
        if same.is_empty() {
            return None;
        }
        let found = inner.name(self.dice.pick::<&Column>(&same));
        let condition = self.comparison(std::slice::from_ref(&inner));
        let from = format!("FROM {} AS s WHERE {condition}", table.name);
        let negation = if self.dice.percent(25) { "NOT " } else { "" };
        // What a correlated subquery compares with is qualified, lest it be taken for an own column.
        let is_qualified = outer.contains('.');
        Some(match self.dice.weighted(&[50, 25, 25]) {
            1 if is_qualified => {
                format!("{negation}EXISTS (SELECT 1 {from} AND {found} = {outer})")
            }
            2 if column.ty != Type::Boolean => {
                let function = self.dice.pick(&["min", "max"]);
                format!("{outer} {} (SELECT {function}({found}) {from})", self.operator())
            }
            _ => format!("{outer} {negation}IN (SELECT {found} {from})"),
        })
    }
}
