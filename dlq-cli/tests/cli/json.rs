//! `--json`: every document is what docs/dlq-json.schema.json says, and every command has one.

use super::support::Bench;

use retry_runtime::ledger::{AttemptLedger as _, LedgerKey};
use serde_json::Value;

fn schema() -> Value {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dlq-json.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The part of JSON Schema that the file uses; an unknown word in it is an error.
fn check(schema: &Value, at: &Value, document: &Value, path: &str) -> Result<(), String> {
    let wrong = |why: String| Err(format!("{path}: {why}: {document}"));
    for (word, rule) in at.as_object().unwrap() {
        match word.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                check(schema, &schema["$defs"][name], document, path)?;
            }
            "type" => {
                let is = |name: &str| match name {
                    "object" => document.is_object(),
                    "array" => document.is_array(),
                    "string" => document.is_string(),
                    "integer" => document.is_u64() || document.is_i64(),
                    "boolean" => document.is_boolean(),
                    "null" => document.is_null(),
                    other => panic!("unknown type {other}"),
                };
                let fits = match rule {
                    Value::String(name) => is(name),
                    names => names.as_array().unwrap().iter().any(|name| is(name.as_str().unwrap())),
                };
                if !fits {
                    return wrong(format!("not of type {rule}"));
                }
            }
            "enum" => {
                if !rule.as_array().unwrap().contains(document) {
                    return wrong(format!("not one of {rule}"));
                }
            }
            "pattern" => {
                // One pattern is used: a time in UTC.
                assert_eq!(rule, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$");
                let shape: String = document
                    .as_str()
                    .unwrap_or_default()
                    .chars()
                    .map(|c| if c.is_ascii_digit() { '9' } else { c })
                    .collect();
                if shape != "9999-99-99T99:99:99Z" {
                    return wrong("no time".to_owned());
                }
            }
            "items" => {
                for (nth, item) in document.as_array().into_iter().flatten().enumerate() {
                    check(schema, rule, item, &format!("{path}/{nth}"))?;
                }
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    if document.get(key.as_str().unwrap()).is_none() {
                        return wrong(format!("{key} is missing"));
                    }
                }
            }
            "properties" => {
                for (key, rule) in rule.as_object().unwrap() {
                    if let Some(value) = document.get(key) {
                        check(schema, rule, value, &format!("{path}/{key}"))?;
                    }
                }
            }
            "additionalProperties" => {
                for (key, value) in document.as_object().into_iter().flatten() {
                    if at["properties"].get(key).is_none() {
                        if *rule == Value::Bool(false) {
                            return wrong(format!("`{key}` is in no description"));
                        }
                        check(schema, rule, value, &format!("{path}/{key}"))?;
                    }
                }
            }
            "anyOf" => {
                let tried: Vec<_> =
                    rule.as_array().unwrap().iter().map(|rule| check(schema, rule, document, path)).collect();
                if tried.iter().all(Result::is_err) {
                    return Err(format!("{path}: {tried:?}"));
                }
            }
            "title" | "description" | "$schema" | "$id" | "$defs" => {}
            other => panic!("unknown word `{other}` in the schema"),
        }
    }
    Ok(())
}

#[test]
fn every_document_is_what_the_schema_says() {
    let schema = schema();
    let bench = Bench::with(30);
    bench.fill(|store, bench| bench.wait(store.begin(LedgerKey::new("archive", "a"), 3)).unwrap());
    let export = bench.path("letters.ndjson").display().to_string();
    bench.script("job", "exit 1");
    bench.script("edited", "echo '{\"page\": 1}' > \"$1\"");
    let group = bench.json(&["groups"])["groups"][0]["group"].as_str().unwrap().to_owned();
    let mut seen = Vec::new();
    let mut look = |name: &str, arguments: &[&str]| {
        let document = bench.json(arguments);
        let of = &schema["$defs"][name];
        assert!(of.is_object(), "docs/dlq-json.schema.json does not know `{name}`");
        check(&schema, of, &document, name).unwrap_or_else(|wrong| panic!("dlq {}: {wrong}", arguments.join(" ")));
        assert!(document["store"].as_str().unwrap().starts_with("sqlite:/"), "{document}");
        seen.push(name.to_owned());
        document
    };
    look("status_document", &[]);
    look("summary_document", &["summary"]);
    look("list_document", &["list"]);
    look("groups_document", &["groups"]);
    look("plan_document", &["replay", "--all"]);
    look("operation_document", &["replay", "--id", "page-0", "--execute", "--exec", "true"]);
    look("operation_document", &["replay", "--id", "page-1", "--execute", "--exec", "./job"]);
    let enqueued = look("operation_document", &["replay", "--id", "page-3", "--execute", "--enqueue"]);
    let op = enqueued["operation"]["operation"].as_str().unwrap();
    look("operation_document", &["ops", "pause", op]);
    look("operation_document", &["discard", "--id", "page-2"]);
    look("operation_document", &["restore", "--id", "page-2"]);
    look("operation_document", &["discard", "--since", "0s"]);
    look("ops_document", &["ops"]);
    look("members_document", &["ops", "show", op]);
    look("show_document", &["show", "page-1"]);
    look("letter_document", &["resolve", "page-4", "--reason", "by hand"]);
    std::fs::write(bench.path("new"), "[1]").unwrap();
    look("letter_document", &["edit", "page-5", "--from", "new", "--yes"]);
    look("show_document", &["show", "page-5"]);
    look("note_document", &["note", &group, "seen"]);
    look("audit_document", &["audit"]);
    look("status_document", &[]);
    look("stats_document", &["stats"]);
    look("ledger_document", &["ledger"]);
    look("keys_document", &["ledger", "--scope", "archive"]);
    look("reset_document", &["ledger", "reset", "a", "--reason", "is back"]);
    look("check_document", &["check", "--max-parked", "1", "--max-age", "1d", "--heartbeat-age", "1d"]);
    look("doctor_document", &["doctor", "--handled", "x"]);
    look("export_document", &["export", "--out", "letters.ndjson"]);
    look("import_document", &["import", &export]);
    look("spill_document", &["import", "--spill"]);
    look("prune_document", &["prune", "--older-than", "0s", "--yes"]);
    look("erase_document", &["erase", "page-6", "--yes"]);
    look("backup_document", &["backup", "copy.db"]);
    look("salvage_document", &["salvage", "copy.db"]);
    look("migrate_document", &["migrate"]);
    let followed = bench.dlq(&["tail", "--limit", "2", "--json"]).exits(0);
    for line in followed.out.lines() {
        check(&schema, &schema["$defs"]["letter"], &serde_json::from_str(line).unwrap(), "letter").unwrap();
    }
    // No description without a command that is held against it.
    let documents = schema["$defs"].as_object().unwrap().keys().filter(|name| name.ends_with("_document"));
    let unseen: Vec<_> = documents.filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn the_check_bites() {
    let schema = schema();
    let good = Bench::with(1).json(&["list"]);
    let of = &schema["$defs"]["list_document"];
    check(&schema, of, &good, "").unwrap();
    let changed = |change: fn(&mut Value)| {
        let mut document = good.clone();
        change(&mut document);
        check(&schema, of, &document, "")
    };
    assert!(changed(|document| document["letters"][0]["status"] = "lost".into()).is_err());
    assert!(changed(|document| document["letters"][0]["last_seen"] = "yesterday".into()).is_err());
    assert!(changed(|document| document["matching"] = "1".into()).is_err());
    assert!(changed(|document| drop(document["letters"][0].as_object_mut().unwrap().remove("kind"))).is_err());
    assert!(changed(|document| document["new"] = 1.into()).is_err());
}
