//! What every command has: the store's address, and where to write.

use std::io::{self, Write as _};
use std::path::PathBuf;

use serde_json::Value;

use crate::args::Args;
use crate::exit::Failure;
use crate::stores::{Access, Place, Store};

/// What the command line says for all commands.
pub(crate) struct Context {
    store: Option<String>,
    store_file: Option<PathBuf>,
    /// Output is for machines.
    pub(crate) json: bool,
}

impl Context {
    pub(crate) fn new(args: &Args) -> Self {
        Self { store: args.store.clone(), store_file: args.store_file.clone(), json: args.json }
    }

    /// Where the store is: the option, the environment, the file.
    pub(crate) fn place(&self) -> Result<Place, Failure> {
        let address = match (&self.store, std::env::var("DLQ_STORE"), &self.store_file) {
            (Some(address), _, _) => address.clone(),
            (None, Ok(address), None) if !address.is_empty() => address,
            (None, _, Some(file)) => first_line(file)?,
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
}

/// One document, for machines.
pub(crate) fn print_json(value: &Value) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}

fn first_line(file: &std::path::Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::failed(format!("cannot read `{}`: {error}", file.display())))?;
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(Failure::usage(format!(
            "the first line of `{}` is empty: accepted is an address of a store",
            file.display()
        ))),
    }
}
