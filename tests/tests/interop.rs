//! Key types in serde, schemars, utoipa, async-graphql, sqids, arbitrary and proptest.

#[path = "interop/graphql.rs"]
mod graphql;
#[path = "interop/short.rs"]
mod short;

use std::{collections::BTreeMap, fmt::Debug};

use arbitrary::{Arbitrary as _, Unstructured};
use data_encoding::BASE64URL_NOPAD;
use ordid::{
    Error, KeyType, Scheme,
    clock::Timestamp,
    key::CompositeKey,
    page::{Connection, Cursor, ListOrder, Page},
    scheme::UuidMask,
};
use proptest::{
    prelude::any,
    strategy::{Strategy, ValueTree},
    test_runner::{TestError, TestRunner},
};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use utoipa::{IntoParams, OpenApi, PartialSchema, ToSchema, openapi};
use uuid::Uuid;

#[derive(KeyType)]
#[ordid(prefix = "cus")]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7_unguessable, prefix = "ord")]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7_sub_millis, prefix = "")]
struct BareId(Uuid);

#[derive(KeyType)]
struct PlainId(Uuid);

#[derive(Serialize, Deserialize, JsonSchema, ToSchema, Debug, Clone, PartialEq)]
struct Order {
    id: OrderId,
    customer: Option<CustomerId>,
    lines: Vec<PlainId>,
    by_key: BTreeMap<BareId, PlainId>,
}

/// The TypeID specification's own vector, `spec/valid.json`, "valid-uuidv7".
const UUID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const SUFFIX: &str = "01h455vb4pex5vsknk084sn02q";

fn raw() -> Uuid {
    UUID.parse().expect("a UUID")
}

fn key<K: KeyType<Raw = Uuid>>() -> K {
    K::from_raw(raw()).expect("version 7")
}

fn order() -> Order {
    Order {
        id: key(),
        customer: Some(key()),
        lines: vec![key(), key()],
        by_key: BTreeMap::from([(key(), key())]),
    }
}

fn to_cbor(value: impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(&value, &mut bytes).expect("a vector takes all");
    bytes
}

fn of_cbor<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    ciborium::from_reader(bytes).map_err(|error| error.to_string())
}

fn json_error<T: DeserializeOwned + Debug>(value: Value) -> String {
    serde_json::from_value::<T>(value)
        .expect_err("not a key")
        .to_string()
}

/// With the key of the project uuidv47: see `scheme::masked`.
static MASK: UuidMask = UuidMask::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);

#[derive(KeyType)]
#[ordid(mask = MASK)]
struct MaskedId(Uuid);

#[derive(KeyType)]
#[ordid(mask = MASK, prefix = "inv")]
struct MaskedInvoiceId(Uuid);

#[test]
fn keys_with_a_mask_are_masked_in_every_format() {
    const INSIDE: &str = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    const OUTSIDE: &str = "ff86d1d8-79db-4cc3-98c4-dc0c0c07398f";
    let id = MaskedId::from_raw(INSIDE.parse().expect("a UUID")).expect("version 7");
    assert_eq!(json!(id), OUTSIDE);
    assert_eq!(
        serde_json::from_value::<MaskedId>(json!(OUTSIDE)).expect("it"),
        id
    );
    let error = json_error::<MaskedId>(json!(INSIDE));
    assert!(
        error.contains("expects a masked key") && error.contains("found an unmasked key"),
        "{error}"
    );
    let outside: Uuid = OUTSIDE.parse().expect("a UUID");
    let cbor = to_cbor(id);
    assert!(cbor.ends_with(outside.as_bytes()), "{cbor:?}");
    assert_eq!(of_cbor::<MaskedId>(&cbor), Ok(id));
    let inside: PlainId = key_of(id.to_raw());
    let error = of_cbor::<MaskedId>(&to_cbor(inside)).expect_err("not masked");
    assert!(error.contains("found an unmasked key"), "{error}");
    // As keys of a map.
    let map = BTreeMap::from([(id, 1)]);
    let text = serde_json::to_string(&map).expect("a map");
    assert_eq!(text, format!("{{\"{OUTSIDE}\":1}}"));
    assert_eq!(
        serde_json::from_str::<BTreeMap<MaskedId, i32>>(&text).expect("it"),
        map
    );

    // The schemas are those of the masked text, which looks alike.
    let schema = schema_for!(MaskedId);
    assert_eq!(schema.get("format"), Some(&json!("uuid")));
    let invoice: MaskedInvoiceId = key_of(id.to_raw());
    assert_eq!(json!(invoice), "inv_7zgv8xgyev9k1shh6w1g60eecf");
    let schema = schema_for!(MaskedInvoiceId);
    assert_eq!(
        schema.get("pattern"),
        Some(&json!("^inv_[0-7][0-9a-hjkmnp-tv-z]{25}$"))
    );
    let openapi = serde_json::to_value(MaskedInvoiceId::schema()).expect("a schema");
    assert_eq!(openapi["pattern"], "^inv_[0-7][0-9a-hjkmnp-tv-z]{25}$");
}

