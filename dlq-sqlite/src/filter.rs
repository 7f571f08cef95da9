//! The runtime's filter as SQL. One compiler serves lists, counts, claims and groups, so that what is shown is what is
//! acted upon.

use std::time::SystemTime;

use retry_runtime::dead_letter::{Filter, LetterState, from_millis, to_millis};
use rusqlite::types::Value;

/// A condition with its values, in the order of the question marks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

impl Condition {
    /// The letters of a scope that the filter means, whatever their state.
    pub(crate) fn of(scope: &str, filter: &Filter) -> Self {
        // Every index of lists begins with the scope; the one of ids does not.
        let scope_plus = if filter.ids.is_empty() { "" } else { "+" };
        let mut out = Self::default();
        out.and(&format!("{scope_plus}scope = ?"), [text(scope)]);
        out.all_of(filter, plus(filter));
        out
    }

    /// What is looked at letter by letter, as an expression that is 0 or 1.
    pub(crate) fn test(filter: &Filter) -> Self {
        let mut out = Self::default();
        out.all_of(filter, "");
        out.in_states(filter)
    }

    /// The expression of [`test`](Self::test), true where nothing is asked.
    pub(crate) fn as_test(&self) -> String {
        if self.sql.is_empty() { "1".to_owned() } else { format!("({}) IS TRUE", self.sql) }
    }

    fn all_of(&mut self, filter: &Filter, plus: &str) {
        self.one_of(&format!("{plus}kind"), &filter.kinds);
        self.one_of("class", &filter.classes);
        self.one_of(&format!("{plus}error_class"), &filter.error_classes);
        self.one_of(&format!("{plus}fingerprint"), &filter.fingerprints);
        self.one_of("model", &filter.models);
        self.one_of("id", &filter.ids);
        self.one_of("job_id", &filter.job_ids);
        if !filter.dispositions.is_empty() {
            let texts: Vec<_> = filter.dispositions.iter().map(|disposition| format!("'{disposition}'")).collect();
            self.and(&format!("disposition IN ({})", texts.join(", ")), []);
        }
        if let Some(since) = filter.since {
            self.and(&format!("{plus}last_seen >= ?"), [Value::Integer(millis_up(since))]);
        }
        if let Some(until) = filter.until {
            self.and(&format!("{plus}last_seen < ?"), [Value::Integer(millis_up(until))]);
        }
    }

    /// And one state.
    pub(crate) fn in_state(mut self, filter: &Filter, state: LetterState) -> Self {
        // A literal, so that the partial indexes apply.
        self.and(&format!("{}state = '{state}'", plus(filter)), []);
        self
    }

    /// And the filter's states, where it names some.
    pub(crate) fn in_states(mut self, filter: &Filter) -> Self {
        if !filter.states.is_empty() {
            let states: Vec<_> = filter.states.iter().map(|state| format!("'{state}'")).collect();
            self.and(&format!("{}state IN ({})", plus(filter), states.join(", ")), []);
        }
        self
    }

    pub(crate) fn and(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        if !self.sql.is_empty() {
            self.sql.push_str(" AND ");
        }
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    fn one_of(&mut self, column: &str, accepted: &[String]) {
        match accepted {
            [] => {}
            [one] => self.and(&format!("{column} = ?"), [text(one)]),
            // One parameter whatever the length: no limit on variables, and one statement to cache.
            many => {
                let list = serde_json::Value::from(many).to_string();
                self.and(&format!("{column} IN (SELECT value FROM json_each(?))"), [Value::Text(list)]);
            }
        }
    }
}

/// Letters that are named by id or job are few: a plus sign on the other columns keeps the planner from walking an index of
/// all the others instead.
fn plus(filter: &Filter) -> &'static str {
    if filter.ids.is_empty() && filter.job_ids.is_empty() { "" } else { "+" }
}

/// The states a filter means, each once.
pub(crate) fn states(filter: &Filter) -> Vec<LetterState> {
    LetterState::ALL.iter().copied().filter(|state| filter.states.is_empty() || filter.states.contains(state)).collect()
}

/// The filter once for each value of the one list that its [walked part](Filter::split) has: each is one place in an index.
pub(crate) fn by_value(walked: &Filter) -> Vec<Filter> {
    let lists: [fn(&mut Filter) -> &mut Vec<String>; 5] = [
        |filter| &mut filter.fingerprints,
        |filter| &mut filter.error_classes,
        |filter| &mut filter.classes,
        |filter| &mut filter.models,
        |filter| &mut filter.kinds,
    ];
    let mut walked = walked.clone();
    let Some((list, values)) =
        lists.iter().map(|list| (list, std::mem::take(list(&mut walked)))).find(|(_, values)| !values.is_empty())
    else {
        return vec![walked];
    };
    let one = |value| {
        let mut filter = walked.clone();
        *list(&mut filter) = vec![value];
        filter
    };
    values.into_iter().map(one).collect()
}

/// Rows have whole milliseconds: those at or behind `at` are those at or behind this one.
fn millis_up(at: SystemTime) -> i64 {
    let millis = to_millis(at);
    millis.saturating_add(i64::from(from_millis(millis) < at))
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}
