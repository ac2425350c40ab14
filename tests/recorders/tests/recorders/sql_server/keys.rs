//! Key types as parameters and in rows of tiberius: exact bytes of every column, and what is said of
//! other forms.

use super::entities::{OrderId, TreeId, connect, recorded};
use ordid::{
    KeyType, OrderedKey,
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::{OrderedGenerator, Policy},
    key::{Key192, ObjectId},
    scheme::snowflake::SnowflakeNode,
    uuid::Uuid,
};
use ordid_core::layout::guid;
use ordid_recorders::tds::{Answer, BABELFISH, Column, Recorder, Type};
use ordid_tiberius::{Nullable, Stored, UnitOfWork, column};
use tiberius::ToSql;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tiberius(sql_server = binary16, babelfish = binary16))]
struct BinaryId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = object_id, tiberius)]
struct DocumentId(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, tiberius)]
struct WideId(Key192);

#[derive(KeyType)]
#[ordid(scheme = instagram, tiberius)]
struct PhotoId(i64);

const V7: Uuid = Uuid::from_u128(0x0190_0000_1234_7abc_8def_0123_4567_89ab);

#[tokio::test]
async fn parameters_are_the_columns_bytes() {
    let (recorder, mut client) = recorded().await;
    let order = OrderId::from_raw(V7).unwrap();
    let binary = BinaryId::from_raw(V7).unwrap();
    let stored =
        Stored::<TreeId, column::BabelfishUniqueIdentifier>::new(TreeId::from_raw(V7).unwrap());
    client
        .execute(
            "x",
            &[
                &order,
                &binary,
                &stored,
                &Nullable(Some(order)),
                &Nullable(None::<OrderId>),
                &Nullable(None::<BinaryId>),
            ],
        )
        .await
        .unwrap();
    let log = recorder.take();
    let arguments = log[0].request.arguments();
    // SQL Server compares the wire's bytes 10 to 15, 8, 9, 6, 7, 4, 5, 0 to 3: there the key's bytes
    // stand, from its first to its last.
    let permuted = *b"\x45\x67\x89\xab\x01\x23\x8d\xef\x7a\xbc\x01\x90\x00\x00\x12\x34";
    assert_eq!(
        permuted,
        guid::swap(&guid::from_sql_server_sort_key(V7.as_bytes()))
    );
    assert_eq!(arguments[0].raw, [&[0x24, 16, 16], &permuted[..]].concat());
    // Bytes as they are.
    assert_eq!(
        arguments[1].raw,
        [&[0xa5, 0x40, 0x1f, 16, 0], &V7.as_bytes()[..]].concat()
    );
    // The value, in the wire's order.
    let wire = *b"\x00\x00\x90\x01\x34\x12\xbc\x7a\x8d\xef\x01\x23\x45\x67\x89\xab";
    assert_eq!(arguments[2].raw, [&[0x24, 16, 16], &wire[..]].concat());
    assert_eq!(arguments[3].raw, arguments[0].raw);
    assert_eq!(arguments[4].raw, [0x24, 16, 0]);
    assert_eq!(arguments[5].value, None);
    assert_eq!(
        log[0].request.declaration().as_deref(),
        Some(
            "@P1 uniqueidentifier,@P2 varbinary(8000),@P3 uniqueidentifier,@P4 uniqueidentifier,\
             @P5 uniqueidentifier,@P6 varbinary(max)"
        )
    );
}

