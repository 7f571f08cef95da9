//! `dlq edit`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use retry_runtime::dead_letter::{Edit, Payload, PayloadDiff};
use serde_json::json;

use super::context::{ChangeArgs, Context, aside, print, print_json};
use crate::exit::{Exit, Failure};
use crate::filters::one;
use crate::stores::{Access, Store};
use crate::{documents, text};

/// Which letter, and where the new payload comes from.
#[derive(Debug, clap::Args)]
pub(crate) struct EditArgs {
    /// A letter's id, a job's id, or the beginning of either where it is unique
    #[arg(value_name = "ID")]
    id: String,
    /// The new payload from this file, `-` for stdin, instead of an editor ($VISUAL, else $EDITOR, else vi)
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn run(context: &Context, args: EditArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let id = one(&store, &args.id).await?;
    let detail = store.get(id.clone()).await?.ok_or_else(|| Failure::failed(format!("letter {id} is gone")))?;
    let old = match &detail.payload {
        Payload::Json(json) => json.clone(),
        // Nothing is there to begin with; what is written becomes the first revision.
        _ => String::new(),
    };
    let from_stdin = args.from.as_deref() == Some(Path::new("-"));
    let new = match &args.from {
        Some(_) if from_stdin => {
            let mut new = String::new();
            std::io::stdin().read_to_string(&mut new)?;
            new
        }
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| Failure::failed(format!("cannot read `{}`: {error}", file.display())))?,
        None => edited(&old, &detail.row.letter_id).await?,
    };
    // Editors end files by a line's end; the payload had none.
    let new = if old.ends_with('\n') { new } else { new.trim_end_matches(['\n', '\r']).to_owned() };
    if new == old {
        return say(context, &store, &detail.row, "nothing was changed");
    }
    let edit = Edit::new(id, detail.row.payload_revision, new.clone());
    edit.check()?;
    let before = if old.is_empty() { "null" } else { &old };
    let diff = PayloadDiff::between(before, &new);
    if !context.json {
        let shown = if diff.is_empty() { "only how it is written differs".to_owned() } else { diff.to_string() };
        aside(&format!("store: {}\n{}", store.shown(), text::some_lines(&shown, 32 << 10, 200)));
    }
    Context::ask(
        "yes",
        &format!("save this as revision {}", detail.row.payload_revision.saturating_add(1)),
        args.change.yes,
    )?;
    let done = store.edit(edit, args.change.actor()).await?;
    say(context, &store, &done.row, &format!("saved as revision {}; the older ones stay", done.row.payload_revision))
}

fn say(
    context: &Context,
    store: &Store,
    row: &retry_runtime::dead_letter::LetterRow,
    done: &str,
) -> Result<Exit, Failure> {
    if context.json {
        print_json(&json!({ "store": store.shown(), "letter": documents::letter(row) }))?;
    } else {
        print(&format!("store: {}\n{} (job {}): {done}", store.shown(), row.letter_id, text::line(&row.job_id)))?;
    }
    Ok(Exit::DONE)
}

/// Lets an editor have it, in a file that nobody else can read.
async fn edited(old: &str, letter_id: &str) -> Result<String, Failure> {
    let failed = |what: &str, error: std::io::Error| Failure::failed(format!("{what}: {error}"));
    let directory = private_directory().map_err(|error| failed("cannot make a directory for the payload", error))?;
    let name: String = letter_id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let file = directory.path().join(format!("{name}.json"));
    std::fs::write(&file, old).map_err(|error| failed("cannot write the payload down", error))?;
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.trim().is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // `EDITOR="code --wait"` is a command with an argument, by old custom.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = tokio::process::Command::new(program).args(words).arg(&file).status().await;
    let status =
        status.map_err(|error| Failure::failed(format!("cannot run the editor `{}`: {error}", text::line(program))))?;
    if !status.success() {
        return Err(Failure::failed(format!(
            "the editor `{}` failed ({status}): nothing was saved",
            text::line(program)
        )));
    }
    std::fs::read_to_string(&file).map_err(|error| failed("cannot read what the editor wrote", error))
}

/// For its owner alone.
pub(super) fn private_directory() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.prefix("dlq-").tempdir()
}
