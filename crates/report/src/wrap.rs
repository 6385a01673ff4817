//! Text in lines of bounded width.

/// How wide reports for people are.
pub(crate) const WIDTH: usize = 80;

/// Breaks a text at spaces into lines of at most `width` characters; words that are longer stand
/// alone on theirs. The first line begins with `first`, the others with `rest`.
pub fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let mut wrapped = String::from(first);
    let mut column = first.chars().count();
    let mut line_is_empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if !line_is_empty && column + 1 + length > width {
            wrapped.push('\n');
            wrapped.push_str(rest);
            column = rest.chars().count();
            line_is_empty = true;
        }
        if !line_is_empty {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += length;
        line_is_empty = false;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_stand_alone() {
        assert_eq!(wrap("a bc def", 4, "", ""), "a bc\ndef");
        assert_eq!(wrap("a bc def", 6, "- ", "  "), "- a bc\n  def");
        assert_eq!(wrap("a unbreakable b", 5, "", ""), "a\nunbreakable\nb");
        assert_eq!(wrap("", 5, "> ", ""), "> ");
    }

    proptest! {
        #[test]
        fn words_survive_and_lines_fit(text in "[a-zé]{0,9}( [a-z→]{1,9}){0,12}", width in 4..30usize) {
            let wrapped = wrap(&text, width, "* ", "  ");
            let words = wrapped.trim_start_matches("* ").split_whitespace();
            prop_assert!(words.eq(text.split_whitespace()));
            for line in wrapped.lines() {
                let alone = line.trim_start_matches(['*', ' ']).split(' ').count() == 1;
                prop_assert!(alone || line.chars().count() <= width, "{line:?}");
            }
        }
    }
}