/// 53 bits: the most that may be numbers.
#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", time = 40, node = 1, sequence = 12), json = number)]
struct InvoiceNumber(i64);

#[test]
fn numbers_below_2_pow_53_are_json_numbers_on_request() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Invoice {
        id: InvoiceNumber,
        #[serde(flatten)]
        rest: Rest,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Rest {
        corrects: Option<InvoiceNumber>,
    }

    let number = |raw| InvoiceNumber::from_raw(raw).expect("53 bits");
    const LARGEST: i64 = (1 << 53) - 1;
    for raw in [0, 1, 1 << 40, LARGEST] {
        let text = serde_json::to_string(&number(raw)).expect("a number");
        assert_eq!(text, raw.to_string());
        assert_eq!(
            serde_json::from_str::<InvoiceNumber>(&text).expect("it"),
            number(raw)
        );
        assert_eq!(of_cbor(&to_cbor(raw)), Ok(number(raw)));
        assert_eq!(to_cbor(number(raw)), to_cbor(raw));
        // Texts of keys are texts as before.
        assert_eq!(raw.to_string().parse(), Ok(number(raw)));
        assert_eq!(number(raw).to_string(), raw.to_string());
    }
    let invoice = Invoice {
        id: number(7),
        rest: Rest {
            corrects: Some(number(LARGEST)),
        },
    };
    let text = serde_json::to_string(&invoice).expect("JSON");
    assert_eq!(text, r#"{"id":7,"corrects":9007199254740991}"#);
    assert_eq!(serde_json::from_str::<Invoice>(&text).expect("it"), invoice);
    // As keys of a map, which JSON has as text.
    let map = BTreeMap::from([(number(7), 1)]);
    let text = serde_json::to_string(&map).expect("a map");
    assert_eq!(text, r#"{"7":1}"#);
    assert_eq!(
        serde_json::from_str::<BTreeMap<InvoiceNumber, i32>>(&text).expect("it"),
        map
    );

    for wrong in ["\"7\"", "7.0", "7e0", "null", "[7]", "18446744073709551616"] {
        let error = serde_json::from_str::<InvoiceNumber>(wrong).expect_err(wrong);
        let error = error.to_string();
        assert!(
            error.contains("expected the signed integer of a `InvoiceNumber`"),
            "{wrong}: {error}"
        );
    }
    for wrong in [json!(-1), json!(LARGEST + 1), json!(i64::MAX)] {
        let error = json_error::<InvoiceNumber>(wrong);
        assert!(
            error.contains("`InvoiceNumber`")
                && error.contains("no bits above those of the layout"),
            "{error}"
        );
    }

    let of_number = json!({
        "type": "integer",
        "title": "InvoiceNumber",
        "format": "int64",
        "minimum": 0,
        "maximum": LARGEST,
    });
    let mut schema = schema_for!(InvoiceNumber);
    schema.remove("$schema");
    assert_eq!(schema.as_value(), &of_number);
    let openapi = serde_json::to_value(InvoiceNumber::schema()).expect("a schema");
    assert_eq!(openapi, of_number);
}

fn key_of<K: KeyType<Raw = Uuid>>(raw: Uuid) -> K {
    K::from_raw(raw).expect("version 7")
}

#[test]
fn json_has_the_canonical_text() {
    let json = json!({
        "id": format!("ord_{SUFFIX}"),
        "customer": format!("cus_{SUFFIX}"),
        "lines": [UUID, UUID],
        "by_key": { SUFFIX: UUID },
    });
    assert_eq!(serde_json::to_value(order()).expect("a value"), json);
    // The text of the document, where map keys have a serializer of their own.
    let text = serde_json::to_string(&order()).expect("a text");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json);
    assert_eq!(serde_json::from_str::<Order>(&text).expect("JSON"), order());
    assert_eq!(
        serde_json::from_value::<Order>(json).expect("JSON"),
        order()
    );
    assert_eq!(
        serde_json::from_str::<Option<PlainId>>("null").expect("JSON"),
        None
    );
    // Text that is not contiguous in the document, and a reader that lends nothing.
    let text = format!("\"\\u0030{}\"", &UUID[1..]);
    let read: PlainId = serde_json::from_reader(text.as_bytes()).expect("JSON");
    assert_eq!(read, key());
}

#[test]
fn json_of_anything_else_is_refused_as_from_str_does() {
    let parse = |text: &str| text.parse::<OrderId>().expect_err("not a key").to_string();
    let other = format!("cus_{SUFFIX}");
    assert_eq!(
        json_error::<OrderId>(json!(other)),
        format!("not a `OrderId`: {}", parse(&other))
    );
    assert!(json_error::<OrderId>(json!(UUID)).starts_with("not a `OrderId`: expected the prefix"));
    for text in [
        "",
        "ord_",
        UUID,
        &format!("ORD_{SUFFIX}"),
        &format!("ord_{SUFFIX} "),
    ] {
        assert!(json_error::<OrderId>(json!(text)).starts_with("not a `OrderId`: "));
    }
    // Of the form, but of another version: the error names the key type already.
    let version_4 = "01234567-89ab-4def-8123-456789abcdef";
    let found = version_4.parse::<PlainId>().expect_err("version 4");
    assert_eq!(json_error::<PlainId>(json!(version_4)), found.to_string());
    assert!(
        found
            .to_string()
            .starts_with("not a `PlainId`: scheme uuid_v7")
    );
    // Upper case is a second text for the same key.
    assert!(json_error::<PlainId>(json!(UUID.to_uppercase())).contains("not canonical"));

    assert_eq!(
        json_error::<OrderId>(json!(5)),
        "invalid type: integer `5`, expected the text of a `OrderId`"
    );
    assert!(json_error::<OrderId>(json!(null)).contains("expected the text of a `OrderId`"));
    assert!(json_error::<OrderId>(json!([1])).contains("expected the text of a `OrderId`"));
    // A megabyte of hostile text does not become a megabyte of error.
    assert!(json_error::<OrderId>(json!("x".repeat(1 << 20))).len() < 400);
}

#[test]
fn binary_formats_have_the_bytes() {
    let mut expected = vec![16];
    expected.extend(raw().as_bytes());
    let bytes = postcard::to_allocvec(&key::<OrderId>()).expect("bytes");
    assert_eq!(bytes, expected);
    assert_eq!(postcard::from_bytes(&bytes), Ok(key::<OrderId>()));
    // A byte string of CBOR: major type 2, length 16.
    expected[0] = 0x50;
    assert_eq!(to_cbor(key::<OrderId>()), expected);
    assert_eq!(of_cbor(&expected), Ok(key::<OrderId>()));

    let bytes = postcard::to_allocvec(&order()).expect("bytes");
    assert_eq!(postcard::from_bytes(&bytes), Ok(order()));
    assert_eq!(of_cbor(&to_cbor(order())), Ok(order()));
}

#[test]
fn bytes_of_anything_else_are_refused() {
    let found = |bytes: &[u8]| of_cbor::<OrderId>(bytes).expect_err("not a key");
    let short = to_cbor(ByteString(&[1, 2, 3]));
    let error = found(&short);
    assert!(
        error.contains("not a `OrderId`: expected 16 bytes, found 3: "),
        "{error}"
    );
    assert!(found(&to_cbor(ByteString(&[0; 17]))).contains("expected 16 bytes, found 17"));
    assert!(
        found(&to_cbor(ByteString(&[0; 16])))
            .contains("not a `OrderId`: scheme uuid_v7_unguessable")
    );
    // Text in a binary format is not the form that is written there.
    assert!(found(&to_cbor(format!("ord_{SUFFIX}"))).contains("expected bytes"));
    assert!(found(&to_cbor(5)).contains("expected bytes"));
    assert!(postcard::from_bytes::<OrderId>(&[16, 1, 2]).is_err());
    assert!(postcard::from_bytes::<OrderId>(&[]).is_err());
}

/// A byte string.
struct ByteString<'a>(&'a [u8]);

