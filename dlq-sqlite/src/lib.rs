//! Dead letters in one SQLite file.
