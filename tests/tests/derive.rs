//! What `#[derive(KeyType)]` and `#[derive(OrderedKey)]` derive.

use std::{
    collections::{BTreeSet, HashSet},
    fmt::Debug,
};

use ordid::{Fields, KeyType, OrderedKey, Sink, TypedKey, entity::Parent};
use uuid::Uuid;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "cus")]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(prefix = "ord")]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(prefix = "prefix")]
struct VectorId(Uuid);

#[derive(KeyType)]
#[ordid(prefix = "")]
struct BareId(Uuid);

#[derive(KeyType)]
struct PlainId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "customers", schema = "shop")]
struct Customer {
    id: CustomerId,
    #[ordid(parent)]
    referred_by: Option<CustomerId>,
    name: String,
}

#[derive(OrderedKey)]
struct OrderLine {
    #[ordid(key)]
    number: Option<OrderId>,
    #[ordid(parent)]
    customer: CustomerId,
    #[ordid(parent = Customer, column = "paid_by")]
    payer: Option<CustomerId>,
    #[ordid(references = Self)]
    replaces: Option<OrderId>,
    #[ordid(skip)]
    cache: Vec<u8>,
    total_cents: i64,
    r#type: &'static str,
}

/// All keys are of one type, so that parents have to be named.
#[derive(OrderedKey)]
struct Plain {
    id: Uuid,
    #[ordid(parent = Other)]
    other: Uuid,
    #[ordid(parent = Plain)]
    up: Uuid,
}

#[derive(OrderedKey)]
struct Other {
    id: Uuid,
}

/// Writes down what it is given.
#[derive(Default)]
struct Recorder(Vec<String>);

impl<T: Debug + ?Sized> Sink<T> for Recorder {
    fn put(&mut self, value: &T) {
        self.0.push(format!("{value:?}"));
    }
}

fn recorded(row: &impl Fields<Recorder>) -> Vec<String> {
    let mut recorder = Recorder::default();
    row.write(&mut recorder);
    recorder.0
}

fn line(customer: CustomerId) -> OrderLine {
    OrderLine {
        number: None,
        customer,
        payer: None,
        replaces: None,
        cache: vec![1],
        total_cents: 1250,
        r#type: "book",
    }
}

fn self_parents<E: OrderedKey>(row: &E) -> Vec<ordid::KeyOf<E>> {
    let mut parents = Vec::new();
    row.self_parents(&mut |parent| parents.push(parent));
    parents
}

#[test]
fn names_are_those_written_or_those_of_the_rust_items() {
    assert_eq!(Customer::SCHEMA, Some("shop"));
    assert_eq!(Customer::TABLE, "customers");
    assert_eq!(Customer::KEY_COLUMN, "id");
    assert_eq!(Customer::COLUMNS, ["id", "referred_by", "name"]);
    assert_eq!(OrderLine::SCHEMA, None);
    assert_eq!(OrderLine::TABLE, "order_line");
    assert_eq!(OrderLine::KEY_COLUMN, "number");
    assert_eq!(
        OrderLine::COLUMNS,
        [
            "number",
            "customer",
            "paid_by",
            "replaces",
            "total_cents",
            "type"
        ]
    );
}

#[test]
fn cases_and_names_of_sqlx_hold_unless_ordid_s_say_otherwise() {
    #[derive(OrderedKey, sqlx::FromRow)]
    #[sqlx(rename_all = "camelCase")]
    #[expect(dead_code)]
    struct Beside {
        id: Uuid,
        unit_price: i64,
        #[sqlx(rename = "vat")]
        vat_rate: i64,
        #[sqlx(rename = "read_as")]
        #[ordid(column = "written_as")]
        both: i64,
        #[sqlx(skip)]
        cache: i64,
    }
    assert_eq!(Beside::COLUMNS, ["id", "unitPrice", "vat", "written_as"]);

    #[derive(OrderedKey)]
    #[ordid(rename_all = "SCREAMING_SNAKE_CASE")]
    struct Shouted {
        id: Uuid,
        unit_price: i64,
        #[ordid(column = "quiet")]
        loud: i64,
    }
    assert_eq!(Shouted::COLUMNS, ["ID", "UNIT_PRICE", "quiet"]);
    assert_eq!(Shouted::KEY_COLUMN, "ID");
    let row = Shouted {
        id: Uuid::nil(),
        unit_price: 1,
        loud: 2,
    };
    assert_eq!((row.unit_price, row.loud), (1, 2));
}

