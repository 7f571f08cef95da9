//! What generated code names. No part of the public interface: anything here may change in any release, which is why the
//! macros are pinned to the runtime's exact version.

pub mod classify;

// generated code must not depend on what these names mean where it stands
pub use core::option::Option;
pub use std::string::String;
