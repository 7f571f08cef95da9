//! What every command has: the store's address, who types, where to write, whether somebody can be asked.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use retry_runtime::dead_letter::Actor;
use serde_json::Value;

use crate::args::Args;
use crate::exit::Failure;
use crate::stores::{Access, Place, Store};
use crate::text;

/// More letters than this are asked about.
const ASKED_ABOVE: u64 = 10;

/// What the command line says for all commands.
pub(crate) struct Context {
    store: Option<String>,
    store_file: Option<PathBuf>,
    /// Output is for machines.
    pub(crate) json: bool,
}

/// What every command says that changes something.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ChangeArgs {
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Do not ask, whatever the number: for scripts
    #[arg(long)]
    pub(crate) yes: bool,
}

impl ChangeArgs {
    /// Who does it, and why.
    pub(crate) fn actor(&self) -> Actor {
        Actor::new(who(), self.reason.clone().unwrap_or_default())
    }
}

/// The user and the machine.
fn who() -> String {
    let user = ["DLQ_ACTOR", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    let user = user.unwrap_or_else(of_process);
    format!("{user}@{}", host())
}

/// The user this process runs as: cron and containers have no environment that says.
#[cfg(unix)]
fn of_process() -> String {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("uid-{uid}"))
}

#[cfg(not(unix))]
fn of_process() -> String {
    "dlq".to_owned()
}

/// The machine's name.
pub(crate) fn host() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let named = named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| "localhost".to_owned())
}

impl Context {
    pub(crate) fn new(args: &Args) -> Self {
        Self { store: args.store.clone(), store_file: args.store_file.clone(), json: args.json }
    }

    /// Where the store is: the option, the environment, the file.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        let address = match (&self.store, std::env::var("DLQ_STORE"), &self.store_file) {
            (Some(address), _, _) => address.clone(),
            (None, _, Some(file)) => first_line(file)?,
            (None, Ok(address), None) if !address.is_empty() => address,
            (None, Err(std::env::VarError::NotUnicode(_)), None) => {
                return Err(Failure::usage("DLQ_STORE is not UTF-8"));
            }
            (None, _, None) => {
                return Err(Failure::usage(
                    "which store? say --store sqlite:PATH, set DLQ_STORE, or name a file with the address by --store-file",
                ));
            }
        };
        Place::parse(address.trim())
    }

    pub(crate) fn open(&self, access: Access) -> Result<Store, Failure> {
        Store::open(&self.place()?, access)
    }

    /// Asks before more than a few letters are changed. The number has to be typed: it is what is about to happen.
    pub(crate) fn confirm(n: u64, what: &str, yes: bool) -> Result<(), Failure> {
        if n <= ASKED_ABOVE {
            return Ok(());
        }
        Self::ask(&n.to_string(), what, yes)
    }

    /// Asks, whatever the number.
    pub(crate) fn ask(answer: &str, what: &str, yes: bool) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::usage(format!("{what}: say --yes where nobody can be asked")));
        }
        let mut err = anstream::stderr().lock();
        write!(err, "{}. Type {} to go on: ", text::line(what), text::line(answer))?;
        err.flush()?;
        let mut typed = String::new();
        io::stdin().read_line(&mut typed)?;
        // A number has to be typed as it stands; a plain yes may be short.
        let typed = typed.trim();
        if typed == answer || (answer == "yes" && typed.eq_ignore_ascii_case("y")) {
            return Ok(());
        }
        Err(Failure::failed("nothing was done"))
    }
}

/// One document, for machines.
pub(crate) fn print_json(value: &Value) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}

/// Text for people, which is safe already.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// A word beside the output: on stderr, so that stdout has nothing but what was asked for.
pub(crate) fn aside(text: &str) {
    // Where nobody listens, nothing is missed.
    let _said = writeln!(anstream::stderr(), "{text}");
}

fn first_line(file: &std::path::Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::failed(format!("cannot read `{}`: {error}", file.display())))?;
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => {
            let accepted = "accepted is an address of a store";
            Err(Failure::usage(format!("the first line of `{}` is empty: {accepted}", file.display())))
        }
    }
}
