//! Passwords in command lines, left out: what is run ends up in records and reports.

/// A command with `***` in place of what looks like a password: `--password X`, `PGPASSWORD=X`,
/// `jdbc:…;PASSWORD=X`, `scheme://user:X@host`.
pub(crate) fn masked(command: &str) -> String {
    let mut scanner = Scanner::default();
    without_logins(command).chars().for_each(|next| scanner.take(next));
    scanner.shown
}

/// What the name of an option ends with whose value is secret.
const SECRET: [&str; 6] = ["password", "passwd", "pwd", "secret", "token", "api-key"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    SECRET.iter().any(|secret| name.ends_with(secret))
}

/// Goes through a command as a shell would, as far as quotes are concerned.
#[derive(Default)]
struct Scanner {
    shown: String,
    /// The quote that is open.
    quote: Option<char>,
    /// The letters before this one, as far as they may be a name.
    name: String,
    hidden: Hidden,
}

/// What is left out now.
#[derive(Default, PartialEq, Eq)]
enum Hidden {
    #[default]
    Nothing,
    /// The next word.
    Next,
    /// Until the end of the word, or of the quotes that it began in.
    Until(Option<char>),
}

impl Scanner {
    fn take(&mut self, next: char) {
        let was = self.quote;
        match was {
            Some(open) if open == next => self.quote = None,
            None if matches!(next, '\'' | '"') => self.quote = Some(next),
            _ => {}
        }
        let is_gap = was.is_none() && next.is_whitespace();
        match self.hidden {
            Hidden::Next if is_gap => {}
            Hidden::Next => {
                self.shown.push_str("***");
                self.hidden = Hidden::Until(None);
                return;
            }
            Hidden::Until(began) => {
                let is_over = if began.is_some() { self.quote.is_none() } else { is_gap };
                if !is_over {
                    return;
                }
                self.hidden = Hidden::Nothing;
            }
            Hidden::Nothing if next == '=' && is_secret(&self.name) => {
                self.hidden = Hidden::Until(was);
                self.shown.push_str("=***");
                self.name.clear();
                return;
            }
            Hidden::Nothing if is_gap && self.name.starts_with('-') && is_secret(&self.name) => {
                self.hidden = Hidden::Next;
            }
            Hidden::Nothing => {}
        }
        self.shown.push(next);
        match next.is_ascii_alphanumeric() || matches!(next, '-' | '_' | '.') {
            true => self.name.push(next),
            false => self.name.clear(),
        }
    }
}

/// With the passwords of `//user:password@host` left out.
fn without_logins(command: &str) -> String {
    let mut parts = command.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', '?', '\'', '"', ' ']).unwrap_or(part.len());
        let (authority, rest) = part.split_at(end);
        let login = authority.rsplit_once('@').and_then(|(login, host)| {
            let (user, _) = login.split_once(':')?;
            Some(format!("{user}:***@{host}"))
        });
        shown.push_str("://");
        shown.push_str(login.as_deref().unwrap_or(authority));
        shown.push_str(rest);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_password_is_left_out() {
        for (command, shown) in [
            ("./driver --password geheim --fast", "./driver --password *** --fast"),
            ("./driver --password 'ge he' -v", "./driver --password *** -v"),
            ("./driver --db-password=geheim x", "./driver --db-password=*** x"),
            ("PGPASSWORD=\"ge he\" ./driver", "PGPASSWORD=*** ./driver"),
            ("PGPASSWORD=ge'h e'im ./driver", "PGPASSWORD=*** ./driver"),
            ("java D 'jdbc:h2:/t;PASSWORD=a b;X=1' y", "java D 'jdbc:h2:/t;PASSWORD=***' y"),
            ("d mysql://me:geheim@host/t", "d mysql://me:***@host/t"),
            ("d 'mysql://me:ge:he@im@host/t'", "d 'mysql://me:***@host/t'"),
            ("d --api_key=geheim", "d --api_key=***"),
        ] {
            assert_eq!(masked(command), shown);
        }
    }

    #[test]
    fn everything_else_is_shown_as_it_is() {
        for command in [
            "python3 driver.py /tmp/test.db",
            "./driver --user me --host=h 'a:b@c' \"x y\"",
            "d http://host:80/a@b:c --passwords-file x",
            "",
        ] {
            assert_eq!(masked(command), command);
        }
    }
}
