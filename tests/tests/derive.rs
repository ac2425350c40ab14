//! What `#[derive(KeyType)]` and `#[derive(OrderedKey)]` derive.

use std::{
    collections::{BTreeSet, HashSet},
    fmt::Debug,
    sync::LazyLock,
};

use ordid::{
    Fields, KeyType, OrderedKey, Scheme, Sink, StaticScheme, TypedKey,
    clock::{Clock, SystemClock},
    entity::Parent,
    entropy::ThreadEntropy,
    generator::{DefaultNode, Generator, OrderedGenerator, Policy},
    key::{
        Key192, KeyBytes, ObjectId, PushId,
        scatter::{Scatter, Scatterable, ScatteredKey},
    },
    scheme::{
        Layout, Snowflake, UuidCreateSequential, UuidMask, UuidNode, UuidV1, UuidV1Rearranged,
        UuidV4Clustered, UuidV4ClusteredCompat, UuidV6,
        masked::MaskedKey,
        node::NodeSource,
        object_id::{HostAndProcess, LegacyParts},
        snowflake::{SnowflakeGenerator, SnowflakeLayout, SnowflakeNode, Sonyflake, Twitter},
        uuid_v4_clustered::{Clustering, Clusters, Period},
    },
};
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
    #[ordid(parent = Self)]
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

fn parents<E: OrderedKey>(row: &E) -> Vec<(&'static str, KeyBytes)> {
    let mut parents = Vec::new();
    row.parents(&mut |parent, key| parents.push((E::PARENTS[parent].column(), key)));
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
fn parents_are_the_foreign_keys_that_are_set() {
    let id = CustomerId::generate();
    let mut customer = Customer {
        id,
        referred_by: None,
        name: "Ada".into(),
    };
    assert_eq!(parents(&customer), []);
    customer.referred_by = Some(id);
    assert_eq!(parents(&customer), [("referred_by", KeyBytes::of(id))]);

    let mut row = line(id);
    let customer = ("customer", KeyBytes::of(id));
    assert_eq!(parents(&row), [customer]);
    let replaced = OrderId::generate();
    row.replaces = Some(replaced);
    let replaced = ("replaces", KeyBytes::of(replaced));
    assert_eq!(parents(&row), [customer, replaced]);
    row.payer = Some(id);
    let payer = ("paid_by", KeyBytes::of(id));
    assert_eq!(parents(&row), [customer, payer, replaced]);

    let plain = Plain {
        id: Uuid::from_u128(1),
        other: Uuid::from_u128(2),
        up: Uuid::from_u128(3),
    };
    let key = KeyBytes::of::<Uuid>;
    assert_eq!(
        parents(&plain),
        [("other", key(plain.other)), ("up", key(plain.up))]
    );
    assert!(parents(&Other { id: plain.other }).is_empty());
}

#[test]
fn a_constraint_is_deferrable_where_it_is_said() {
    #[derive(OrderedKey)]
    struct Leaf {
        id: Uuid,
        #[ordid(parent = Other, deferrable)]
        other: Option<Uuid>,
        #[ordid(deferrable, parent = Leaf)]
        up: Option<Uuid>,
        #[ordid(parent)]
        customer: CustomerId,
    }

    let deferrable: Vec<_> = Leaf::PARENTS.iter().map(Parent::is_deferrable).collect();
    assert_eq!(deferrable, [true, true, false]);
    let leaf = Leaf {
        id: Uuid::nil(),
        other: None,
        up: None,
        customer: CustomerId::generate(),
    };
    assert_eq!(parents(&leaf).len(), 1);
}

#[test]
fn a_key_is_written_alone_as_its_field_is() {
    let id = OrderId::generate();
    let mut recorder = Recorder::default();
    OrderLine::write_key(id, &mut recorder);
    assert_eq!(recorder.0, [format!("Some({id:?})")]);
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

/// Keys of the process: rising, and back from their text and their raw form.
fn keys<K: KeyType<Scheme: StaticScheme> + std::str::FromStr>() -> Vec<K::Raw> {
    let mut keys: Vec<K> = (0..100).map(|_| K::generate()).collect();
    keys.extend(K::reserve(100).expect("room for so few"));
    assert!(keys.is_sorted_by(|a, b| a < b));
    for key in &keys {
        assert_eq!(key.to_string().parse::<K>().ok(), Some(*key));
        assert_eq!(K::from_raw(key.to_raw()).as_ref(), Ok(key));
    }
    keys.into_iter().map(K::to_raw).collect()
}

/// The one node of all keys of the process.
fn node<K, S>() -> u64
where
    K: KeyType<Raw = Uuid, Scheme: StaticScheme> + std::str::FromStr,
    S: Layout<Raw = Uuid>,
{
    let nodes: BTreeSet<_> = keys::<K>()
        .iter()
        .map(|raw| {
            S::inspect(raw)
                .expect("of the scheme")
                .node
                .expect("a node")
        })
        .collect();
    assert_eq!(<K::Scheme as Scheme>::NAME, S::NAME);
    assert_eq!(nodes.len(), 1);
    nodes.first().copied().expect("one")
}

#[test]
fn nodes_come_from_where_the_key_type_says() {
    const MULTICAST: u64 = 1 << 40;

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v6(node = Random))]
    struct RandomId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v6(node = Fixed<0x0100_0000_0007>), prefix = "fix")]
    struct FixedId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v1(node = Fixed<0x0100_0000_0007>))]
    struct OtherFixedId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v1_rearranged(node = DangerExact<0x9236_1f00_2671>))]
    struct ExactId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_create_sequential(node = Account))]
    struct AccountId(Uuid);

    #[derive(Debug, Clone, Copy)]
    struct Account;

    impl DefaultNode for Account {
        const DEFAULT: Self = Self;
    }

    impl NodeSource for Account {
        fn node(self) -> UuidNode {
            UuidNode::hashed(b"account 7", [17, 4])
        }
    }

    let random = node::<RandomId, UuidV6>();
    assert_eq!(random & MULTICAST, MULTICAST);
    assert_eq!(node::<FixedId, UuidV6>(), 0x0100_0000_0007);
    assert_eq!(node::<OtherFixedId, UuidV1>(), 0x0100_0000_0007);
    assert_eq!(node::<ExactId, UuidV1Rearranged>(), 0x9236_1f00_2671);
    let hashed = node::<AccountId, UuidCreateSequential>();
    assert_eq!(
        format!("{:?}", Account.node()),
        format!("UuidNode({hashed:012x})")
    );

    // A generator of one's own has the same node, without being given one.
    let generator = OrderedGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    let key: FixedId = generator.try_generate_key().expect("a key");
    let parts = UuidV6::unpack(&key.to_raw()).expect("version 6");
    assert_eq!(parts.node, [1, 0, 0, 0, 0, 7]);
}

