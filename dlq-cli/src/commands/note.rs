//! `dlq note`.

use retry_runtime::dead_letter::{Actor, Filter, GroupNote};
use serde_json::json;

use super::context::{ChangeArgs, Context, print, print_json};
use crate::exit::{Exit, Failure};
use crate::stores::Access;
use crate::{documents, text, times};

/// Which group, and what.
#[derive(Debug, clap::Args)]
pub(crate) struct NoteArgs {
    /// The group, as `dlq groups` names it
    #[arg(value_name = "GROUP")]
    group: String,
    /// What to note; an empty one takes the last note away. Without it, what was noted is shown
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

pub(super) async fn run(context: &Context, args: NoteArgs) -> Result<Exit, Failure> {
    let store = context.open(if args.text.is_some() { Access::Write } else { Access::Read })?;
    let mut of_group = Filter::all();
    of_group.fingerprints.push(args.group.clone());
    if store
        .list(
            of_group,
            retry_runtime::dead_letter::PageRequest::first(retry_runtime::dead_letter::Order::NewestFirst, 1),
        )
        .await?
        .rows
        .is_empty()
    {
        return Err(Failure::failed(format!(
            "no group `{}` in {}: dlq groups lists them",
            text::line(&args.group),
            store.shown()
        )));
    }
    if let Some(said) = args.text {
        let actor: Actor = ChangeArgs::default().actor();
        store.note(args.group.clone(), said, actor).await?;
    }
    let notes = store.notes(args.group.clone()).await?;
    if context.json {
        let document =
            |note: &GroupNote| json!({ "text": note.text, "actor": note.actor, "at": documents::time(note.at) });
        print_json(
            &json!({ "store": store.shown(), "group": args.group, "notes": notes.iter().map(document).collect::<Vec<_>>() }),
        )?;
        return Ok(Exit::DONE);
    }
    let mut out = vec![format!("store: {}", store.shown())];
    out.extend(notes.iter().map(|note| {
        format!("{}  {}: {}", times::full(note.at), text::line(&note.actor), text::some_lines(&note.text, 4_096, 40))
    }));
    if notes.is_empty() {
        out.push("nothing was noted".to_owned());
    }
    print(&out.join("\n"))?;
    Ok(Exit::DONE)
}
