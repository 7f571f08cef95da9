use super::*;
use proptest::prelude::*;

fn text(text: &str) -> String {
    Redactor::standard().text(text).into_owned()
}

// D9
#[test]
fn secrets_go_in_every_form() {
    let known = [
        ("password=hunter2", "password=[redacted]"),
        ("PASSWORD: hunter2, user: bob", "PASSWORD: [redacted], user: bob"),
        ("bad login (passwd = 'hun ter2') of bob", "bad login (passwd = '[redacted]') of bob"),
        ("{\"api_key\":\"a\\\"b\",\"n\":1}", "{\"api_key\":\"[redacted]\",\"n\":1}"),
        (
            "body was \"{\\\"token\\\":\\\"abc d\\\",\\\"n\\\":1}\"",
            "body was \"{\\\"token\\\":\\\"[redacted]\\\",\\\"n\\\":1}\"",
        ),
        ("{\"secret\": {\"a\": [1, 2]}, \"n\": 1}", "{\"secret\": [redacted], \"n\": 1}"),
        ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
        ("Authorization: Bearer abc.def, status: 500", "Authorization: [redacted], status: 500"),
        ("authorization: Digest user=\"x\"\nstatus: 500", "authorization: [redacted]\nstatus: 500"),
        ("Cookie: a=1; b=2\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("sent with bearer eyJhbGciOiJI.eyJzdWIi.c2ln.", "sent with bearer [redacted]."),
        ("Basic dXNlcjpwYXNz rejected", "Basic [redacted] rejected"),
        (
            "GET https://a.b/c?access_token=xyz&page=2#top failed",
            "GET https://a.b/c?access_token=[redacted]&page=2#top failed",
        ),
        ("(https://a.b/c?key=AIzaSy)", "(https://a.b/c?key=[redacted])"),
        ("postgres://bob:hunter2@db:5432/x", "postgres://[redacted]@db:5432/x"),
        ("--password=hunter2 --verbose", "--password=[redacted] --verbose"),
        ("accessToken => abc", "accessToken => [redacted]"),
        ("config.password=hunter2", "config.password=[redacted]"),
        ("token: abc ...[77 bytes cut]... def ghi", "token: [redacted] ghi"),
        ("token: abc ...[7 bytes cut]... def ...[9 bytes cut]... ghi jkl", "token: [redacted] jkl"),
    ];
    for (before, after) in known {
        assert_eq!(text(before), after);
    }
}

// D9: as `{:?}` writes it, and what else wraps a value
#[test]
fn secrets_go_with_what_wraps_them() {
    let known = [
        ("Login { user: \"bob\", password: Some(\"hunter2\") }", "Login { user: \"bob\", password: [redacted] }"),
        ("api_key: ApiKey(\"hunter2\"), n: 1", "api_key: [redacted], n: 1"),
        ("token: Token { value: \"hun}ter2\" }, n: 1", "token: [redacted], n: 1"),
        ("secret: Secret(hunter2)", "secret: [redacted]"),
        ("secret: Some(Some(Secret(\"hun)ter2\")))", "secret: [redacted]"),
        ("password: Cow::Borrowed(\"hunter2\")", "password: [redacted]"),
        ("password: Ok(\"hunter2\"); next", "password: [redacted]; next"),
        ("authorization: Some(\"Bearer hunter2abc\"), n: 1", "authorization: [redacted], n: 1"),
        ("password: &\"hunter2\"", "password: &\"[redacted]\""),
        ("password: b\"hun ter2\"", "password: b\"[redacted]\""),
        ("password: r#\"hun\"ter2\"#", "password: r#\"[redacted]\"#"),
        ("ApiKey(\"hunter2\") was refused", "ApiKey[redacted] was refused"),
        ("Token { value: \"hunter2\" } was refused", "Token [redacted] was refused"),
        ("{'token': {'a': '}hunter2'}, 'n': 1}", "{'token': [redacted], 'n': 1}"),
        ("[(\"x-api-key\", \"hunter2\"), (\"n\", \"1\")]", "[(\"x-api-key\", \"[redacted]\"), (\"n\", \"1\")]"),
        ("(\"authorization\", Some(\"Bearer hunter2\"))", "(\"authorization\", [redacted])"),
        ("Bearer \"tok\" was refused", "Bearer \"[redacted]\" was refused"),
        ("Bearer\nabc.def12", "Bearer\n[redacted]"),
        ("password=ab&hunter2", "password=[redacted]"),
        ("a=1&password=x&b=2", "a=1&password=[redacted]&b=2"),
        ("password=ab'hunter2", "password=[redacted]"),
        ("msg='password=ab', n=1", "msg='password=[redacted]', n=1"),
        ("password='ab''hunter2'", "password='[redacted]'"),
        ("password:\n  hunter2\nhost: x", "password:\n  [redacted]\nhost: x"),
        ("token: |\n  hun\n  ter2\nhost: x", "token: |\n  [redacted]\nhost: x"),
        ("\"token\":\n\"hunter2\"", "\"token\":\n\"[redacted]\""),
        ("token: [\n\"hunter2\"]", "token: [redacted]"),
        ("body password%3Dhunter2", "body password%3D[redacted]"),
        ("<password>hun ter2</password>", "<password>[redacted]</password>"),
        ("Authorization: Digest username=\"x\", response=\"hunter2\"", "Authorization: [redacted]"),
        ("password: Some(\"hunter2", "password: [redacted]"),
    ];
    for (before, after) in known {
        assert_eq!(text(before), after);
    }
}

// D9: key names match whole
#[test]
fn ordinary_text_stays() {
    for same in [
        "",
        "tokenizer: 5",
        "passwords_checked=3",
        "the password was wrong",
        "unexpected token at line 3",
        "unexpected token: }",
        "basic authentication is required",
        "bearer token expired",
        "session 17 ended; cookie jar empty",
        "app::token::Error: not found",
        "see https://docs.rs/token?page=2 (or ask bob@example.org)",
        "the key=5 of the map",
        "secret::Error",
        "status: 500, retry-after: 7",
        "no \"password\" given",
        "password=",
        "monkey=1 primary_key: 7",
        "the fields (\"name\", \"password\", \"mail\") are missing",
        "unexpected token { at line 3",
        "password:\nLogin failed",
        "token(3) of session(17)",
    ] {
        assert!(
            matches!(Redactor::standard().text(same), Cow::Borrowed(found) if found == same),
            "{same}: {}",
            text(same)
        );
    }
}

#[test]
fn rules_are_the_user_s() {
    let redactor = Redactor::standard().key("IBAN").without_key("session").rule(|value| {
        if let Some(card) = value.get_mut("card") {
            *card = Value::Null;
        }
    });
    assert_eq!(redactor.text("iban=DE02 session=5"), "iban=[redacted] session=5");
    assert_eq!(Redactor::none().text("password=x"), "password=x");
    let payload = |json: &str| redactor.payload(&Payload::Json(json.to_owned()));
    assert_eq!(payload("{\"card\":5,\"n\":1}"), Payload::Json("{\"card\":null,\"n\":1}".to_owned()));
    // What no rule wants changed keeps its bytes.
    assert_eq!(payload("{ \"n\" : 1.50 }"), Payload::Json("{ \"n\" : 1.50 }".to_owned()));
    let panics = Redactor::none().rule(|_| std::panic::panic_any("no"));
    assert!(matches!(panics.payload(&Payload::Json("1".to_owned())), Payload::Unserializable(_)));
}

#[test]
fn json_keeps_every_other_byte() {
    let redactor = Redactor::standard();
    let before = "{ \"big\":123456789012345678901234567890, \"tok\\u0065n\" : [1,{\"a\":\"]\"}],\n \"tokens\":5,\"password\":null,\
         \"note\":\"Bearer abc123def \\u00e9\", \"Pass_Word\":7}";
    let after = "{ \"big\":123456789012345678901234567890, \"tok\\u0065n\" : \"[redacted]\",\n \"tokens\":5,\"password\":null,\
         \"note\":\"Bearer [redacted] é\", \"Pass_Word\":\"[redacted]\"}";
    assert_eq!(redactor.json(before), after);
    assert_eq!(redactor.json(after), after);
    assert_eq!(redactor.json("not json, password=x"), "not json, password=[redacted]");
}

fn any_form() -> impl Strategy<Value = String> {
    let key = proptest::sample::select(vec![
        "password",
        "api_key",
        "API-KEY",
        "apiKey",
        "token",
        "Access-Token",
        "client_secret",
        "Authorization",
        "cookie",
        "secret",
    ]);
    let form = proptest::sample::select(vec![
        "K=S",
        "K: S",
        "K = S",
        "\"K\":\"S\"",
        "'K': 'S'",
        "\\\"K\\\":\\\"S\\\"",
        "http://h/p?K=S&n=1",
        "K=\"S\"",
        "{\"K\": [\"S\"]}",
        "--K=S",
        "K => S",
        "https://u:S@host/p",
        "Bearer S",
        "basic S",
        "Authorization: Bearer S",
        "http://h/p?key=S",
        "http://h/p?a=1&K=S&n=1",
        "K: b\"S\"",
        "K: &'S'",
        "K:\n    S\n",
        "K: |\n    S\n    S",
        "(\"K\", \"S\")",
        "[\\\"K\\\", \\\"S\\\"]",
        "K=ab&~S",
        "K=ab'S",
        "K: W",
        "\"K\": W",
        "(\"K\", W)",
        "X { n: 1, K: W }",
    ]);
    (key, form, any_wrapper())
        .prop_map(|(key, form, wrapper)| form.replace('S', "§").replace('W', &wrapper).replace('K', key))
}

/// A value as `{:?}` writes it, in so many types.
fn any_wrapper() -> impl Strategy<Value = String> {
    let wrappers = proptest::sample::select(vec![
        "Some(W)",
        "Ok(W)",
        "Cow::Borrowed(W)",
        "Pass(W)",
        "Value { inner: W }",
        "Value { n: 5, inner: W, m: \"x\" }",
        "[W]",
        "{\"a\": W}",
        "(1, W)",
        "&W",
        "Some(\n    W,\n)",
    ]);
    let inmost = proptest::sample::select(vec!["\"§\"", "\"a b) §\"", "\"a\\\" } §\"", "b\"§\""]);
    (proptest::collection::vec(wrappers, 0..4), inmost).prop_map(|(wrappers, inmost)| {
        wrappers.iter().fold("W".to_owned(), |whole, wrapper| whole.replace('W', wrapper)).replace('W', inmost)
    })
}

proptest! {
    // D9: never the secret, wherever it stands.
    #[test]
    fn no_secret_is_left(before in "[ -~é\n]{0,40}", form in any_form(), after in "[ -~é\n]{0,40}", secret in "[a-z][A-Z][0-9][A-Za-z0-9+/=._~-]{5,30}[a-z]") {
        let whole = format!("{before} {} {after}", form.replace('§', &secret));
        prop_assume!(!before.contains(&secret) && !after.contains(&secret));
        let clean = text(&whole);
        prop_assert!(!clean.contains(&secret), "{whole}\n{clean}");
    }

    // D9: any text at all, also one that looks like much.
    #[test]
    fn twice_is_the_same_as_once(parts in proptest::collection::vec(prop_oneof![
        any::<String>(), any_form(), "[\\[\\]{}:='\"\\\\ &@/?.,]{0,6}", Just("password".to_owned()), Just("://".to_owned()),
        Just("cookie: ".to_owned()), Just("Bearer ".to_owned()), Just(REDACTED.to_owned()), Just("Authorization: ".to_owned()),
        Just(" ...[7 bytes cut]... ".to_owned()),
    ], 0..8)) {
        let whole = parts.concat();
        let once = text(&whole);
        prop_assert_eq!(text(&once), once.clone(), "{}", whole);
    }

    // D9: JSON stays JSON, and the same but for secrets.
    #[test]
    fn json_stays_json(note in any::<String>(), secret in "[a-z0-9]{12}", n in any::<i64>()) {
        let before = serde_json::json!({ "note": note.clone(), "n": n, "list": [{ "token": secret.clone() }, n] });
        let redactor = Redactor::standard();
        let clean = redactor.json(&before.to_string()).into_owned();
        let value: Value = serde_json::from_str(&clean).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&value["n"], &before["n"]);
        prop_assert_eq!(value["note"].as_str(), Some(&*redactor.text(&note)));
        prop_assert_eq!(&value["list"][0]["token"], &Value::from(REDACTED));
        prop_assert_eq!(redactor.json(&clean), clean.clone());
    }
}

// D9: linear: a text made to be slow is not.
#[test]
fn a_megabyte_of_anything_is_quick() {
    for part in [
        "password ",
        "password:",
        "token=\\\"",
        "://a@",
        "cookie: [",
        "Bearer ",
        "key=",
        "\"password\":{",
        "\\\\\\",
        "a",
    ] {
        let long = part.repeat((1 << 20) / part.len());
        let start = std::time::Instant::now();
        let _text = text(&long);
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{part}: {:?}", start.elapsed());
    }
}
