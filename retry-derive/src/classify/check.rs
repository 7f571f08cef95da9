//! From words to a model: which words fit together, what every variant decides, and which field is meant.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, GenericParam, Member, Path};

use super::model::{Answer, Asked, Case, Details, Model, krate};
use super::parse::{Item, Said, Value, attributes};
use super::slot::Slots;
use super::table::{Place, Word};
use super::tokens::snake_case;
use crate::diag::Diag;
use crate::names::{all_of, nearest};

/// The runtime's path, which a stub needs as well, and the model unless the input is beyond understanding.
pub(super) fn check<'a>(input: &'a DeriveInput, diag: &Diag) -> (Option<Path>, Option<Model<'a>>) {
    unread(input, diag);
    match &input.data {
        Data::Struct(data) => {
            let mut said = attributes(&input.attrs, Place::Struct, diag);
            let (path, _) = type_words(&mut said, diag);
            let case = case(Place::Struct, &input.ident, said, &data.fields, None, diag);
            if let Err(NoAnswer::Undecided) = case {
                diag.error(&input.ident, format!("`{}` does not say whether it may be retried", input.ident))
                    .help("add `#[classify(retryable)]`, `#[classify(permanent)]` or another decision to it");
            }
            let cases = case.ok().map(|answer| vec![Case { variant: None, answer }]);
            let model = cases.map(|cases| Model { input, krate: krate(path.as_ref()), cases });
            (path, model)
        }
        Data::Enum(data) => {
            let mut said = attributes(&input.attrs, Place::Enum, diag);
            let (path, default) = type_words(&mut said, diag);
            let mut undecided = Vec::new();
            let mut cases = Vec::new();
            for variant in &data.variants {
                let said = attributes(&variant.attrs, Place::Variant, diag);
                let found = case(Place::Variant, &variant.ident, said, &variant.fields, default, diag);
                match found {
                    Ok(answer) => cases.push(Case { variant: Some(&variant.ident), answer }),
                    Err(NoAnswer::Undecided) => undecided.push(&variant.ident),
                    Err(NoAnswer::Reported) => {}
                }
            }
            // a default that could not be read was meant for them
            if !said.broken {
                report_undecided(&input.ident, &undecided, diag);
            }
            (path.clone(), Some(Model { input, krate: krate(path.as_ref()), cases }))
        }
        Data::Union(data) => {
            diag.error(data.union_token, "`Classify` cannot be derived for a union: nobody knows which field holds")
                .help("write `impl retry_runtime::Classify` by hand, or use an enum");
            (None, None)
        }
    }
}

/// Attributes that stand where nobody would read them.
fn unread(input: &DeriveInput, diag: &Diag) {
    for parameter in &input.generics.params {
        let attributes = match parameter {
            GenericParam::Type(parameter) => &parameter.attrs,
            GenericParam::Const(parameter) => &parameter.attrs,
            GenericParam::Lifetime(parameter) => &parameter.attrs,
        };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("classify")) {
            diag.error(attribute, "`classify` means nothing on a generic parameter")
                .help("it belongs on the enum or struct, on a variant, or on a field");
        }
    }
}

/// Why a variant or a struct has no answer.
enum NoAnswer {
    /// It says nothing, and there is no default.
    Undecided,
    /// Its mistakes are reported.
    Reported,
}

/// Takes out the words that concern the type as a whole.
fn type_words(said: &mut Said, diag: &Diag) -> (Option<Path>, Option<Word>) {
    let mut slots = Slots::new(diag);
    let (of_type, of_case) = std::mem::take(&mut said.items)
        .into_iter()
        .partition(|item| matches!(item.entry.word, Word::Crate | Word::Default));
    said.items = of_case;
    slots.fill(of_type);
    let mut path = None;
    let mut default = None;
    for item in slots.into_items() {
        match item.value {
            Value::Crate(found) => path = Some(found),
            Value::Disposition(word) => default = Some(word),
            _ => {}
        }
    }
    (path, default)
}

