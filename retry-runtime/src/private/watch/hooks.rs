//! What is done for the installed observer. Every call asks for it, and only [`install`] says where it is: so a program that
//! installs none is linked without.

use std::sync::OnceLock;

use super::call::{WatchedBy, Watching};
use super::slab::{self, Handle};
use super::{Facts, News};
use crate::dead_letter::Ticket;
use crate::observe::{Observer, keep};

pub(super) struct Hooks {
    /// A call begins. `None`: it is not watched.
    pub(super) begin: fn(&'static dyn Observer, bool, Facts) -> Option<Handle>,
    pub(super) note: fn(Handle, News<'_>),
    pub(super) later: fn(Handle, Ticket),
    /// The call is over.
    pub(super) over: fn(Handle),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// `None`: nothing is installed.
pub(super) fn hooks() -> Option<&'static Hooks> {
    HOOKS.get()
}

/// Tells `observer` of all calls of this process that start from now on, beside the observer of each. The first one stays
/// for ever; `false` says that there was one already. Several are installed as one: `install((log, metrics))`.
pub fn install(observer: impl Observer + 'static) -> bool {
    // before the observer: whoever sees that finds these
    HOOKS.get_or_init(|| Hooks { begin, note, later, over });
    keep(Box::new(observer))
}

fn begin(observer: &'static dyn Observer, has_fallback: bool, facts: Facts) -> Option<Handle> {
    let by = WatchedBy { own: None, installed: Some(observer), catches: false };
    slab::put(Box::new(Watching::new(by, has_fallback, facts)))
}

fn note(handle: Handle, news: News<'_>) {
    with(handle, |call| call.note(news));
}

fn later(handle: Handle, ticket: Ticket) {
    with(handle, |call| call.later(ticket));
}

fn with(handle: Handle, tell: impl FnOnce(&mut Watching<'static>)) {
    if let Some(mut call) = slab::take(handle) {
        tell(&mut call);
        slab::give_back(handle, call);
    }
}

fn over(handle: Handle) {
    drop(slab::take(handle));
    slab::free(handle);
}
