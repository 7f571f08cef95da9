//! A store in the field: how large its files are, who keeps its log from being emptied, when to say so.

pub(crate) mod alarm;
pub(crate) mod disk;
pub(crate) mod health;
pub(crate) mod readers;
