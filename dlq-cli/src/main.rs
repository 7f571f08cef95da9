//! `dlq`, the command. Everything is in the library, where tests and the dashboard find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    dlq_cli::main()
}