impl Serialize for ByteString<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// Serde's buffer behind `flatten` says that it is for people, whatever it was filled from.
#[test]
fn keys_pass_serde_s_buffer_in_every_format() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Outer {
        #[serde(flatten)]
        inner: Inner,
        choice: Choice,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Inner {
        id: OrderId,
    }
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    #[serde(untagged)]
    enum Choice {
        Order(OrderId),
        Plain(PlainId),
    }
    let outer = |choice| Outer {
        inner: Inner { id: key() },
        choice,
    };
    let json = json!({ "id": format!("ord_{SUFFIX}"), "choice": UUID });
    let plain = outer(Choice::Plain(key()));
    assert_eq!(serde_json::to_value(&plain).expect("JSON"), json);
    assert_eq!(serde_json::from_value::<Outer>(json).expect("JSON"), plain);
    let order = outer(Choice::Order(key()));
    assert_eq!(of_cbor(&to_cbor(&order)), Ok(order));
}

/// A field can change from `Uuid` to a key type without a prefix, and nothing that was written does.
#[test]
fn uuid_has_the_same_forms_by_its_own_crate() {
    let of_uuid = serde_json::to_value(raw()).expect("JSON");
    assert_eq!(
        serde_json::to_value(key::<PlainId>()).expect("JSON"),
        of_uuid
    );
    let of_uuid = postcard::to_allocvec(&raw()).expect("bytes");
    assert_eq!(postcard::to_allocvec(&key::<OrderId>()), Ok(of_uuid));
    assert_eq!(to_cbor(key::<OrderId>()), to_cbor(raw()));
}