/// One error for all variants that say nothing.
fn report_undecided(name: &Ident, undecided: &[&Ident], diag: &Diag) {
    let names: Vec<String> = undecided.iter().map(ToString::to_string).collect();
    let Some(first) = undecided.first() else { return };
    let message = match names.as_slice() {
        [only] => format!("the variant `{only}` of `{name}` does not say whether it may be retried"),
        several => format!("the variants {} of `{name}` do not say whether they may be retried", all_of(several)),
    };
    let each = if undecided.len() == 1 { "it" } else { "each" };
    diag.error(first, message)
        .help(format!("add `#[classify(retryable)]`, `#[classify(permanent)]` or another decision to {each}"))
        .help("or, for all variants that say nothing, `#[classify(default = permanent)]` to the enum");
}

/// The answer of one variant, or of the struct.
fn case<'a>(
    place: Place,
    name: &'a Ident,
    said: Said,
    fields: &'a Fields,
    default: Option<Word>,
    diag: &Diag,
) -> Result<Answer<'a>, NoAnswer> {
    let mut broken = said.broken;
    let mut slots = Slots::new(diag);
    slots.fill(said.items);
    for (index, field) in fields.iter().enumerate() {
        let said = attributes(&field.attrs, Place::Field, diag);
        broken |= said.broken;
        let member = field.ident.clone().map_or_else(|| Member::from(index), Member::Named);
        slots.fill(said.items.into_iter().map(|item| Item { value: Value::Member(member.clone()), ..item }).collect());
    }
    broken |= slots.broken();
    broken |= !one_decision(&slots, place, diag);
    broken |= !fitting_details(&slots, broken, diag);

    let about = About { place, name, fields, diag };
    let class = slots.get(Word::Class).and_then(|item| match &item.value {
        Value::Text(text) => Some(text.value()),
        _ => None,
    });
    // every field is looked up before anything is given up, so that all mistakes come out
    let inner = about.asked(slots.get(Word::Transparent));
    let status = about.asked(slots.get(Word::Status));
    let message = about.asked(slots.get(Word::Message));
    let retry_after = about.asked(slots.get(Word::RetryAfter));
    let [Ok(inner), Ok(status), Ok(message), Ok(retry_after)] = [inner, status, message, retry_after] else {
        return Err(NoAnswer::Reported);
    };
    let details = Details { retry_after, outcome_unknown: slots.get(Word::OutcomeUnknown).is_some() };
    let path = |word| match slots.get(word).map(|item| &item.value) {
        Some(Value::Path(path)) => Some(path.clone()),
        _ => None,
    };
    let snake = snake_case(&name.unraw().to_string());
    let fixed = slots.decisions().find(|item| item.entry.word.is_disposition()).map(|item| item.entry.word);

    if broken {
        Err(NoAnswer::Reported)
    } else if let Some(inner) = inner {
        Ok(Answer::Transparent(inner))
    } else if let Some(function) = path(Word::With) {
        Ok(Answer::With(function))
    } else if status.is_some() || message.is_some() {
        Ok(Answer::Rules { status, message, rules: path(Word::Rules), name: snake, class, details })
    } else if let Some(word) = fixed.or(default) {
        let class = class.unwrap_or(snake);
        Ok(Answer::Fixed { word, class, details })
    } else {
        Err(NoAnswer::Undecided)
    }
}

/// Exactly one decision: a disposition, `transparent`, `with`, or `status` and `message` together.
fn one_decision(slots: &Slots<'_>, place: Place, diag: &Diag) -> bool {
    let by_rules = |word| matches!(word, Word::Status | Word::Message);
    let mut decisions = slots.decisions();
    let Some(first) = decisions.next() else { return true };
    let (had, mut fine) = (first.entry, true);
    let mut rules_said = by_rules(had.word);
    for second in decisions {
        let has = second.entry;
        if by_rules(has.word) && std::mem::replace(&mut rules_said, true) {
            continue;
        }
        fine = false;
        let message =
            format!("`{}` and `{}` both decide; {} has exactly one decision", had.name, has.name, place.phrase());
        let reported = diag.error(&second.key, message);
        let fixed = had.word.is_disposition() || has.word.is_disposition();
        if fixed && (by_rules(had.word) || by_rules(has.word)) {
            reported.help(
                "a status or message decides by rules; for a fixed disposition with a code write \
                 `with = path`, a function that gives `Verdict::permanent(\"class\").code(..)`",
            );
        }
    }
    fine
}

