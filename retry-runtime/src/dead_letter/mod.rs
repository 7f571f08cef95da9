//! Dead letters: what is kept of a job that was given up, and who keeps it.

mod letter;
mod sink;

pub use letter::{DeadLetter, Payload};
pub use sink::{DeadLetterSink, Parking, Ticket};