#[test]
fn json_schemas_are_strings_named_by_the_key_type() {
    assert_eq!(
        schema_for!(PlainId).to_value(),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "PlainId",
            "type": "string",
            "format": "uuid",
        })
    );
    let suffix = "[0-7][0-9a-hjkmnp-tv-z]{25}";
    let schema = schema_for!(Order).to_value();
    assert_eq!(
        schema["$defs"],
        json!({
            "CustomerId": { "title": "CustomerId", "type": "string", "pattern": format!("^cus_{suffix}$") },
            "OrderId": { "title": "OrderId", "type": "string", "pattern": format!("^ord_{suffix}$") },
            "PlainId": { "title": "PlainId", "type": "string", "format": "uuid" },
        })
    );
    assert_eq!(
        schema["properties"]["id"],
        json!({ "$ref": "#/$defs/OrderId" })
    );
    // The keys of a map are checked too.
    assert_eq!(
        schema["properties"]["by_key"],
        json!({
            "type": "object",
            "additionalProperties": false,
            "patternProperties": { format!("^{suffix}$"): { "$ref": "#/$defs/PlainId" } },
        })
    );
}

#[test]
fn json_schemas_of_one_name_in_two_modules_stay_apart() {
    mod other {
        use ordid::KeyType;
        use uuid::Uuid;

        #[derive(KeyType)]
        #[ordid(prefix = "other")]
        pub(crate) struct OrderId(Uuid);
    }
    let schema = schema_for!((OrderId, other::OrderId)).to_value();
    let definitions = schema["$defs"].as_object().expect("definitions");
    assert_eq!(definitions.len(), 2);
    assert_ne!(OrderId::schema_id(), other::OrderId::schema_id());
}