#[test]
fn clustered_keys_share_the_prefix_of_the_period_that_is_asked_for() {
    #[derive(KeyType)]
    #[ordid(scheme = uuid_v4_clustered)]
    struct DefaultId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v4_clustered(period = Week))]
    struct WeekId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v4_clustered_compat(period = Minute))]
    struct MinuteId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v4_clustered(period = Seconds<7>))]
    struct SecondsId(Uuid);

    enum Kolkata {}

    impl Clustering for Kolkata {
        const CLUSTERS: Clusters = Clusters {
            period: Period::MINUTE,
            utc_offset_minutes: 330,
        };
    }

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v4_clustered(period = Kolkata))]
    struct KolkataId(Uuid);

    fn is_of<K, S>(clusters: Clusters)
    where
        K: KeyType<Raw = Uuid, Scheme: StaticScheme>,
        S: Layout<Raw = Uuid>,
    {
        assert_eq!(<K::Scheme as Scheme>::NAME, S::NAME);
        let before = SystemClock.now();
        let keys = [(); 20].map(|()| K::generate().to_raw());
        let prefixes = [before, SystemClock.now()].map(|time| clusters.prefix_at(time));
        for raw in &keys {
            assert!(S::check(raw));
            let prefix = u16::from_be_bytes([raw.as_bytes()[0], raw.as_bytes()[1]]);
            assert!(prefixes.contains(&prefix), "{raw} {prefixes:x?}");
        }
        let past = ordid::clock::Timestamp::from_unix_millis(1_709_251_200_000).expect("2024");
        let raw = K::generate_at(past).expect("a key").to_raw();
        assert!(
            raw.as_bytes()
                .starts_with(&clusters.prefix_at(past).to_be_bytes())
        );
    }
    let by = |period| Clusters {
        period,
        utc_offset_minutes: 0,
    };
    is_of::<DefaultId, UuidV4Clustered>(by(Period::Week));
    is_of::<WeekId, UuidV4Clustered>(by(Period::Week));
    is_of::<MinuteId, UuidV4ClusteredCompat>(by(Period::MINUTE));
    is_of::<SecondsId, UuidV4Clustered>(by(Period::Seconds(7.try_into().expect("not zero"))));
    is_of::<KolkataId, UuidV4Clustered>(Kolkata::CLUSTERS);
}

