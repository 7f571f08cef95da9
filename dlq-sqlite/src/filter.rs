//! The runtime's filter as SQL. One compiler serves lists, counts, claims and groups, so that what is shown is what is
//! acted upon.

use retry_runtime::dead_letter::{Filter, LetterState, to_millis};
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
        let plus = plus(filter);
        // Every index of lists begins with the scope; the one of ids does not.
        let scope_plus = if filter.ids.is_empty() { "" } else { "+" };
        let mut out = Self::default();
        out.and(&format!("{scope_plus}scope = ?"), [text(scope)]);
        out.one_of(&format!("{plus}kind"), &filter.kinds);
        out.one_of("class", &filter.classes);
        out.one_of(&format!("{plus}error_class"), &filter.error_classes);
        out.one_of(&format!("{plus}fingerprint"), &filter.fingerprints);
        out.one_of("model", &filter.models);
        out.one_of("id", &filter.ids);
        out.one_of("job_id", &filter.job_ids);
        if !filter.dispositions.is_empty() {
            let texts: Vec<_> = filter.dispositions.iter().map(|disposition| format!("'{disposition}'")).collect();
            out.and(&format!("disposition IN ({})", texts.join(", ")), []);
        }
        if let Some(since) = filter.since {
            out.and(&format!("{plus}last_seen >= ?"), [Value::Integer(to_millis(since))]);
        }
        if let Some(until) = filter.until {
            out.and(&format!("{plus}last_seen < ?"), [Value::Integer(to_millis(until))]);
        }
        out
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

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}