#[test]
fn openapi_has_schemas_and_parameters_of_keys() {
    #[derive(IntoParams)]
    #[into_params(parameter_in = Path)]
    #[expect(dead_code)]
    struct Path {
        customer: CustomerId,
        plain: Option<PlainId>,
    }

    #[utoipa::path(get, path = "/orders/{id}", params(("id" = OrderId, Path)),
        responses((status = 200, body = Order)))]
    #[expect(dead_code)]
    fn one() {}

    #[utoipa::path(get, path = "/customers/{customer}", params(Path),
        responses((status = 200, body = Vec<OrderId>)))]
    #[expect(dead_code)]
    fn of_customer() {}

    #[derive(OpenApi)]
    #[openapi(paths(one, of_customer))]
    struct Api;

    let suffix = "[0-7][0-9a-hjkmnp-tv-z]{25}";
    let api = serde_json::to_value(Api::openapi()).expect("JSON");
    let schemas = &api["components"]["schemas"];
    assert_eq!(
        schemas["OrderId"],
        json!({ "type": "string", "title": "OrderId", "pattern": format!("^ord_{suffix}$") })
    );
    assert_eq!(
        schemas["PlainId"],
        json!({ "type": "string", "title": "PlainId", "format": "uuid" })
    );
    assert_eq!(
        schemas["Order"]["properties"]["id"],
        json!({ "$ref": "#/components/schemas/OrderId" })
    );
    let resolved = |path: &str, index: usize| {
        let parameter = &api["paths"][path]["get"]["parameters"][index];
        assert_eq!(parameter["in"], "path");
        parameter["schema"].clone()
    };
    assert_eq!(
        resolved("/orders/{id}", 0),
        json!({ "$ref": "#/components/schemas/OrderId" })
    );
    assert_eq!(
        resolved("/customers/{customer}", 0),
        json!({ "$ref": "#/components/schemas/CustomerId" })
    );
    assert_eq!(OrderId::name(), "OrderId");
    assert!(matches!(OrderId::schema(), openapi::RefOr::T(_)));
}

/// Without a regular expression engine: what the patterns of the two schemas say, spelled out.
#[test]
fn the_pattern_is_that_of_every_text() {
    let mut runner = TestRunner::deterministic();
    let check = |(order, bare): (OrderId, BareId)| {
        let order = order.to_string();
        for text in [
            order.strip_prefix("ord_").expect("the prefix"),
            &bare.to_string(),
        ] {
            let bytes = text.as_bytes();
            assert_eq!(bytes.len(), 26);
            assert!((b'0'..=b'7').contains(&bytes[0]));
            assert!(
                bytes[1..].iter().all(|byte| matches!(byte,
                b'0'..=b'9' | b'a'..=b'h' | b'j' | b'k' | b'm' | b'n' | b'p'..=b't' | b'v'..=b'z'))
            );
        }
        Ok(())
    };
    runner
        .run(&(any::<OrderId>(), any::<BareId>()), check)
        .expect("every text has the form");
}

#[test]
fn arbitrary_keys_are_of_the_scheme_and_differ_by_their_bits() {
    for byte in [0x00, 0x5a, 0xff] {
        let data = [byte; 40];
        let mut source = Unstructured::new(&data);
        for length in [24, 8, 0] {
            let id = OrderId::arbitrary(&mut source).expect("never refused");
            assert!(<OrderId as KeyType>::Scheme::check(&id.to_raw()));
            assert_eq!(source.len(), length);
        }
    }
    let data = *raw().as_bytes();
    assert_eq!(
        OrderId::arbitrary_take_rest(Unstructured::new(&data)),
        Ok(key())
    );
    assert_eq!(OrderId::size_hint(0), (16, Some(16)));
    let max = BareId::arbitrary_take_rest(Unstructured::new(&[0xff; 16])).expect("never refused");
    assert_eq!(
        max.to_raw().to_string(),
        "ffffffff-ffff-7fff-bfff-ffffffffffff"
    );
}

