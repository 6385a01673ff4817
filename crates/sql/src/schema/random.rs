//! Random schemas.

use super::{Column, Schema, Table, Type, View};
use crate::dice::Dice;

/// How large a random schema may be. Most bugs of transactions show on small ones (IsoRel, Section
/// 3.1), and on a small one transactions meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// At most so many tables.
    pub tables: usize,
    /// At most so many columns in each.
    pub columns: usize,
    /// At most so many rows in each, at first.
    pub rows: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { tables: 3, columns: 3, rows: 5 }
    }
}

impl Schema {
    /// The schema of a seed and the number of a round.
    pub fn random(seed: u64, round: u64, bounds: &Bounds) -> Schema {
        let mut dice = Dice::new(seed, &[round, 0]);
        let mut schema = Schema::default();
        for number in 0..dice.between(1, bounds.tables.max(1)) {
            let table = random_table(&mut dice, number, &schema, bounds);
            schema.tables.push(table);
        }
        if dice.percent(40) {
            let table = dice.pick(&schema.tables).clone();
            let view = random_view(&mut dice, &table);
            schema.views.push(view);
        }
        schema
    }
}

const TYPES: [Type; 5] = [Type::Integer, Type::Text, Type::Decimal, Type::Boolean, Type::Date];

fn random_table(dice: &mut Dice, number: usize, before: &Schema, bounds: &Bounds) -> Table {
    let count = dice.between(1, bounds.columns.max(1));
    let mut columns: Vec<Column> = (0..count)
        .map(|at| {
            // The first is an integer, so that keys and references find something to hold on to.
            let ty = if at == 0 { Type::Integer } else { TYPES[dice.weighted(&[5, 3, 2, 1, 1])] };
            Column::plain(&format!("c{at}"), ty)
        })
        .collect();
    let primary_key = match dice.weighted(&[50, 15, 35]) {
        0 => vec![0],
        1 if count > 1 => vec![0, 1],
        _ => Vec::new(),
    };
    if primary_key == [0] && count > 1 && dice.percent(25) {
        columns[0].auto_increment = true;
    }
    for at in &primary_key {
        columns[*at].not_null = true;
    }
    for (at, column) in columns.iter_mut().enumerate() {
        if !primary_key.contains(&at) {
            constrain(dice, column, before);
        }
    }
    let indexes = (0..count).filter(|at| primary_key != [*at] && dice.percent(25));
    let indexes = indexes.map(|at| vec![at]).collect();
    let name = format!("t{number}");
    let mut table = Table { name, columns, primary_key, indexes, rows: Vec::new() };
    for number in 0..dice.between(1.min(bounds.rows), bounds.rows) {
        let row = first_row(dice, &table, number);
        table.rows.push(row);
    }
    table
}

/// Constraints of a column that is not part of the primary key.
fn constrain(dice: &mut Dice, column: &mut Column, before: &Schema) {
    let targets: Vec<&Table> =
        before.tables.iter().filter(|table| table.primary_key == [0]).collect();
    if column.ty == Type::Integer && !targets.is_empty() && dice.percent(20) {
        let target = dice.pick(&targets);
        column.references = Some((target.name.clone(), target.columns[0].name.clone()));
        return;
    }
    if column.ty == Type::Integer && dice.percent(8) {
        column.unique = true;
        return;
    }
    column.not_null = dice.percent(20);
    if matches!(column.ty, Type::Integer | Type::Decimal) && dice.percent(15) {
        column.at_least = Some(0);
    }
    if dice.percent(20) {
        column.default = Some(literal(dice, column.ty));
    }
}

/// A row that no constraint refuses: keys count up, and references are null.
fn first_row(dice: &mut Dice, table: &Table, number: usize) -> Vec<String> {
    let value = |column: &Column| {
        if column.references.is_some() {
            return "NULL".to_owned();
        }
        match table.is_in_key(column) && column.ty == Type::Integer {
            true => (number + 1).to_string(),
            false if !column.not_null && dice.percent(8) => "NULL".to_owned(),
            false => literal(dice, column.ty),
        }
    };
    table.given().map(value).collect()
}

fn random_view(dice: &mut Dice, table: &Table) -> View {
    let constant = dice.between(1, 6);
    View {
        name: "v0".to_owned(),
        table: table.name.clone(),
        columns: table
            .columns
            .iter()
            .map(|column| Column::plain(&column.name, column.ty))
            .collect(),
        condition: format!("{} < {constant}", table.columns[0].name),
    }
}

/// A literal of a small domain, so that statements meet on the same values.
pub(crate) fn literal(dice: &mut Dice, ty: Type) -> String {
    match ty {
        Type::Integer => dice.below(8).to_string(),
        Type::Text => format!("'{}'", dice.pick(&["a", "b", "c", "ab", "bc"])),
        Type::Decimal => format!("{}.{}", dice.below(5), dice.pick(&["00", "25", "50"])),
        Type::Boolean => dice.pick(&["TRUE", "FALSE"]).to_string(),
        Type::Date => format!("'2024-01-0{}'", dice.between(1, 9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::Product;

    #[test]
    fn a_seed_is_a_schema() {
        let bounds = Bounds::default();
        let of = |seed, round| Schema::random(seed, round, &bounds);
        assert_eq!(of(7, 3), of(7, 3));
        assert_ne!(of(7, 3), of(7, 4));
        assert_ne!(of(7, 3), of(8, 3));
    }

    #[test]
    fn everything_there_is_occurs() {
        let bounds = Bounds::default();
        let schemas: Vec<Schema> =
            (0..300).map(|round| Schema::random(1, round, &bounds)).collect();
        let tables = || schemas.iter().flat_map(|schema| &schema.tables);
        let columns = || tables().flat_map(|table| &table.columns);
        assert!(schemas.iter().any(|schema| !schema.views.is_empty()));
        assert!(tables().any(|table| table.primary_key.is_empty()));
        assert!(tables().any(|table| table.primary_key.len() == 2));
        assert!(tables().any(|table| !table.indexes.is_empty()));
        assert!(TYPES.iter().all(|ty| columns().any(|column| column.ty == *ty)));
        let has = |what: fn(&Column) -> bool| columns().any(what);
        assert!(has(|column| column.unique) && has(|column| column.auto_increment));
        assert!(has(|column| column.references.is_some()) && has(|column| column.not_null));
        assert!(has(|column| column.default.is_some()) && has(|column| column.at_least.is_some()));
        assert!(tables().all(|table| (1..=5).contains(&table.rows.len())));
        assert!(tables().all(|table| (1..=3).contains(&table.columns.len())));
        assert!(schemas.iter().all(|schema| (1..=3).contains(&schema.tables.len())));
    }

    #[test]
    fn sqlite_takes_every_schema() {
        for round in 0..200 {
            let schema = Schema::random(5, round, &Bounds::default());
            let aux = super::super::Aux::avoiding(&schema);
            for aux in [None, Some(&aux)] {
                let connection = rusqlite::Connection::open_in_memory().unwrap();
                for statement in schema.create(&Product::SQLITE, aux) {
                    connection
                        .execute_batch(&statement)
                        .unwrap_or_else(|e| panic!("{statement}: {e}"));
                }
            }
        }
    }
}
