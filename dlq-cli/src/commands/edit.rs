//! `dlq edit`.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use retry_runtime::dead_letter::{Edit, LetterDetail, Payload, PayloadDiff};
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
    let id_of = detail.row.letter_id.clone();
    if let Some(from) = &args.from {
        let new = without_end(given(from)?, &old);
        return save(context, &store, &args.change, &detail, &old, new).await;
    }
    let draft = Draft::of(&old, &id_of)?;
    loop {
        let new = without_end(draft.edited().await?, &old);
        let wrong = match Edit::new(id_of.clone(), detail.row.payload_revision, new.clone()).check() {
            Err(error) if new != old => error.to_string(),
            _ => {
                let saved = save(context, &store, &args.change, &detail, &old, new.clone()).await;
                return match saved {
                    Err(failure) if new != old => Err(draft.kept(&id_of, &new, &failure.to_string(), failure.exit())),
                    other => other,
                };
            }
        };
        // Whoever cannot be asked cannot be asked again; nor does who left it as it was want to.
        if !std::io::stdin().is_terminal() || draft.was_told(&new) {
            return Err(draft.kept(&id_of, &new, &wrong, Exit::FAILED));
        }
        draft.tell(&wrong, &new)?;
    }
}

/// What a file holds, or stdin.
fn given(from: &Path) -> Result<String, Failure> {
    if from == Path::new("-") {
        let mut new = String::new();
        std::io::stdin().read_to_string(&mut new)?;
        return Ok(new);
    }
    std::fs::read_to_string(from).map_err(|error| Failure::failed(format!("cannot read `{}`: {error}", from.display())))
}

/// Editors end files by a line's end; the payload had none.
fn without_end(new: String, old: &str) -> String {
    if old.ends_with('\n') { new } else { new.trim_end_matches(['\n', '\r']).to_owned() }
}

async fn save(
    context: &Context,
    store: &Store,
    change: &ChangeArgs,
    detail: &LetterDetail,
    old: &str,
    new: String,
) -> Result<Exit, Failure> {
    if new == old {
        return say(context, store, &detail.row, "nothing was changed");
    }
    let edit = Edit::new(detail.row.letter_id.clone(), detail.row.payload_revision, new.clone());
    edit.check()?;
    let before = if old.is_empty() { "null" } else { old };
    let diff = PayloadDiff::between(before, &new);
    if !context.json {
        let shown = if diff.is_empty() { "only how it is written differs".to_owned() } else { diff.to_string() };
        aside(&format!("store: {}\n{}", store.shown(), text::some_lines(&shown, 32 << 10, 200)));
    }
    Context::ask(
        "yes",
        &format!("save this as revision {}", detail.row.payload_revision.saturating_add(1)),
        change.yes,
    )?;
    let done = store.edit(edit, change.actor()).await?;
    say(context, store, &done.row, &format!("saved as revision {}; the older ones stay", done.row.payload_revision))
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

/// A payload in a file that nobody else can read, for an editor.
struct Draft {
    directory: tempfile::TempDir,
    file: PathBuf,
    /// What was wrong with this text was said already.
    told: std::cell::RefCell<Option<String>>,
}

impl Draft {
    fn of(old: &str, letter_id: &str) -> Result<Self, Failure> {
        let directory =
            private_directory().map_err(|error| failed("cannot make a directory for the payload", &error))?;
        let name: String = letter_id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let file = directory.path().join(format!("{name}.json"));
        let draft = Self { directory, file, told: std::cell::RefCell::default() };
        draft.write(old)?;
        Ok(draft)
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        std::fs::write(&self.file, text).map_err(|error| failed("cannot write the payload down", &error))
    }

    /// Lets an editor have it.
    async fn edited(&self) -> Result<String, Failure> {
        let editor = ["VISUAL", "EDITOR"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok().filter(|name| !name.trim().is_empty()));
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        // `EDITOR="code --wait"` is a command with an argument, by old custom.
        let mut words = editor.split_whitespace();
        let program = words.next().unwrap_or("vi");
        let status = tokio::process::Command::new(program).args(words).arg(&self.file).status().await;
        let program = text::line(program);
        let status = status.map_err(|error| Failure::failed(format!("cannot run the editor `{program}`: {error}")))?;
        if !status.success() {
            return Err(Failure::failed(format!("the editor `{program}` failed ({status}): nothing was saved")));
        }
        let text =
            std::fs::read_to_string(&self.file).map_err(|error| failed("cannot read what the editor wrote", &error))?;
        let told = text.lines().take_while(|line| line.starts_with('#')).map(|line| line.len() + 1).sum::<usize>();
        Ok(text.get(told..).unwrap_or_default().to_owned())
    }

    /// What is wrong stands on top when the editor opens it again; such lines are left out.
    fn tell(&self, wrong: &str, text: &str) -> Result<(), Failure> {
        let wrong: Vec<String> = text::lines(wrong).lines().map(|line| format!("# {line}")).collect();
        self.write(&format!("{}\n# leave it as it is to give up\n{text}", wrong.join("\n")))?;
        *self.told.borrow_mut() = Some(text.to_owned());
        Ok(())
    }

    fn was_told(&self, text: &str) -> bool {
        self.told.borrow().as_deref() == Some(text)
    }

    /// Nothing was saved, and nothing that was written is lost.
    fn kept(self, letter_id: &str, text: &str, why: &str, exit: Exit) -> Failure {
        let written = self.write(text);
        let _kept = self.directory.keep();
        let file = self.file.display();
        let why = match written {
            Ok(()) => {
                format!("{why}\n  nothing was saved; what you wrote is in {file}: dlq edit {letter_id} --from {file}")
            }
            Err(_) => why.to_owned(),
        };
        if exit == Exit::USAGE { Failure::usage(why) } else { Failure::failed(why) }
    }
}

fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{what}: {error}"))
}

/// For its owner alone.
pub(super) fn private_directory() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.prefix("dlq-").tempdir()
}