#[test]
fn a_key_is_assigned_once() {
    let customer = CustomerId::generate();
    let mut row = line(customer);
    assert_eq!(row.key(), None);
    let key = row.ensure_key();
    assert_eq!(row.key(), Some(key));
    assert_eq!(row.number, Some(key));
    assert_eq!(row.ensure_key(), key);

    let other = OrderId::generate();
    row.assign_key(other);
    assert_eq!(row.key(), Some(other));

    let mut row = Customer {
        id: customer,
        referred_by: None,
        name: "Ada".into(),
    };
    assert_eq!(row.ensure_key(), customer);
    let other = CustomerId::generate();
    row.assign_key(other);
    assert_eq!((row.key(), row.id), (Some(other), other));
}

#[test]
fn parents_are_listed_with_their_columns() {
    assert_eq!(
        format!("{:?}", OrderLine::PARENTS),
        "[Parent { column: \"customer\", target: \"CustomerId\" }, \
         Parent { column: \"paid_by\", target: \"derive::Customer\" }, \
         Parent { column: \"replaces\", target: \"derive::OrderLine\" }]"
    );
    let nullable: Vec<_> = OrderLine::PARENTS.iter().map(Parent::is_nullable).collect();
    assert_eq!(nullable, [false, true, true]);
    assert_eq!(Other::PARENTS.len(), 0);
}

#[test]
fn self_parents_are_the_keys_of_rows_of_the_same_table() {
    let id = CustomerId::generate();
    let mut customer = Customer {
        id,
        referred_by: None,
        name: "Ada".into(),
    };
    assert_eq!(self_parents(&customer), []);
    customer.referred_by = Some(id);
    assert_eq!(self_parents(&customer), [id]);

    let mut row = line(id);
    row.payer = Some(id);
    assert_eq!(self_parents(&row), []);
    let replaced = OrderId::generate();
    row.replaces = Some(replaced);
    assert_eq!(self_parents(&row), [replaced]);

    // The keys of both parents are of the entity's own key type; one is of its table.
    let plain = Plain {
        id: Uuid::from_u128(1),
        other: Uuid::from_u128(2),
        up: Uuid::from_u128(3),
    };
    assert_eq!(self_parents(&plain), [plain.up]);
    assert!(self_parents(&Other { id: plain.other }).is_empty());
}

#[test]
fn fields_come_in_the_order_of_the_columns() {
    let customer = CustomerId::generate();
    let mut row = line(customer);
    assert_eq!(
        recorded(&row),
        [
            "None",
            &format!("{customer:?}"),
            "None",
            "None",
            "1250",
            "\"book\""
        ]
    );
    let key = row.ensure_key();
    row.payer = Some(customer);
    let found = recorded(&row);
    assert_eq!(found.len(), OrderLine::COLUMNS.len());
    assert_eq!(found[0], format!("Some({key:?})"));
    assert_eq!(found[2], format!("Some({customer:?})"));
    assert_eq!(row.cache, [1]);
}

#[test]
fn entities_of_different_sinks_need_only_their_fields_types() {
    struct Uuids(usize);
    impl Sink<Uuid> for Uuids {
        fn put(&mut self, _: &Uuid) {
            self.0 += 1;
        }
    }
    let mut sink = Uuids(0);
    Plain {
        id: Uuid::nil(),
        other: Uuid::nil(),
        up: Uuid::nil(),
    }
    .write(&mut sink);
    assert_eq!(sink.0, 3);
    let name = Customer {
        id: CustomerId::generate(),
        referred_by: None,
        name: "Ada".into(),
    }
    .name;
    assert_eq!(name, "Ada");
}