#[test]
fn proptest_s_keys_are_valid_and_shrink_to_the_least() {
    let mut runner = TestRunner::deterministic();
    let strategy = any::<OrderId>();
    for _ in 0..200 {
        let mut tree = strategy.new_tree(&mut runner).expect("never refused");
        let first = tree.current();
        assert_eq!(first.to_string().parse(), Ok(first));
        while tree.simplify() {
            assert!(tree.current() <= first);
            assert!(OrderId::from_raw(tree.current().to_raw()).is_ok());
        }
        assert_eq!(
            tree.current().to_raw().to_string(),
            "00000000-0000-7000-8000-000000000000"
        );
    }

    // The least key at or above a time, to the byte.
    let bound = 0x0189_0000_0000;
    let millis = |id: PlainId| id.timestamp().expect("a time").as_unix_millis();
    let failed = runner.run(&any::<PlainId>(), |id| {
        assert!(millis(id) < bound);
        Ok(())
    });
    let Err(TestError::Fail(_, least)) = failed else {
        panic!("most keys are above");
    };
    assert_eq!(least.to_raw().as_u64_pair().1, 1 << 63);
    assert!(millis(least) >= bound);
}

/// Compares with each crate what a time is and which are refused: the same millisecond and the one
/// before 1970, with a fraction.
#[test]
fn times_of_other_crates_are_the_same_instants() {
    use chrono::{DateTime, Utc};
    use time::OffsetDateTime;

    for nanos in [
        0_i64,
        999_999,
        1_645_557_742_123_456_789,
        253_402_200_000_000_000,
    ] {
        let millis = nanos.cast_unsigned() / 1_000_000;
        let expected = Timestamp::saturating_from_unix_millis(millis);
        let of_jiff = jiff::Timestamp::from_nanosecond(nanos.into()).unwrap();
        let of_chrono = DateTime::from_timestamp_nanos(nanos);
        let of_time = OffsetDateTime::from_unix_timestamp_nanos(nanos.into()).unwrap();
        assert_eq!(Timestamp::try_from(of_jiff), Ok(expected));
        assert_eq!(Timestamp::try_from(of_chrono), Ok(expected));
        assert_eq!(Timestamp::try_from(of_time), Ok(expected));
        let offset = time::UtcOffset::from_hms(5, 30, 0).unwrap();
        assert_eq!(Timestamp::try_from(of_time.to_offset(offset)), Ok(expected));

        let millis = millis.cast_signed();
        let back = jiff::Timestamp::try_from(expected).unwrap();
        assert_eq!(back.as_millisecond(), millis);
        assert_eq!(DateTime::<Utc>::from(expected).timestamp_millis(), millis);
        let back = OffsetDateTime::try_from(expected).unwrap();
        assert_eq!(back.unix_timestamp_nanos(), i128::from(millis) * 1_000_000);
    }
    for nanos in [-1_i64, -1_000_000_000] {
        let refused = [
            Timestamp::try_from(jiff::Timestamp::from_nanosecond(nanos.into()).unwrap()),
            Timestamp::try_from(DateTime::from_timestamp_nanos(nanos)),
            Timestamp::try_from(OffsetDateTime::from_unix_timestamp_nanos(nanos.into()).unwrap()),
        ];
        assert!(
            refused
                .iter()
                .all(|it| it.as_ref().is_err_and(Error::is_clock))
        );
    }
    // Only chrono goes on for so long, and further.
    let error = jiff::Timestamp::try_from(Timestamp::MAX).unwrap_err();
    assert!(error.is_conversion());
    assert_eq!(
        error.to_string(),
        "timestamp +10889-08-02T05:31:50.655Z does not fit jiff::Timestamp, whose last year is \
         9999"
    );
    assert!(
        OffsetDateTime::try_from(Timestamp::MAX)
            .unwrap_err()
            .is_conversion()
    );
    let last = DateTime::<Utc>::from(Timestamp::MAX);
    assert_eq!(Timestamp::try_from(last), Ok(Timestamp::MAX));
    assert!(
        Timestamp::try_from(DateTime::<Utc>::MAX_UTC)
            .unwrap_err()
            .is_clock()
    );
}