/// Details need a decision they can be added to.
fn fitting_details(slots: &Slots<'_>, broken: bool, diag: &Diag) -> bool {
    let mut fine = true;
    let by = slots.decisions().find(|item| matches!(item.entry.word, Word::Transparent | Word::With));
    if let Some(by) = by {
        for word in [Word::Class, Word::RetryAfter, Word::OutcomeUnknown] {
            if let Some(item) = slots.get(word) {
                let from = if by.entry.word == Word::With { "the function's verdict" } else { "the inner error" };
                let message = format!(
                    "`{}` cannot stand beside `{}`: it comes from {from}; remove one of the two",
                    item.entry.name, by.entry.name
                );
                diag.error(&item.key, message);
                fine = false;
            }
        }
    }
    let asks = slots.get(Word::Status).is_some() || slots.get(Word::Message).is_some();
    if let (Some(rules), false, false) = (slots.get(Word::Rules), asks, broken) {
        diag.error(&rules.key, "`rules` needs something to decide by: `status = field`, `message = field` or both")
            .help("or write `#[classify(status)]` or `#[classify(message)]` on the field itself");
        fine = false;
    }
    fine
}

/// The case whose fields are looked up.
struct About<'a, 'd> {
    place: Place,
    name: &'a Ident,
    fields: &'a Fields,
    diag: &'d Diag,
}

impl<'a> About<'a, '_> {
    /// The field that a word names; an error once reported.
    fn asked(&self, item: Option<&Item>) -> Result<Option<Asked<'a>>, ()> {
        let Some(item) = item else { return Ok(None) };
        let Value::Member(wanted) = &item.value else { return self.only_field(item).map(Some) };
        let plain = |member: &Member| match member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let found = self.members().find(|(member, _)| plain(member) == plain(wanted));
        if let Some((member, ty)) = found {
            return Ok(Some(Asked { member, ty }));
        }
        let names: Vec<String> = self.members().map(|(member, _)| plain(&member)).collect();
        let there: Vec<&str> = names.iter().map(String::as_str).collect();
        let typed = plain(wanted);
        let whose = self.whose();
        let near = if typed.starts_with(|first: char| first.is_ascii_digit()) { None } else { nearest(&typed, &there) };
        let message = match (near, there.as_slice()) {
            (_, []) => format!("{whose} has no fields"),
            (Some(near), _) => format!("{whose} has no field `{typed}`; did you mean `{near}`?"),
            (None, [only]) => format!("{whose} has no field `{typed}`: its one field is `{only}`"),
            (None, several) => format!("{whose} has no field `{typed}`: it has {}", all_of(several)),
        };
        self.diag.error(wanted, message);
        Err(())
    }

    /// The field of a bare `transparent`.
    fn only_field(&self, item: &Item) -> Result<Asked<'a>, ()> {
        let mut members = self.members();
        if let (Some((member, ty)), None) = (members.next(), members.next()) {
            return Ok(Asked { member, ty });
        }
        let count = self.fields.len();
        let has = if count == 0 { "none".to_string() } else { count.to_string() };
        let message = format!("`transparent` alone needs exactly one field, and {} has {has}", self.whose());
        let reported = self.diag.error(&item.key, message);
        if count == 0 {
            reported.help("say what it is: `#[classify(retryable)]`, `#[classify(permanent)]` or another decision");
        } else {
            reported.help("name the field to ask: `transparent = field`, or write `#[classify(transparent)]` on it");
        }
        Err(())
    }

    fn members(&self) -> impl Iterator<Item = (Member, &'a syn::Type)> + use<'a> {
        self.fields
            .iter()
            .enumerate()
            .map(|(index, field)| (field.ident.clone().map_or_else(|| Member::from(index), Member::Named), &field.ty))
    }

    fn whose(&self) -> String {
        let what = if self.place == Place::Struct { "struct" } else { "variant" };
        format!("the {what} `{}`", self.name)
    }
}
