//! What befell a live run.

use isolario_model::StopCause;

/// What ended a run before its time. The node is named where there are several.
pub fn stopped_because(cause: &StopCause, urls: &[String]) -> String {
    let error = match (&cause.message, &cause.code) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(message), None) => message.clone(),
        (None, _) => String::new(),
    };
    let node = cause.node.and_then(|node| urls.get(node)).filter(|_| urls.len() > 1);
    match (cause.stalled_ms, node) {
        (Some(ms), _) if error.is_empty() => format!("nothing has committed for {}", seconds(ms)),
        (Some(ms), None) => {
            format!("nothing has committed for {}; the last error: {error}", seconds(ms))
        }
        (Some(ms), Some(node)) => {
            format!("nothing has committed for {}; the last error, of {node}: {error}", seconds(ms))
        }
        (None, Some(node)) => format!("{node}: {error}"),
        (None, None) => error,
    }
}

fn seconds(ms: f64) -> String {
    format!("{:.0} s", ms / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_that_failed_is_named_where_there_are_several() {
        let nodes = ["mysql://n1/t".to_owned(), "mysql://n2/t".to_owned()];
        let no_right = StopCause {
            node: Some(1),
            code: Some("1142".to_owned()),
            message: Some("no right".to_owned()),
            stalled_ms: None,
        };
        let stalled = StopCause { stalled_ms: Some(30_000.0), ..no_right.clone() };
        let silent = StopCause { stalled_ms: Some(30_000.0), ..StopCause::default() };
        assert_eq!(stopped_because(&no_right, &nodes), "mysql://n2/t: no right (1142)");
        assert_eq!(stopped_because(&no_right, &nodes[1..]), "no right (1142)");
        assert_eq!(
            stopped_because(&stalled, &nodes),
            "nothing has committed for 30 s; the last error, of mysql://n2/t: no right (1142)"
        );
        assert_eq!(stopped_because(&silent, &nodes), "nothing has committed for 30 s");
    }
}