#[derive(Deserialize)]
struct Search {
    state: String,
    #[serde(flatten)]
    page: Page<OrderId>,
}

#[test]
fn pages_are_read_and_written_as_relay_has_them() {
    let id: OrderId = key();
    let cursor = Cursor::new(id).to_string();
    assert_eq!(cursor, "b3JkXzAxaDQ1NXZiNHBleDV2c2tuazA4NHNuMDJx");
    let page: Page<OrderId> = serde_json::from_value(
        json!({ "first": 10, "after": cursor, "last": null, "state": "open" }),
    )
    .expect("a page");
    assert_eq!(page, Page::first(10).after(Cursor::new(id)));
    let page: Page<OrderId> = serde_json::from_value(json!({})).expect("a page");
    assert_eq!(page, Page::ALL);
    // A number that was text in a query, behind serde's buffer.
    let search: Search =
        serde_json::from_value(json!({ "state": "open", "last": "3", "before": cursor }))
            .expect("a page");
    assert_eq!(search.page, Page::last(3).before(Cursor::new(id)));
    assert_eq!(search.state, "open");
    for wrong in [
        json!({ "first": -1 }),
        json!({ "first": "ten" }),
        json!({ "first": 4_294_967_296_u64 }),
        json!({ "after": "ord_01h455vb4pex5vsknk084sn02q" }),
        json!({ "after": Cursor::new(key::<CustomerId>()).to_string() }),
    ] {
        json_error::<Page<OrderId>>(wrong);
    }

    let slice = Page::first(1).after(Cursor::new(id));
    let slice = slice.slice(ListOrder::Ascending, 100).expect("a page");
    let rows = [json!({ "id": id }), json!({ "id": id })];
    assert_eq!(
        json!(Connection::new(&slice, rows, |_| id)),
        json!({
            "edges": [{ "cursor": cursor, "node": { "id": id } }],
            "pageInfo": {
                "hasNextPage": true,
                "hasPreviousPage": true,
                "startCursor": cursor,
                "endCursor": cursor,
            },
        })
    );
    let none = Connection::new(&slice, Vec::<Value>::new(), |_| id);
    assert_eq!(
        json!(none.page_info),
        json!({
            "hasNextPage": false,
            "hasPreviousPage": true,
            "startCursor": null,
            "endCursor": null,
        })
    );
}

