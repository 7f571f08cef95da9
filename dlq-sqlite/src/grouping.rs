//! Counting by groups in a map of the groups. `GROUP BY` over columns that no index holds in order sorts every row first,
//! and sorts are made in memory: for ten groups of a million letters that would be a million rows.

use std::collections::HashMap;

use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};

/// One value for all rows that agree in their first `keys` columns: made of the first of them, told of each further one.
pub(crate) fn grouped<T>(
    mut rows: Rows<'_>,
    keys: usize,
    first: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    further: impl Fn(&mut T, &Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<Vec<T>> {
    let mut groups: HashMap<Vec<u8>, T> = HashMap::new();
    // One buffer for the keys of all rows: only a new group takes memory.
    let mut key = Vec::new();
    while let Some(row) = rows.next()? {
        key.clear();
        for column in 0..keys {
            encode(row.get_ref(column)?, &mut key);
        }
        match groups.get_mut(&key) {
            Some(group) => further(group, row)?,
            None => {
                groups.insert(key.clone(), first(row)?);
            }
        }
    }
    Ok(groups.into_values().collect())
}

/// Writes a value so that two lists of values are the same bytes only when they are the same: each says its kind, and its
/// length where that varies.
fn encode(value: ValueRef<'_>, key: &mut Vec<u8>) {
    let bytes = match value {
        ValueRef::Null => return key.push(0),
        ValueRef::Integer(n) => {
            key.push(1);
            return key.extend(n.to_ne_bytes());
        }
        ValueRef::Real(x) => {
            key.push(2);
            return key.extend(x.to_bits().to_ne_bytes());
        }
        ValueRef::Text(bytes) => {
            key.push(3);
            bytes
        }
        ValueRef::Blob(bytes) => {
            key.push(4);
            bytes
        }
    };
    key.extend(bytes.len().to_ne_bytes());
    key.extend(bytes);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests fail by panicking
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn rows_are_alike_when_all_their_keys_are() {
        let connection = Connection::open_in_memory().unwrap();
        let sql = "VALUES('a', 'bc', 1), ('ab', 'c', 1), (NULL, 'c', 1), ('', 'c', 1), (1, 'c', 1), ('1', 'c', 1),
                         (1.0, 'c', 1), (x'31', 'c', 1), ('a', 'bc', 10), (NULL, 'c', 100), (NULL, NULL, 1)";
        let mut statement = connection.prepare(sql).unwrap();
        let number = |row: &Row<'_>| row.get::<_, i64>(2);
        let add = |sum: &mut i64, row: &Row<'_>| number(row).map(|n| *sum += n);
        let mut sums = grouped(statement.query([]).unwrap(), 2, number, add).unwrap();
        sums.sort_unstable();
        assert_eq!(sums, [1, 1, 1, 1, 1, 1, 1, 11, 101]);
        // no key: all rows are one group, and no rows are none
        let all = grouped(statement.query([]).unwrap(), 0, number, add).unwrap();
        assert_eq!(all, [119]);
        let mut none = connection.prepare("SELECT 1, 2, 3 WHERE false").unwrap();
        assert!(grouped(none.query([]).unwrap(), 0, number, add).unwrap().is_empty());
    }
}
