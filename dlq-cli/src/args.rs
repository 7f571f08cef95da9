//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::{
    audit, backup, check, discard, doctor, edit, erase, export, groups, hand, import, ledger, list, manual, migrate,
    note, ops, prune, replay, restore, salvage, serve, show, stats, tail,
};

/// Look at dead letters, replay them with care, and give up on purpose.
///
/// Without a command: what is owed, what is new since yesterday, whether it is still arriving, who is replaying, and what to
/// type next.
#[derive(Debug, Parser)]
#[command(
    name = "dlq",
    version,
    about,
    long_about,
    max_term_width = 110,
    after_help = "Exit status: 0 done, 1 failed or not all done, 2 wrong usage, 3 a threshold was passed or the doctor found \
                  something, 130 after Ctrl-C paused what was under way.\n\n\
                  Example:\n  export DLQ_STORE=sqlite:var/jobs.db\n  dlq"
)]
pub(crate) struct Args {
    /// Where the letters are: sqlite:PATH; else `DLQ_STORE` in the environment, else --store-file
    #[arg(long, global = true, value_name = "ADDRESS", help_heading = "Store and output")]
    pub(crate) store: Option<String>,
    /// A file whose first line is the address of the store: for addresses with a password
    #[arg(long, global = true, value_name = "FILE", help_heading = "Store and output")]
    pub(crate) store_file: Option<PathBuf>,
    /// For machines: JSON, as docs/dlq-json.md says
    #[arg(long, global = true, help_heading = "Store and output")]
    pub(crate) json: bool,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Count what is owed, by error class
    #[command(after_help = "Example:\n  dlq summary --store sqlite:var/jobs.db")]
    Summary,
    /// List letters, the newest failure first; what is owed unless told otherwise
    #[command(after_help = "Example:\n  dlq list --kind fetch --since 2h --limit 50")]
    List(list::ListArgs),
    /// Thousands of letters are a few failures: which, since when, still coming?
    #[command(after_help = "Example:\n  dlq groups --since 1d")]
    Groups(groups::GroupsArgs),
    /// One letter with its payload, attempts and history; secrets in the payload are not shown
    #[command(after_help = "Example:\n  dlq show page-17")]
    Show(show::ShowArgs),
    /// Follow new letters as they come in
    #[command(after_help = "Example:\n  dlq tail --kind fetch")]
    Tail(tail::TailArgs),
    /// Do jobs again: a dry run unless --execute is said
    #[command(after_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Change one letter's payload in an editor; shows the difference before it is saved
    #[command(after_help = "Example:\n  EDITOR=nano dlq edit page-17 --reason 'the small model may not see it'")]
    Edit(edit::EditArgs),
    /// Give letters up on purpose; `dlq restore` brings them back until retention deletes them
    #[command(after_help = "Example:\n  dlq discard --error-class permanent:403 --reason 'the pages are private'")]
    Discard(discard::DiscardArgs),
    /// Park discarded or abandoned letters again
    #[command(
        after_help = "Example:\n  dlq restore --status abandoned --kind fetch --more-replays 2 --reason 'fixed in 1.4'"
    )]
    Restore(restore::RestoreArgs),
    /// Close one letter whose work was done in another way
    #[command(after_help = "Example:\n  dlq resolve page-17 --reason 'sent by hand'")]
    Resolve(hand::ResolveArgs),
    /// Take one letter away from a replay that hangs; its late result will change nothing
    #[command(after_help = "Example:\n  dlq release page-17 --force --reason 'the worker is gone'")]
    Release(hand::ReleaseArgs),
    /// Erase everything of one job, for good: letters, payloads, history, ledger, spill
    #[command(after_help = "Example:\n  dlq erase customer-4711 --reason 'asked to be forgotten'")]
    Erase(erase::EraseArgs),
    /// Note something about a failure group for the colleagues, or read what was noted
    #[command(after_help = "Example:\n  dlq note 5f2c9a7e01b3d846 'the provider is at it, until noon'")]
    Note(note::NoteArgs),
    /// Write letters with everything that belongs to them as lines of JSON
    #[command(after_help = "Example:\n  dlq export --kind fetch --out letters.ndjson")]
    Export(export::ExportArgs),
    /// Take in exported letters, or what waits in spill files; again changes nothing
    #[command(after_help = "Example:\n  dlq import letters.ndjson\n  dlq import --spill")]
    Import(import::ImportArgs),
    /// Delete recovered and discarded letters that are old; never what is owed
    #[command(after_help = "Example:\n  dlq prune --older-than 30d")]
    Prune(prune::PruneArgs),
    /// Attempts per key that survive restarts: look, or open a key again
    #[command(
        after_help = "Example:\n  dlq ledger --scope image_archive\n  dlq ledger reset https://example.org/a.png --reason 'is back'"
    )]
    Ledger(ledger::LedgerArgs),
    /// Daily counters of the last 30 days; degraded days are marked
    #[command(after_help = "Example:\n  dlq stats --days 30")]
    Stats(stats::StatsArgs),
    /// Bulk operations: list, pause, resume, cancel
    #[command(after_help = "Example:\n  dlq ops\n  dlq ops pause 0197c2d4")]
    Ops(ops::OpsArgs),
    /// What happened, by whom and why
    #[command(after_help = "Example:\n  dlq audit --limit 20\n  dlq audit --letter page-17")]
    Audit(audit::AuditArgs),
    /// Compare the store with thresholds: exit 3 when one is passed, for cron and monitoring
    #[command(after_help = "Example:\n  dlq check --max-parked 100 --max-age 1d --max-lost 0")]
    Check(check::CheckArgs),
    /// Examine the store itself: exit 3 when something is wrong
    #[command(after_help = "Example:\n  dlq doctor --full")]
    Doctor(doctor::DoctorArgs),
    /// Bring home what can be read of a damaged file that was set aside
    #[command(after_help = "Example:\n  dlq salvage")]
    Salvage(salvage::SalvageArgs),
    /// Copy the store to another file while it is in use
    #[command(after_help = "Example:\n  dlq backup /backup/jobs-$(date +%F).db")]
    Backup(backup::BackupArgs),
    /// Bring a store up to this version, or copy it whole to another place
    #[command(after_help = "Example:\n  dlq migrate\n  dlq migrate --to sqlite:/new/disk/jobs.db")]
    Migrate(migrate::MigrateArgs),
    /// Look after the store in a browser, on this machine unless told otherwise
    #[command(
        after_help = "Examples:\n  dlq serve\n  dlq serve --new-token ada --role operator --tokens dlq.tokens\n  \
                            dlq serve --allow-actions --tokens dlq.tokens --listen 0.0.0.0:8170 --exec python3 job.py"
    )]
    Serve(serve::ServeArgs),
    /// Write completions for a shell
    #[command(after_help = "Example:\n  dlq completions bash > ~/.local/share/bash-completion/completions/dlq")]
    Completions(manual::CompletionsArgs),
    /// Write the manual pages
    #[command(after_help = "Example:\n  dlq man --out /usr/local/share/man/man1")]
    Man(manual::ManArgs),
}