/// Whoever could make cursors of changed ids would learn the time of a row from which rows are listed before it.
#[test]
fn a_cursor_of_a_masked_key_is_made_by_the_mask_alone() {
    fn assert_sealed<K: KeyType + Debug>(one: K, other: K, changed: &str) {
        let parts = |key: K| {
            let text = BASE64URL_NOPAD.decode(Cursor::new(key).to_string().as_bytes());
            let text = String::from_utf8(text.expect("base64")).expect("a text");
            let (id, seal) = text.split_once('.').expect("a seal");
            [id.to_owned(), seal.to_owned()]
        };
        let parsed = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes()).parse::<Cursor<K>>();
        let ([id, seal], [_, of_other]) = (parts(one), parts(other));
        assert_eq!(parsed(&format!("{id}.{seal}")), Ok(Cursor::new(one)));
        for wrong in [
            id.clone(),
            format!("{id}."),
            format!("{id}.{of_other}"),
            format!("{id}.{seal}0"),
            format!("{changed}.{seal}"),
            changed.to_owned(),
        ] {
            assert!(parsed(&wrong).expect_err(&wrong).is_parse());
        }
    }

    let (one, other): (MaskedId, MaskedId) = (key(), MaskedId::generate());
    // One bit of the time.
    let mut bits = *one.to_outside().as_bytes();
    bits[3] ^= 1;
    let changed = Uuid::from_bytes(bits).to_string();
    assert!(changed.parse::<MaskedId>().is_ok_and(|it| it != one));
    assert_sealed(one, other, &changed);
    let lines = [one, other].map(|id| CompositeKey((id, 1)));
    assert_sealed(lines[0], lines[1], &format!("({changed}, 1)"));
    // Nor is a part without a mask replaced, such as the tenant of a list.
    let shown = one.to_outside();
    assert_sealed(lines[0], lines[1], &format!("({shown}, 2)"));
    let tenants = [1, 2].map(|tenant: i64| CompositeKey((tenant, one)));
    assert_sealed(tenants[0], tenants[1], &format!("(2, {shown})"));
    // Nor is the cursor of a key of another type with the same mask.
    let invoice: MaskedInvoiceId = key_of(one.to_raw());
    let of_invoice = BASE64URL_NOPAD.decode(Cursor::new(invoice).to_string().as_bytes());
    let of_invoice = String::from_utf8(of_invoice.expect("base64")).expect("a text");
    let (_, seal) = of_invoice.split_once('.').expect("a seal");
    let renamed = BASE64URL_NOPAD.encode(format!("{shown}.{seal}").as_bytes());
    assert!(renamed.parse::<Cursor<MaskedId>>().is_err());
    // The cursor of a key without a mask has no hash.
    let plain = BASE64URL_NOPAD.encode(format!("{}.0123456789abcdef", raw()).as_bytes());
    assert!(plain.parse::<Cursor<Uuid>>().is_err());
}

#[test]
fn keys_of_several_columns_are_arrays_and_their_cursors_texts() {
    type Line = CompositeKey<(OrderId, i32)>;

    let line: Line = CompositeKey((key(), -3));
    let shown = json!(["ord_01h455vb4pex5vsknk084sn02q", -3]);
    assert_eq!(json!(line), shown);
    assert_eq!(serde_json::from_value::<Line>(shown).expect("a key"), line);
    for wrong in [
        json!(["ord_01h455vb4pex5vsknk084sn02q"]),
        json!(["ord_01h455vb4pex5vsknk084sn02q", -3, 1]),
        json!([-3, "ord_01h455vb4pex5vsknk084sn02q"]),
        json!([key::<CustomerId>(), -3]),
        json!("(ord_01h455vb4pex5vsknk084sn02q, -3)"),
    ] {
        json_error::<Line>(wrong);
    }

    let cursor = json!(Cursor::new(line));
    assert_eq!(cursor, "KG9yZF8wMWg0NTV2YjRwZXg1dnNrbmswODRzbjAycSwgLTMp");
    let page: Page<Line> = serde_json::from_value(json!({ "after": cursor })).expect("a page");
    assert_eq!(page, Page::ALL.after(Cursor::new(line)));
    // The mask is in the cursor, too.
    let masked: CompositeKey<(MaskedId, i32)> = CompositeKey((key(), 1));
    let text = Cursor::new(masked).to_string();
    let unmasked = Cursor::new(CompositeKey((raw(), 1))).to_string();
    assert_ne!(text, unmasked);
    assert_eq!(text.parse(), Ok(Cursor::new(masked)));
    assert!(
        unmasked
            .parse::<Cursor<CompositeKey<(MaskedId, i32)>>>()
            .is_err()
    );
    // A cursor of another key type, and one of a key with other columns.
    let customer: CompositeKey<(CustomerId, i32)> = CompositeKey((key(), -3));
    for wrong in [
        json!(Cursor::new(customer)),
        json!(Cursor::new(key::<OrderId>())),
    ] {
        json_error::<Page<Line>>(json!({ "after": wrong }));
    }
}