#[test]
fn snowflakes_have_the_bits_the_unit_and_the_epoch_that_are_asked_for() {
    #[derive(KeyType)]
    #[ordid(scheme = snowflake(epoch = "2026-01-01", time = 41, node = 10, sequence = 12))]
    struct MillisId(i64);

    #[derive(KeyType)]
    #[ordid(scheme = snowflake(
        epoch = 1_767_225_600_000, unit = 10, time = 0x27, node = 16, sequence = 8
    ), prefix = "ord")]
    struct TensId(i64);

    #[derive(KeyType)]
    #[ordid(scheme = snowflake(epoch = "2026-01-01"))]
    struct OwnEpochId(i64);

    #[derive(KeyType)]
    #[ordid(scheme = snowflake(layout = Sonyflake, epoch = "2026-01-01"))]
    struct SonyId(i64);

    #[derive(KeyType)]
    #[ordid(scheme = snowflake(epoch = "2026-01-01", years = 20, ids_per_second = 2))]
    struct InvoiceId(i64);

    #[derive(KeyType)]
    #[ordid(scheme = snowflake(layout = BaiduUid<1_767_225_600>))]
    struct BaiduId(i64);

    const EPOCH: i64 = 1_767_225_600_000;

    fn is<K, L>(name: &str, unit: u32, bits: [u32; 3], ends_at: i64)
    where
        L: SnowflakeLayout,
        K: KeyType<Raw = i64, Scheme = Snowflake<L>>,
    {
        assert_eq!(<K::Scheme as Scheme>::NAME, name);
        assert_eq!((L::EPOCH_UNIX_MILLIS, L::UNIT_MILLIS), (EPOCH, unit));
        assert_eq!([L::TIME_BITS, L::NODE_BITS, L::SEQUENCE_BITS], bits);
        assert_eq!(K::Scheme::ENDS_AT_UNIX_MILLIS, ends_at);
        let last = SnowflakeNode::<L>::COUNT - 1;
        let node = SnowflakeNode::new(last).expect("the last node");
        let keys = SnowflakeGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
        let [first, second] = [(); 2].map(|()| keys.try_generate_key::<K>().expect("a key"));
        assert!(first < second);
        let parts = K::Scheme::unpack(&first.to_raw()).expect("of the layout");
        assert_eq!(parts.node, last);
        let millis = EPOCH + i64::try_from(parts.time).expect("63 bits") * i64::from(unit);
        let now = i64::try_from(SystemClock.now().as_unix_millis()).expect("a time");
        assert!((now - 2_000..=now).contains(&millis), "{millis} at {now}");
    }
    let end = |bits: u32, unit: i64| EPOCH + (1 << bits) * unit;
    is::<MillisId, _>("snowflake_bits", 1, [41, 10, 12], end(41, 1));
    is::<TensId, _>("snowflake_bits", 10, [39, 16, 8], end(39, 10));
    is::<OwnEpochId, _>(Twitter::NAME, 1, [41, 10, 12], end(41, 1));
    is::<SonyId, _>(Sonyflake::NAME, 10, [39, 16, 8], end(39, 10));
    is::<BaiduId, _>("baidu_uid", 1_000, [28, 22, 13], end(28, 1_000));
    // As in `scheme::compact`: 31 bits, until 2046-01-03.
    is::<InvoiceId, _>("compact", 588, [30, 0, 1], 2_398_585_792_512);
    let error = "ord_-1".parse::<TensId>().expect_err("no key is negative");
    assert!(error.is_parse() || error.is_layout());
}