#[test]
fn key_types_compare_and_hash_as_their_raw_keys() {
    let mut keys = [OrderId::from_generated(ordid::key::StaticScheme::generate()); 100];
    OrderId::fill(&mut keys);
    assert!(keys.is_sorted_by(|a, b| a < b));
    let raw: Vec<Uuid> = keys.iter().map(|key| key.to_raw()).collect();
    assert!(raw.is_sorted());
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    assert_eq!(
        keys.into_iter().rev().collect::<BTreeSet<_>>().first(),
        Some(&keys[0])
    );
    let copy = keys[0];
    #[expect(clippy::clone_on_copy)]
    let clone = copy.clone();
    assert_eq!(copy, clone);
    assert_ne!(keys[0], keys[1]);
    assert_eq!(size_of::<Option<OrderId>>(), size_of::<Option<Uuid>>());
}

#[test]
fn a_key_type_knows_its_name_and_prefix() {
    fn is_typed<K: TypedKey>() {}
    is_typed::<OrderId>();
    assert_eq!((OrderId::NAME, OrderId::PREFIX), ("OrderId", Some("ord")));
    assert_eq!((PlainId::NAME, PlainId::PREFIX), ("PlainId", None));
    assert_eq!(BareId::PREFIX, Some(""));
}

#[test]
fn text_is_that_of_typeid() {
    // The TypeID specification's own vector, `spec/valid.json`, "valid-uuidv7".
    let raw: Uuid = "01890a5d-ac96-774b-bcce-b302099a8057"
        .parse()
        .expect("a UUID");
    let text = "prefix_01h455vb4pex5vsknk084sn02q";
    let key = VectorId::try_from(raw).expect("version 7");
    assert_eq!(key.to_string(), text);
    assert_eq!(format!("{key:?}"), format!("VectorId({text})"));
    assert_eq!(format!("{key:>40}"), format!("{text:>40}"));
    let parsed: VectorId = text.parse().expect("canonical text");
    assert_eq!(parsed, key);
    assert_eq!(Uuid::from(parsed), raw);

    let bare = BareId::from_raw(raw).expect("version 7");
    assert_eq!(bare.to_string(), "01h455vb4pex5vsknk084sn02q");
    let plain = PlainId::from_raw(raw).expect("version 7");
    assert_eq!(plain.to_string(), raw.to_string());
    assert_eq!(format!("{plain:?}"), format!("PlainId({raw})"));
}

#[test]
fn text_of_another_key_type_is_refused() {
    let text = CustomerId::generate().to_string();
    let error = text.parse::<OrderId>().expect_err("a customer is no order");
    assert!(error.is_parse());
    let message = error.to_string();
    assert!(
        message.contains("\"ord\"") && message.contains("\"cus\""),
        "{message}"
    );
    assert!(
        text.parse::<PlainId>()
            .expect_err("no prefix here")
            .is_parse()
    );
    let plain = PlainId::generate().to_string();
    assert!(
        plain
            .parse::<OrderId>()
            .expect_err("a prefix here")
            .is_parse()
    );
}

#[test]
fn text_round_trips() {
    for _ in 0..100 {
        let (order, plain, bare) = (OrderId::generate(), PlainId::generate(), BareId::generate());
        assert_eq!(order.to_string().parse(), Ok(order));
        assert_eq!(plain.to_string().parse(), Ok(plain));
        assert_eq!(bare.to_string().parse(), Ok(bare));
    }
}

#[test]
fn a_value_of_another_version_is_refused() {
    let raw = Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
    let error = OrderId::try_from(raw).expect_err("version 4");
    assert!(error.is_layout());
    assert_eq!(
        error.to_string(),
        "not a `OrderId`: scheme uuid_v7 expects version 7 and variant RFC 9562, found version 4 \
         and variant RFC 9562 in 01234567-89ab-4def-8123-456789abcdef"
    );
    let text = raw.to_string();
    assert!(text.parse::<PlainId>().expect_err("version 4").is_layout());
    assert!(OrderId::try_from(Uuid::nil()).is_err());
    assert!(OrderId::try_from(Uuid::max()).is_err());
}
