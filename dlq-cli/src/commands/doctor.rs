//! `dlq doctor`.

use retry_runtime::dead_letter::{Checkup, Finding, Severity};
use serde_json::json;

use super::context::{Context, print, print_json};
use super::table::{BAD, CAREFUL, DIM, GOOD, styled};
use crate::exit::{Exit, Failure};
use crate::stores::Access;
use crate::{documents, text};

/// How thorough.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Look at every row and every file: takes a while
    #[arg(long)]
    full: bool,
    /// The kinds your program has handlers for: letters of others wait for nobody
    #[arg(long, value_name = "KIND")]
    handled: Vec<String>,
    /// Open it for writing and try a parking, which is taken back
    #[arg(long)]
    probe: bool,
}

pub(super) async fn run(context: &Context, args: DoctorArgs) -> Result<Exit, Failure> {
    let store = context.open(if args.probe { Access::Write } else { Access::Read })?;
    let checkup = if args.full { Checkup::full() } else { Checkup::quick() };
    let checkup = if args.handled.is_empty() { checkup } else { checkup.handling(args.handled) };
    let mut found = store.doctor(checkup).await?;
    // That this command only reads was its own choice.
    found.retain(|finding| args.probe || finding.code != "read_only");
    let is_bad = Finding::worst(&found) > Some(Severity::Info);
    if context.json {
        let findings: Vec<_> = found.iter().map(documents::finding).collect();
        print_json(&json!({ "store": store.shown(), "ok": !is_bad, "findings": findings }))?;
    } else {
        let mut out = vec![format!("store: {}", store.shown())];
        for finding in &found {
            let style = match finding.severity {
                Severity::Error => BAD,
                Severity::Warning => CAREFUL,
                _ => DIM,
            };
            out.push(styled(style, &text::some_lines(&finding.to_string(), 4_096, 4)));
        }
        if !is_bad {
            out.push(styled(GOOD, "nothing is wrong"));
        }
        print(&out.join("\n"))?;
    }
    Ok(if is_bad { Exit::FOUND } else { Exit::DONE })
}