#[test]
fn object_ids_have_either_form_of_machine() {
    #[derive(KeyType)]
    #[ordid(scheme = object_id(machine = Random))]
    struct RandomId(ObjectId);

    #[derive(KeyType)]
    #[ordid(scheme = object_id(machine = HostAndProcess))]
    struct HostId(ObjectId);

    let random: HashSet<_> = keys::<RandomId>()
        .iter()
        .map(|raw| (LegacyParts::of(raw).machine, LegacyParts::of(raw).process))
        .collect();
    assert_eq!(random.len(), 1);
    let node = HostAndProcess::of("localhost", 7);
    let generator = OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let [first, second] = [(); 2].map(|()| generator.try_generate_key::<HostId>().expect("a key"));
    assert!(first < second);
    let parts = LegacyParts::of(&first.to_raw());
    assert_eq!((parts.machine, parts.process), (0x42_1aa9, 7));
}

#[test]
fn any_scheme_can_have_a_bucket_in_front() {
    /// One of each raw key, and one whose bytes do not rise.
    macro_rules! scattered {
        ($($scheme:ident $key:ident($raw:ty) = $value:expr;)+) => {
            $({
                #[derive(KeyType)]
                #[ordid(scheme = $scheme, prefix = "key", scatter(buckets = 300))]
                struct $key($raw);

                assert_eq!($key::SCATTER, Scatter::by_hash(300));
                comes_back($key::try_from($value).expect("a key"));
            })+
        };
    }
    fn comes_back<K: ScatteredKey<Raw: Scatterable + Debug>>(key: K) {
        let scattered = key.scattered();
        assert_eq!(scattered, K::SCATTER.scatter(key.to_raw()));
        assert_eq!(scattered.key(), &key.to_raw());
        assert_eq!(K::parse_scattered(&scattered.to_string()), Ok(key));
        assert_eq!(K::from_scattered_bytes(&scattered.to_bytes()), Ok(key));
        let mut wrong = scattered.to_bytes();
        wrong[1] ^= 1;
        let error = K::from_scattered_bytes(&wrong).expect_err("another bucket");
        assert!(error.is_parse(), "{error}");
    }
    scattered! {
        uuid_v7 V7(Uuid) = Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
        ulid Ulid(Uuid) = Uuid::from_u128(7);
        comb_rt_sql Comb(Uuid) = Uuid::from_u128(0x4000 << 64 | 0b10 << 62);
        object_id Object(ObjectId) = ObjectId::from_bytes([7; 12]);
        push_id Push(PushId) = PushId::from_bytes([7; 15]);
        ordered_text_32 Wide(Key192) = Key192::from_bytes([7; 24]);
        snowflake Tweet(i64) = 759_517_997_340_696_579_i64;
        uuid_short Short(u64) = u64::MAX;
    }

    #[derive(KeyType)]
    #[ordid(scatter(buckets = 16, lowest_bit = 80))]
    struct MillisId(Uuid);
    assert_eq!(MillisId::SCATTER, Scatter::by_reversed_bits(16, 80));
    let raw = Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
    let key = MillisId::try_from(raw).expect("version 7");
    // 6, the last digit of the milliseconds, is 0110 from either end.
    assert_eq!(key.scattered().to_string(), format!("06-{raw}"));
    let version_4 = Uuid::from_u128(0x4000 << 64 | 0b10 << 62);
    let other = MillisId::SCATTER.scatter(version_4).to_string();
    assert!(MillisId::parse_scattered(&other).is_err_and(|error| error.is_layout()));
}

/// What an error names a row by may be logged, and shown.
#[test]
fn errors_of_a_flush_name_the_masked_key() {
    static MASK: UuidMask = UuidMask::new(7, 11);

    #[derive(KeyType)]
    #[ordid(mask = MASK, prefix = "ord", sqlx)]
    struct MaskedId(Uuid);

    #[derive(OrderedKey, Clone)]
    struct Parcel {
        id: MaskedId,
    }

    let parcel = Parcel {
        id: MaskedId::generate(),
    };
    let mut work = ordid_sqlx::UnitOfWork::<sqlx::Sqlite>::new();
    work.add(parcel.clone());
    work.add(parcel.clone());
    let error = work.plan().unwrap_err().to_string();
    assert!(error.contains(&parcel.id.to_string()), "{error}");
    let inside = parcel.id.unmasked().to_string();
    assert!(!error.contains(&inside), "{error}");
}

