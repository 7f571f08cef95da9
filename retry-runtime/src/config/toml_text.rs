//! What a TOML text sets.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Mistake, Place};
use super::keys::{Key, NAME_FORM, Section, canonical, is_name};
use super::near::hint;
use super::values::Written;

/// Sets what the text of a file says, over what is there.
pub(super) fn read(
    file: &str,
    text: &str,
    under: Option<&str>,
    sections: &mut BTreeMap<String, Section>,
    mistakes: &mut Vec<Mistake>,
) {
    let mut reader = Reader { file, text, sections, mistakes: Vec::new() };
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        reader.document(document.get_ref(), under);
    } else {
        // what the parser made of the rest is a guess: its values are not looked at
        for error in errors {
            let line = error.span().map(|span| reader.line(&span));
            reader.mistakes.push(Place { name: file.to_owned(), line }.mistake("", "", error.message().trim()));
        }
    }
    // tables come in the order of their names
    reader.mistakes.sort_by_key(|mistake| mistake.line);
    mistakes.append(&mut reader.mistakes);
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    sections: &'a mut BTreeMap<String, Section>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn document(&mut self, document: &DeTable<'_>, under: Option<&str>) {
        let Some(under) = under else { return self.root(document, "") };
        let ours = document.iter().find(|(key, _)| key.get_ref() == under);
        match ours.map(|(key, value)| (key, value, value.get_ref())) {
            None => {} // the other tables are somebody else's
            Some((_, _, DeValue::Table(root))) => self.root(root, &format!("{under}.")),
            Some((key, value, _)) => {
                let message = format!("a table is expected: `[{under}.policy.NAME]`");
                self.mistake(&key.span(), under, Some(value), message);
            }
        }
    }

    /// `policy`, and nothing else.
    fn root(&mut self, root: &DeTable<'_>, before: &str) {
        for (key, value) in root {
            let name = format!("{before}{}", key.get_ref());
            match value.get_ref() {
                DeValue::Table(policies) if key.get_ref() == "policy" => self.policies(policies, &name),
                _ if key.get_ref() == "policy" => {
                    let message = format!("a table is expected: `[{before}policy.NAME]`");
                    self.mistake(&key.span(), &name, Some(value), message);
                }
                _ => {
                    let near = hint(key.get_ref(), &["policy"]);
                    let message = format!("no such key{near}; policies stand in tables `[{before}policy.NAME]`");
                    self.mistake(&key.span(), &name, None, message);
                }
            }
        }
    }

    fn policies(&mut self, policies: &DeTable<'_>, before: &str) {
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        for (key, value) in policies {
            let name = format!("{before}.{}", key.get_ref());
            let DeValue::Table(policy) = value.get_ref() else {
                let message = format!("a table is expected: `[{before}.NAME]` with the keys {}", Key::all_names());
                self.mistake(&key.span(), &name, Some(value), message);
                continue;
            };
            if !is_name(key.get_ref()) {
                self.mistake(&key.span(), &name, None, NAME_FORM.to_owned());
                continue;
            }
            if let Some(other) = names.insert(canonical(key.get_ref()).into_owned(), key.get_ref()) {
                let message = format!("`{other}` is the same policy: letter case, `-` and `_` make no difference");
                self.mistake(&key.span(), &name, None, message);
                continue;
            }
            self.policy(policy, &name, &key.span(), canonical(key.get_ref()).into_owned());
        }
    }

    fn policy(&mut self, policy: &DeTable<'_>, before: &str, span: &Range<usize>, canonical: String) {
        let mut section = self.sections.remove(&canonical).unwrap_or_default();
        section.name(self.place(span));
        for (key, value) in policy {
            let name = format!("{before}.{}", key.get_ref());
            let Some(known) = Key::parse(key.get_ref()) else {
                self.mistake(&key.span(), &name, Some(value), Key::refusal(key.get_ref()));
                continue;
            };
            let written = match value.get_ref() {
                DeValue::String(text) => Written::Text(text),
                DeValue::Integer(number) => {
                    Written::Integer(i128::from_str_radix(number.as_str(), number.radix()).ok())
                }
                DeValue::Float(_) => Written::Other("a number with a fraction"),
                DeValue::Boolean(_) => Written::Other("a boolean"),
                DeValue::Datetime(_) => Written::Other("a date"),
                DeValue::Array(_) => Written::Other("an array"),
                DeValue::Table(_) => Written::Other("a table"),
            };
            if let Err(message) = section.set(known, written, self.place(&key.span())) {
                self.mistake(&key.span(), &name, Some(value), message);
            }
        }
        // also without a key: the name is known, and may be a mistake
        self.sections.insert(canonical, section);
    }

    fn mistake(&mut self, span: &Range<usize>, key: &str, value: Option<&Spanned<DeValue<'_>>>, message: String) {
        let written = value.and_then(|value| self.text.get(value.span())).unwrap_or_default();
        // a table has its header there, which is no value
        let has_header = value.is_some_and(|value| value.get_ref().is_table()) && !written.starts_with('{');
        let value = if has_header { "" } else { written };
        let mistake = self.place(span).mistake(key, value, message);
        self.mistakes.push(mistake);
    }

    fn place(&self, span: &Range<usize>) -> Place {
        Place { name: self.file.to_owned(), line: Some(self.line(span)) }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        self.text.get(..span.start).unwrap_or(self.text).matches('\n').count() + 1
    }
}
