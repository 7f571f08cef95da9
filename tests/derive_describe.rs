//! The text of a failure: `Display`, else `Debug`, else none, with no bound added.

use std::fmt;

use retry_runtime::Classify;

#[derive(Classify)]
#[classify(permanent)]
struct Neither;

#[derive(Debug, Classify)]
enum OnlyDebug {
    #[classify(permanent)]
    Broken(#[allow(dead_code)] u8),
}

#[derive(Debug, Classify)]
#[classify(permanent)]
struct Both(u8);

impl fmt::Display for Both {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "both {}", self.0)
    }
}

#[derive(Debug, thiserror::Error, Classify)]
enum Thiserror {
    #[error("server said {code}")]
    #[classify(status = code)]
    Server { code: u16 },
    #[error(transparent)]
    #[classify(transparent)]
    Inner(#[from] Inner),
}

#[derive(Debug, thiserror::Error, Classify)]
#[error("inner")]
#[classify(retryable)]
struct Inner;

#[derive(Classify)]
#[classify(permanent)]
struct OnlyDisplay;

impl fmt::Display for OnlyDisplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("shown")
    }
}

#[test]
fn the_best_text_there_is() {
    assert_eq!(Neither.describe(), None);
    assert_eq!(OnlyDebug::Broken(1).describe().as_deref(), Some("Broken(1)"));
    assert_eq!(Both(1).describe().as_deref(), Some("both 1"));
    assert_eq!(OnlyDisplay.describe().as_deref(), Some("shown"));
    assert_eq!(Thiserror::Server { code: 500 }.describe().as_deref(), Some("server said 500"));
    assert_eq!(Thiserror::from(Inner).describe().as_deref(), Some("inner"));
}

#[test]
fn it_goes_through_pointers_and_trait_objects() {
    let boxed: Box<dyn Classify> = Box::new(Both(2));
    assert_eq!(boxed.describe().as_deref(), Some("both 2"));
    assert_eq!((&&Both(3)).describe().as_deref(), Some("both 3"));
}

#[derive(Debug, Classify)]
#[classify(permanent)]
struct Generic<T>(#[allow(dead_code)] T);

impl<T> fmt::Display for Generic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whatever it holds")
    }
}

#[derive(Debug, Classify)]
#[classify(permanent)]
struct Bounded<T: fmt::Display>(T);

impl<T: fmt::Display> fmt::Display for Bounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "holds {}", self.0)
    }
}

#[derive(Debug, Classify)]
#[classify(permanent)]
struct Conditional<T>(#[allow(dead_code)] T);

#[test]
fn a_generic_type_has_the_text_it_has_for_every_parameter() {
    assert_eq!(Generic(Neither).describe().as_deref(), Some("whatever it holds"));
    assert_eq!(Bounded(1).describe().as_deref(), Some("holds 1"));
    // `Debug` exists for some parameters only, which the implementation cannot know
    assert_eq!(Conditional(1).describe(), None);
}

mod hostile {
    /// Every method of every type, by every way to take `self`.
    trait Everything {
        fn describe(&self) -> u8 {
            0
        }
        fn to_string(&self) -> u8 {
            0
        }
        fn deref(&self) -> u8 {
            0
        }
    }

    impl<T: ?Sized> Everything for T {}

    #[derive(Debug, retry_runtime::Classify)]
    #[classify(permanent)]
    pub(super) struct Error;

    pub(super) fn used() -> [u8; 3] {
        [().describe(), ().to_string(), ().deref()]
    }
}

#[test]
fn other_methods_of_the_same_names_do_not_come_between() {
    assert_eq!(hostile::used(), [0; 3]);
    assert_eq!(hostile::Error.describe().as_deref(), Some("Error"));
}
