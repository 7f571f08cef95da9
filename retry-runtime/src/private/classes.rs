//! Other numbers for one failure class: the limits of a site, and what a call counts of them.

use std::cell::Cell;

use crate::__private::classify::Found;
use crate::__private::site::Site;
use crate::engine::{OfClass, Session};
use crate::observe::{Notice, is_first, with_place};
use crate::policy::{ClassLimits, Policy, Retries};

/// One `class(NAME, ..)`.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    name: &'static str,
    limits: ClassLimits,
}

impl Class {
    #[inline]
    pub const fn new(name: &'static str, limits: ClassLimits) -> Self {
        Self { name, limits }
    }
}

/// What one call counts: the failures of each class.
#[derive(Debug)]
pub struct Counts<const N: usize>([Cell<Session>; N]);

impl<const N: usize> Counts<N> {
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self([const { Cell::new(Session::new()) }; N])
    }
}

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// The classes of a call with numbers of their own.
#[derive(Clone, Copy, Debug)]
pub struct Classes<'a> {
    list: &'a [Class],
    counts: &'a [Cell<Session>],
    /// Names every class that the error type can give.
    look: fn(&mut Found),
    rules: &'static Rules,
}

/// What is done with classes. Every call asks for it, and only one that has classes says where it is: so a program that has
/// none is linked without.
#[derive(Debug)]
struct Rules {
    most: fn(&Classes<'_>, Retries) -> Retries,
    find: for<'a> fn(&Classes<'a>, &str, Retries) -> Option<Limited<'a>>,
    check_once: fn(&Classes<'_>, &Site, &Policy),
}

static RULES: Rules = Rules { most, find, check_once };

/// The numbers of a class, and where its failures are counted.
type Limited<'a> = (OfClass<'a>, &'a Cell<Session>);

impl<'a> Classes<'a> {
    #[inline]
    pub const fn new<const N: usize>(list: &'a [Class; N], counts: &'a Counts<N>, look: fn(&mut Found)) -> Self {
        Self { list, counts: &counts.0, look, rules: &RULES }
    }

    pub(crate) const fn at_run_time(list: &'a [Class], counts: &'a [Cell<Session>]) -> Self {
        Self { list, counts, look: Found::anything, rules: &RULES }
    }

    /// The largest number of retries that any class or the call itself has. Where a name is repeated, the first holds.
    pub(crate) fn most(&self, call: Retries) -> Retries {
        (self.rules.most)(self, call)
    }

    /// The numbers of a class that has its own, with what was counted. `call` is the call's number of retries.
    pub(crate) fn find(&self, class: &str, call: Retries) -> Option<Limited<'a>> {
        (self.rules.find)(self, class, call)
    }

    /// Says once per site what is wrong with its classes: names that no failure has, numbers that contradict each other.
    pub(crate) fn check_once(&self, site: &Site, policy: &Policy) {
        (self.rules.check_once)(self, site, policy);
    }
}

fn most(classes: &Classes<'_>, call: Retries) -> Retries {
    let list = classes.list;
    let holds = |at: usize, class: &Class| !list.iter().take(at).any(|before| before.name == class.name);
    let held = list.iter().enumerate().filter(|(at, class)| holds(*at, class));
    held.filter_map(|(_, class)| class.limits.retries()).fold(call, Retries::or_more)
}

fn find<'a>(classes: &Classes<'a>, class: &str, call: Retries) -> Option<Limited<'a>> {
    let mut both = classes.list.iter().zip(classes.counts);
    both.find(|(own, _)| own.name == class).map(|(own, count)| {
        (OfClass { name: own.name, limits: &own.limits, counted: count.get(), most: most(classes, call) }, count)
    })
}

fn check_once(classes: &Classes<'_>, site: &Site, policy: &Policy) {
    let (operation, built_at) = site.place();
    if !is_first("classes", operation, built_at) {
        return;
    }
    for class in classes.list {
        if let Err(error) = class.limits.over(policy).validate() {
            site.warn_once("misconfigured", || format!("class `{}`: {error}", class.name));
        }
    }
    let mut found = Found::new();
    (classes.look)(&mut found);
    if let Some(names) = found.every_class() {
        let own = ["timeout", "rejected_value"];
        for class in classes.list.iter().filter(|class| !names.contains(&class.name) && !own.contains(&class.name)) {
            let message = format!(
                "`class({}, ..)` limits a class that no failure of this call has; its classes are {}",
                class.name,
                names.join(", ")
            );
            Notice::warning("unknown_class", operation, with_place(message, built_at)).say();
        }
    }
}
