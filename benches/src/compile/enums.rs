//! The same enum of ten variants by everybody who derives something on it.

use std::fmt::Write as _;

/// Who derives what.
#[derive(Clone, Copy)]
pub(super) struct Deriver {
    pub(super) name: &'static str,
    pub(super) dependencies: &'static str,
    derive: &'static str,
    /// What stands before each variant, in their order.
    attributes: [&'static str; 10],
}

const VARIANTS: [&str; 10] = [
    "Busy",
    "Closed",
    "Late",
    "Denied",
    "Missing",
    "Status(u16)",
    "Named(String)",
    "Place { line: u32, column: u32 }",
    "Read(std::io::Error)",
    "Number(std::num::ParseIntError)",
];

pub(super) const DERIVERS: [Deriver; 3] = [
    Deriver { name: "plain", dependencies: "", derive: "Debug", attributes: [""; 10] },
    Deriver {
        name: "thiserror",
        dependencies: super::project::THISERROR,
        derive: "Debug, thiserror::Error",
        attributes: [
            "#[error(\"busy\")]",
            "#[error(\"closed\")]",
            "#[error(\"too late\")]",
            "#[error(\"denied\")]",
            "#[error(\"not there\")]",
            "#[error(\"status {0}\")]",
            "#[error(\"{0} is a name\")]",
            "#[error(\"at {line}:{column}\")]",
            "#[error(transparent)]",
            "#[error(\"no number\")]",
        ],
    },
    Deriver {
        name: "ours",
        dependencies: super::project::OURS,
        derive: "Debug, retry_runtime::Classify",
        attributes: [
            "#[classify(retryable)]",
            "#[classify(retryable)]",
            "#[classify(retryable, class = \"late\")]",
            "#[classify(permanent)]",
            "#[classify(gone)]",
            "#[classify(permanent)]",
            "#[classify(permanent)]",
            "#[classify(permanent)]",
            "#[classify(transparent)]",
            "#[classify(permanent)]",
        ],
    },
];

impl Deriver {
    /// A library of `count` such enums, the last of which changes with `edit`, and not its length.
    pub(super) fn enums(&self, count: u32, edit: u32) -> String {
        let mut source = String::new();
        for number in 0..count {
            let edited = if number + 1 == count { edit % 10 } else { 0 };
            write!(source, "\n#[derive({})]\npub enum E{number} {{\n", self.derive).unwrap();
            for (attribute, variant) in self.attributes.iter().zip(VARIANTS) {
                let variant = variant.replace("Busy", &format!("Busy{edited}"));
                write!(source, "    {attribute}\n    {variant},\n").unwrap();
            }
            source += "}\n";
        }
        source
    }
}
