//! Which classes an error type gives, as far as its derive can tell: for `class(NAME, ..)` of a misspelt name.
//!
//! A type's own names are a constant, so that the mistake is a compile error where they are all there are. The classes of
//! inner types and of rules are looked up while running, at the first failure.

#![allow(clippy::unused_self)] // method lookup is the point

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use crate::classify::StatusRules;
use crate::error::StoreError;
use crate::policy::PolicyError;
use crate::refused::{Elapsed, Refused};

/// The class names that a derive wrote down.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    ty: &'static str,
    names: &'static [&'static str],
    closed: bool,
}

impl Own {
    /// These and no others.
    pub const fn closed(ty: &'static str, names: &'static [&'static str]) -> Self {
        Self { ty, names, closed: true }
    }

    /// These, and what inner types, rules or functions say.
    pub const fn open(ty: &'static str, names: &'static [&'static str]) -> Self {
        Self { ty, names, closed: false }
    }
}

/// What the derive knows of a type's classes.
pub trait ClassNames {
    const OWN: Own;
    /// The classes beside its own names.
    fn more(_: &mut Found) {}
}

/// Asks a type that may or may not have [`ClassNames`]: the inherent items are there only where it has, and come before
/// those of [`AnyClass`].
#[derive(Debug)]
pub struct Known<E: ?Sized>(PhantomData<fn(&E)>);

impl<E: ClassNames + ?Sized> Known<E> {
    pub const OWN: Own = E::OWN;

    pub fn look(found: &mut Found) {
        found.names.extend(E::OWN.names);
        if !E::OWN.closed {
            E::more(found);
        }
    }

    pub const fn __retry_look(&self) -> fn(&mut Found) {
        Self::look
    }
}

impl<E: ?Sized> Known<E> {
    pub(crate) const NEW: Self = Self(PhantomData);

    /// The type that a field has.
    pub const fn of<S: ?Sized>(_: fn(&S) -> &E) -> Self {
        Self(PhantomData)
    }
}

/// The answer of a type that says nothing.
pub trait AnyClass {
    const OWN: Own = Own::open("", &[]);

    fn look(found: &mut Found) {
        found.anything();
    }

    fn __retry_look(&self) -> fn(&mut Found) {
        Found::anything
    }
}

impl<E: ?Sized> AnyClass for Known<E> {}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<E: ClassNames + ?Sized> ClassNames for $type {
            const OWN: Own = E::OWN;
            fn more(found: &mut Found) {
                E::more(found);
            }
        }
    )*};
}

through!(&E, &mut E, Box<E>, Rc<E>, Arc<E>);

macro_rules! of_the_library {
    ($($type:ident: $($class:literal)*;)*) => {$(
        impl ClassNames for $type {
            const OWN: Own = Own::closed(stringify!($type), &[$($class),*]);
        }
    )*};
}

of_the_library! {
    Elapsed: "timeout";
    Refused: "refused";
    PolicyError: "configuration";
    StoreError: "busy" "unavailable" "unknown" "storage_full" "read_only" "corrupt" "invalid_request" "stale_lease" "conflict" "closed";
}

impl ClassNames for std::convert::Infallible {
    const OWN: Own = Own::closed("Infallible", &[]);
}

/// How deep types that ask each other are followed.
const DEPTH: u32 = 16;

/// The classes found so far.
#[derive(Debug)]
pub struct Found {
    names: Vec<&'static str>,
    anything: bool,
    depth: u32,
}

impl Found {
    pub(crate) const fn new() -> Self {
        Self { names: Vec::new(), anything: false, depth: 0 }
    }

    /// A class that nobody can tell beforehand.
    pub fn anything(&mut self) {
        self.anything = true;
    }

    /// The classes of a value inside.
    pub fn inner(&mut self, look: fn(&mut Self)) {
        if self.depth == DEPTH {
            return;
        }
        self.depth += 1;
        look(self);
        self.depth -= 1;
    }

    /// The classes that rules give, and the name of the variant, which stands where they know none.
    pub fn rules(&mut self, rules: &StatusRules, name: &'static str) {
        self.names.push(name);
        rules.classes(&mut |class| {
            if !self.names.contains(&class) {
                self.names.push(class);
            }
        });
    }

    /// All of them, in order; `None` where there may be others.
    pub(crate) fn every_class(mut self) -> Option<Vec<&'static str>> {
        self.names.sort_unstable();
        self.names.dedup();
        (!self.anything).then_some(self.names)
    }
}

/// Refuses a class that no error of the type has. `also` are the classes that the loop itself gives.
///
/// # Panics
/// While compiling: that is the message.
#[track_caller]
pub const fn class_is_known(own: &Own, class: &str, also: &[&str]) {
    if !own.closed || holds(own.names, class) || holds(also, class) {
        return;
    }
    let mut text = Text::new();
    text.push("no failure of `");
    text.push(own.ty);
    text.push("` has the class `");
    text.push(class);
    text.push("`: its classes are ");
    let mut names = own.names;
    let mut first = true;
    while let [name, rest @ ..] = names {
        text.push(if first { "`" } else { ", `" });
        text.push(name);
        text.push("`");
        (names, first) = (rest, false);
    }
    #[allow(clippy::panic)] // a compile error's text
    {
        panic!("{}", text.get())
    }
}

const fn holds(mut names: &[&str], wanted: &str) -> bool {
    while let [name, rest @ ..] = names {
        if same(name.as_bytes(), wanted.as_bytes()) {
            return true;
        }
        names = rest;
    }
    false
}

const fn same(mut left: &[u8], mut right: &[u8]) -> bool {
    while let ([one, left_rest @ ..], [two, right_rest @ ..]) = (left, right) {
        if *one != *two {
            return false;
        }
        (left, right) = (left_rest, right_rest);
    }
    left.is_empty() && right.is_empty()
}

/// A text that is made while compiling; what does not fit is left out.
struct Text {
    bytes: [u8; 1024],
    len: usize,
}

impl Text {
    const fn new() -> Self {
        Self { bytes: [0; 1024], len: 0 }
    }

    /// All of `text`, or nothing of it: characters stay whole.
    const fn push(&mut self, text: &str) {
        let (_, mut free) = self.bytes.split_at_mut(self.len);
        if free.len() < text.len() {
            return;
        }
        let mut bytes = text.as_bytes();
        while let ([slot, free_rest @ ..], [byte, rest @ ..]) = (free, bytes) {
            *slot = *byte;
            (free, bytes) = (free_rest, rest);
        }
        self.len += text.len();
    }

    const fn get(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}