#[tokio::test]
async fn rows_give_the_keys_back() {
    let (recorder, mut client) = recorded().await;
    let columns = [
        Column::new("guid", Type::uniqueidentifier()),
        Column::new("bytes", Type::binary(16)),
        Column::new("short", Type::binary(12)),
        Column::new("number", Type::int(8)),
        Column::new("text", Type::nvarchar(40)),
    ];
    let permuted = guid::swap(&guid::from_sql_server_sort_key(V7.as_bytes()));
    let rows = [
        vec![
            Some(permuted.to_vec()),
            Some(V7.as_bytes().to_vec()),
            Some((1..=12).collect()),
            Some(77_i64.to_le_bytes().to_vec()),
            Some(b"a\0".to_vec()),
        ],
        vec![None; 5],
    ];
    recorder.once("SELECT", Answer::rows(columns, rows));
    let rows = client
        .query("SELECT", &[])
        .await
        .unwrap()
        .into_first_result()
        .await
        .unwrap();
    assert_eq!(
        rows[0].get::<OrderId, _>("guid"),
        Some(OrderId::from_raw(V7).unwrap())
    );
    assert_eq!(
        rows[0].get::<BinaryId, _>("bytes"),
        Some(BinaryId::from_raw(V7).unwrap())
    );
    let document = DocumentId::from_raw(ObjectId::from_bytes([
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
    ]));
    assert_eq!(rows[0].get::<DocumentId, _>("short"), document.ok());
    assert_eq!(
        rows[0].get::<PhotoId, _>("number"),
        PhotoId::from_raw(77).ok()
    );
    assert_eq!(rows[1].get::<OrderId, _>("guid"), None);
    assert_eq!(rows[1].get::<BinaryId, _>("bytes"), None);
    assert_eq!(rows[1].get::<PhotoId, _>("number"), None);

    type Plain = Stored<TreeId, column::Unordered<column::UniqueIdentifier>>;
    let told = |error: tiberius::error::Error| error.to_string();
    // Read as it is, the permuted value is no version 7.
    let error = told(rows[0].try_get::<Plain, _>("guid").unwrap_err());
    assert!(error.contains("version"), "{error}");
    assert_eq!(
        told(rows[0].try_get::<OrderId, _>("bytes").unwrap_err()),
        "Conversion error: a `unique_identifier_permuted` column holds uniqueidentifier, found binary; \
         declare `binary16`, or that of its length"
    );
    assert_eq!(
        told(rows[0].try_get::<BinaryId, _>("guid").unwrap_err()),
        "Conversion error: a `binary16` column holds binary, found uniqueidentifier; declare \
         `unique_identifier`, or how it is stored there"
    );
    assert_eq!(
        told(rows[0].try_get::<OrderId, _>("text").unwrap_err()),
        "Conversion error: a `unique_identifier_permuted` column holds uniqueidentifier, found text, \
         which is no form of keys on SQL Server"
    );
    assert_eq!(
        told(rows[0].try_get::<OrderId, _>("number").unwrap_err()),
        "Conversion error: a `unique_identifier_permuted` column holds uniqueidentifier, found bigint; \
         declare `bigint`"
    );
    let error = told(rows[0].try_get::<BinaryId, _>("short").unwrap_err());
    assert!(
        error.starts_with("Conversion error: a `binary16` column holds 16 bytes, found 12"),
        "{error}"
    );
}

#[test]
fn a_bare_tiberius_is_the_raw_keys_own_column() {
    let document = DocumentId::generate();
    let tiberius::ColumnData::Binary(Some(bytes)) = document.to_sql() else {
        panic!("{:?}", document.to_sql())
    };
    assert_eq!(*bytes, document.to_raw().to_bytes());
    let wide = WideId::generate();
    let tiberius::ColumnData::Binary(Some(bytes)) = wide.to_sql() else {
        panic!("{:?}", wide.to_sql())
    };
    assert_eq!(bytes.len(), 24);
    let photo = PhotoId::from_raw(77).unwrap();
    assert_eq!(photo.to_sql(), tiberius::ColumnData::I64(Some(77)));
}

#[derive(KeyType)]
#[ordid(scheme = snowflake, tiberius(sql_server = bigint, babelfish = unordered(bigint)))]
struct EventId(i64);

#[derive(OrderedKey)]
#[ordid(table = "events")]
struct Event {
    #[ordid(key)]
    id: Option<EventId>,
}

#[tokio::test]
async fn keys_of_a_node_come_from_a_generator_and_go_into_a_bigint() {
    let node = SnowflakeNode::new(7).unwrap();
    let generator = OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let generator: &'static _ = Box::leak(Box::new(generator));
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    assert!(work.try_add(Event { id: None }).unwrap_err().is_plan());
    let mut work = work.with_generator::<EventId>(generator);
    let first = work.try_add(Event { id: None }).unwrap();
    let second = work.add_with(generator, Event { id: None }).unwrap();
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    let sent = log[2].request.arguments().iter().map(|it| it.raw.clone());
    let raw = |key: EventId| [&[0x26, 8, 8], &key.to_raw().to_le_bytes()[..]].concat();
    assert_eq!(sent.collect::<Vec<_>>(), [raw(first), raw(second)]);

    // The flavours part only in what they are told of the column.
    let recorder = Recorder::start_as(BABELFISH).unwrap();
    let mut client = connect(&recorder).await;
    let mut work = UnitOfWork::for_babelfish();
    work.add_with(generator, Event { id: Some(first) }).unwrap();
    work.flush(&mut client).await.unwrap();
    assert_eq!(recorder.take()[2].request.arguments()[0].raw, raw(first));
}

#[derive(OrderedKey)]
#[ordid(table = "documents")]
struct Document {
    #[ordid(key)]
    id: DocumentId,
    binary: BinaryId,
    optional: Option<BinaryId>,
    stored: Stored<Uuid, column::UniqueIdentifierPermuted>,
}

#[tokio::test]
async fn keys_of_other_columns_are_fields() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    let id = work.add(Document {
        id: DocumentId::generate(),
        binary: BinaryId::from_raw(V7).unwrap(),
        optional: None,
        stored: V7.into(),
    });
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    let sent = log[2].request.values();
    let permuted = guid::swap(&guid::from_sql_server_sort_key(V7.as_bytes()));
    assert_eq!(
        sent,
        [
            Some(id.to_raw().to_bytes().to_vec()),
            Some(V7.as_bytes().to_vec()),
            None,
            Some(permuted.to_vec())
        ]
    );
}