/// The pair is of the project uuidv47, with its key: see `scheme::masked`.
#[test]
fn keys_of_version_7_leave_the_house_masked() {
    static MASK: LazyLock<UuidMask> =
        LazyLock::new(|| UuidMask::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210));
    static CONST: UuidMask = UuidMask::new(1, 2);

    #[derive(KeyType)]
    #[ordid(mask = MASK, prefix = "ord")]
    struct MaskedId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v7_unguessable, mask = CONST)]
    struct OtherId(Uuid);

    let raw: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
        .parse()
        .expect("a UUID");
    let id = MaskedId::try_from(raw).expect("version 7");
    assert_eq!(
        id.masked().to_string(),
        "ff86d1d8-79db-4cc3-98c4-dc0c0c07398f"
    );
    assert_eq!(MaskedId::from_masked(&id.masked()), Ok(id));

    // What is written is masked, and what is read has to be.
    let text = "ord_7zgv8xgyev9k1shh6w1g60eecf";
    assert_eq!(id.to_string(), text);
    assert_eq!(format!("{id:>31}"), format!(" {text}"));
    assert_eq!(format!("{id:?}"), format!("MaskedId({text}, masked)"));
    assert_eq!(text.parse(), Ok(id));
    let unmasked = id.unmasked().to_string();
    assert_eq!(unmasked, "ord_01fwhe4ydgfk1shh6w1g60eecf");
    assert_eq!(MaskedId::parse_unmasked(&unmasked), Ok(id));
    assert!(MaskedId::parse_unmasked(text).is_err_and(|error| error.is_layout()));
    let error = unmasked.parse::<MaskedId>().expect_err("never masked");
    assert!(error.is_layout());
    assert_eq!(
        error.to_string(),
        "not a `MaskedId`: scheme uuid_v7 expects a masked key, of version 4 and variant RFC 9562, \
         found an unmasked key, version 7 and variant RFC 9562 in \
         017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    );
    let error = MaskedId::from_masked(&Uuid::nil()).expect_err("neither");
    assert!(!error.to_string().contains("unmasked"), "{error}");
    // The key itself is inside, and orders.
    assert_eq!((id.to_raw(), Uuid::from(id)), (raw, raw));
    let rising = [(); 100].map(|()| MaskedId::generate());
    assert!(rising.is_sorted());
    assert!(!rising.map(|id| id.to_string()).is_sorted());

    let other = OtherId::generate();
    assert_eq!(OtherId::from_masked(&other.masked()), Ok(other));
    assert_ne!(
        MaskedId::from_masked(&other.masked()).map(Uuid::from),
        Ok(other.to_raw())
    );
}

/// A table that began with version 4 has typed ids, and gets new keys of version 7.
#[test]
fn keys_of_any_version_are_accepted_where_it_is_said() {
    #[derive(KeyType)]
    #[ordid(prefix = "iss", accept = any_version)]
    struct IssueId(Uuid);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v8_sql_server, accept = any_version)]
    struct GuidId(Uuid);

    #[derive(KeyType)]
    #[ordid(prefix = "iss")]
    struct StrictId(Uuid);

    for raw in [
        "919108f7-52d1-4320-9bac-f847db4148a8",
        "c232ab00-9414-11ec-b3c8-9f6bdeced846",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ] {
        let raw: Uuid = raw.parse().expect("a UUID");
        let id = IssueId::try_from(raw).expect("any version");
        assert_eq!(Uuid::from(id), raw);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().starts_with("iss_"));
        assert_eq!(id.timestamp().is_some(), raw.get_version_num() == 7);
        let json = serde_json::to_string(&id).expect("a text");
        assert_eq!(serde_json::from_str::<IssueId>(&json).expect("it"), id);
        let strict = id.to_string().parse::<StrictId>();
        assert_eq!(strict.is_ok(), raw.get_version_num() == 7);
        assert_eq!(GuidId::from_raw(raw).map(KeyType::to_raw), Ok(raw));
    }
    let new = [(); 100].map(|()| IssueId::generate());
    assert!(new.is_sorted_by(|left, right| left < right));
    assert!(new.iter().all(|id| id.to_raw().get_version_num() == 7));
    let new = [(); 100].map(|()| GuidId::generate());
    assert!(new.is_sorted_by(|left, right| left < right));
}
