//! Which histories a level can be decided for.

use isolario_model::{Level, LevelNeeds, OpFamily};

use crate::names::listed;

/// Which histories a level can be decided for, as half a sentence.
pub fn applies_to(level: Level) -> String {
    let LevelNeeds { times, version_order, single_operations, operations, .. } = level.needs();
    if operations.is_empty() {
        return "nothing yet: there is no checker for it".to_owned();
    }
    let name = |family: &OpFamily| match family {
        // Where an order of versions is asked for, a read must tell whose write it saw.
        OpFamily::Registers if version_order => "registers with unique values",
        OpFamily::Registers => "registers",
        OpFamily::Lists => "lists",
        OpFamily::Conditionals => "conditional writes",
        OpFamily::Predicates => "predicates",
        _ => "other operations",
    };
    let families: Vec<&str> = operations.iter().map(name).collect();
    let mut text = listed(&families);
    if single_operations {
        text += ", one operation per transaction";
    }
    if version_order {
        text += ", with a known version order";
    }
    if times {
        text += ", with times";
    }
    text
}
