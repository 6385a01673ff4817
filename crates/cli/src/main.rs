//! The `isolario` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    isolario_cli::main()
}
