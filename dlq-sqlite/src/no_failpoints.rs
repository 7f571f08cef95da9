//! What stands for the failpoints in a library without them: nothing.
#![allow(clippy::unnecessary_wraps, reason = "the signatures are those of the failpoints")]

pub(crate) const fn hit(_name: &str) -> rusqlite::Result<()> {
    Ok(())
}

pub(crate) const fn hit_io(_name: &str) -> std::io::Result<()> {
    Ok(())
}

pub(crate) const fn change(_name: &'static str) -> rusqlite::Result<()> {
    Ok(())
}

pub(crate) const fn begin() {}

pub(crate) const fn before_commit() -> rusqlite::Result<()> {
    Ok(())
}

pub(crate) const fn after_commit() -> rusqlite::Result<()> {
    Ok(())
}
