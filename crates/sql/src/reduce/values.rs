//! Smaller values: NULL, 0 and 1 in the place of others.

use std::collections::BTreeSet;

use sqlparser::tokenizer::Token;

use crate::product::Product;
use crate::schema::Table;

/// What may stand in the place of a literal, and is smaller. Each is smaller than those that it replaces, so that it
/// comes to an end.
fn smaller_literals(literal: &str) -> &'static [&'static str] {
    let is_number = literal.parse::<f64>().is_ok();
    match literal {
        "NULL" | "0" | "TRUE" | "FALSE" | "true" | "false" => &[],
        "1" => &["0"],
        _ if is_number => &["0", "1"],
        "''" => &[],
        // What is not a number may be a day, or a condition of the schema needs it: NULL fits any type.
        _ => &["NULL"],
    }
}

/// The rows of a table with one value smaller, each with the place of its row.
pub(super) fn smaller_rows(table: &Table) -> Vec<(usize, Vec<String>)> {
    let mut smaller = Vec::new();
    for (at, row) in table.rows.iter().enumerate() {
        for (place, literal) in row.iter().enumerate() {
            let with = |value: &&str| {
                let mut other = row.clone();
                (*value).clone_into(&mut other[place]);
                (at, other)
            };
            smaller.extend(smaller_literals(literal).iter().map(with));
        }
    }
    smaller
}

/// A statement with one of its literals smaller. What has no tokens stays as it is.
pub(super) fn smaller_values(sql: &str, product: &Product) -> Vec<String> {
    let tokens = product.tokens(sql).unwrap_or_default();
    let mut smaller = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| is_literal(token)) {
        for value in smaller_literals(&token.to_string()) {
            let text = |(other, token): (usize, &Token)| match other == at {
                true => (*value).to_owned(),
                false => token.to_string(),
            };
            smaller.push(tokens.iter().enumerate().map(text).collect());
        }
    }
    smaller
}

/// Every literal of some statements and tables, with what may stand in its place everywhere: a key, say, by which
/// several of them know a row.
pub(super) fn smaller_everywhere(
    statements: &[&str],
    tables: &[Table],
    product: &Product,
) -> Vec<(String, &'static str)> {
    let tokens = statements.iter().flat_map(|sql| product.tokens(sql).unwrap_or_default());
    let literals = tokens.filter(is_literal).map(|token| token.to_string());
    let in_rows = tables.iter().flat_map(|table| table.rows.iter().flatten().cloned());
    let all: BTreeSet<String> = literals.chain(in_rows).collect();
    let smaller = |literal: String| {
        smaller_literals(&literal).iter().map(move |value| (literal.clone(), *value))
    };
    all.into_iter().flat_map(smaller).collect()
}

/// A statement with a value in the place of a literal, wherever it occurs.
pub(super) fn replaced(sql: &str, literal: &str, value: &str, product: &Product) -> String {
    let Ok(tokens) = product.tokens(sql) else { return sql.to_owned() };
    let text = |token: &Token| match token.to_string() {
        same if is_literal(token) && same == literal => value.to_owned(),
        other => other,
    };
    tokens.iter().map(text).collect()
}

fn is_literal(token: &Token) -> bool {
    matches!(token, Token::Number(..) | Token::SingleQuotedString(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Type;

    #[test]
    fn literals_become_smaller_one_at_a_time() {
        assert_eq!(
            smaller_values("UPDATE t SET c = c + 7 WHERE d = 'it''s' OR c = 1", &Product::POSTGRES),
            [
                "UPDATE t SET c = c + 0 WHERE d = 'it''s' OR c = 1",
                "UPDATE t SET c = c + 1 WHERE d = 'it''s' OR c = 1",
                "UPDATE t SET c = c + 7 WHERE d = NULL OR c = 1",
                "UPDATE t SET c = c + 7 WHERE d = 'it''s' OR c = 0",
            ]
        );
        assert!(smaller_values("SELECT c FROM t WHERE c = 0", &Product::MARIADB).is_empty());
    }

    #[test]
    fn a_literal_is_replaced_wherever_it_occurs() {
        let table = Table::plain("t", &[("c", Type::Integer)], &[&["7"]]);
        let sql = "SELECT c7 FROM t WHERE c = 7 OR c = 71 OR 7 = c";
        let smaller = smaller_everywhere(&[sql], &[table], &Product::SQLITE);
        let pairs: Vec<(&str, &str)> = smaller.iter().map(|(l, v)| (l.as_str(), *v)).collect();
        assert_eq!(pairs, [("7", "0"), ("7", "1"), ("71", "0"), ("71", "1")]);
        let expected = "SELECT c7 FROM t WHERE c = 1 OR c = 71 OR 1 = c";
        assert_eq!(replaced(sql, "7", "1", &Product::SQLITE), expected);
    }

    #[test]
    fn so_do_rows() {
        let columns = [("c0", Type::Integer), ("c1", Type::Text)];
        let table = Table::plain("t", &columns, &[&["1", "'a'"], &["NULL", "''"]]);
        let row = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        assert_eq!(smaller_rows(&table), [(0, row(["0", "'a'"])), (0, row(["1", "NULL"]))]);
    }
}
