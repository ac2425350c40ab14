//! The recorder against plain tiberius: what it writes down is what the client sent.

use ordid_recorders::tds::{Answer, Column, Recorder, Request, Type};
use tiberius::{
    AuthMethod, Client, Config, EncryptionLevel, SortOrder, SqlBulkCopyOption, TokenRow,
};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};
use uuid::Uuid;

/// .NET's `Guid.ToByteArray` of `00112233-4455-6677-8899-aabbccddeeff`: the first three groups are
/// little-endian. [MS-DTYP] 2.3.4.2.
const WIRE: [u8; 16] = *b"\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
const VALUE: Uuid = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);

async fn connect(recorder: &Recorder) -> tiberius::Result<Client<Compat<TcpStream>>> {
    let mut config = Config::new();
    config.authentication(AuthMethod::sql_server("ada", "secret"));
    config.database("ordid");
    config.encryption(EncryptionLevel::NotSupported);
    let stream = TcpStream::connect(recorder.address()).await?;
    stream.set_nodelay(true)?;
    Client::connect(config, stream.compat_write()).await
}

#[tokio::test]
async fn a_login_names_user_and_database() {
    let recorder = Recorder::start().unwrap();
    connect(&recorder).await.unwrap();
    let [login] = &recorder.log()[..] else {
        panic!("{:?}", recorder.log())
    };
    assert_eq!(
        login.request,
        Request::Login {
            user: "ada".to_owned(),
            database: "ordid".to_owned()
        }
    );
}

#[tokio::test]
async fn a_uuid_parameter_is_mixed_endian() {
    let recorder = Recorder::start().unwrap();
    let mut client = connect(&recorder).await.unwrap();
    client
        .execute(
            "INSERT INTO t VALUES (@P1, @P2, @P3)",
            &[&VALUE, &None::<Uuid>, &"ä"],
        )
        .await
        .unwrap();
    let [call] = &recorder.take()[..] else {
        panic!("one call")
    };
    assert_eq!(
        call.request.declaration().as_deref(),
        Some("@P1 uniqueidentifier,@P2 uniqueidentifier,@P3 nvarchar(4000)")
    );
    assert_eq!(call.request.text(), "INSERT INTO t VALUES (@P1, @P2, @P3)");
    let [key, null, text] = call.request.arguments() else {
        panic!("{call:?}")
    };
    assert_eq!(key.name, "@P1");
    assert_eq!(key.raw, [&[0x24, 16, 16], &WIRE[..]].concat());
    assert_eq!(null.raw, [0x24, 16, 0]);
    assert_eq!(text.value.as_deref(), Some(&b"\xe4\0"[..]));
}

#[tokio::test]
async fn answers_reach_the_client() {
    let recorder = Recorder::start().unwrap();
    let columns = [
        Column::new("id", Type::uniqueidentifier()),
        Column::new("name", Type::nvarchar(10)),
        Column::new("total", Type::int(8)),
    ];
    let rows = [
        vec![
            Some(WIRE.to_vec()),
            Some(b"A\0".to_vec()),
            Some(vec![7, 0, 0, 0, 0, 0, 0, 0]),
        ],
        vec![Some(vec![0; 16]), None, None],
    ];
    recorder.once("SELECT id", Answer::rows(columns, rows));
    recorder.once("DELETE", Answer::failure(547, "there are children"));
    let mut client = connect(&recorder).await.unwrap();

    let rows = client
        .simple_query("SELECT id, name, total FROM t")
        .await
        .unwrap();
    let rows = rows.into_first_result().await.unwrap();
    assert_eq!(rows[0].get("id"), Some(VALUE));
    assert_eq!(rows[0].get("name"), Some("A"));
    assert_eq!(rows[0].get("total"), Some(7_i64));
    assert_eq!(rows[1].get("id"), Some(Uuid::nil()));
    assert_eq!(rows[1].get::<&str, _>("name"), None);
    assert_eq!(rows[1].get::<i64, _>("total"), None);

    let error = client.execute("DELETE FROM t", &[]).await.unwrap_err();
    assert_eq!(error.code(), Some(547));
    // The connection goes on.
    client.execute("SELECT 1", &[]).await.unwrap();
}

#[tokio::test]
async fn requests_carry_their_transaction() {
    let recorder = Recorder::start().unwrap();
    let mut client = connect(&recorder).await.unwrap();
    client.execute("before", &[]).await.unwrap();
    client.begin_transaction().await.unwrap();
    client.execute("inside", &[]).await.unwrap();
    client.save_transaction("here").await.unwrap();
    client.commit_transaction().await.unwrap();
    client.begin_transaction().await.unwrap();
    client.rollback_transaction().await.unwrap();
    assert!(client.commit_transaction().await.is_err());

    let log = recorder.take();
    let said: Vec<_> = log
        .iter()
        .map(|received| (received.request.text(), received.transaction))
        .collect();
    let said: Vec<_> = said
        .iter()
        .map(|(text, number)| (&text[..], *number))
        .collect();
    assert_eq!(
        said,
        [
            ("before", 0),
            ("BEGIN", 0),
            ("inside", 1),
            ("SAVE here", 1),
            ("COMMIT", 1),
            ("BEGIN", 0),
            ("ROLLBACK", 2),
            ("COMMIT", 0),
        ]
    );
}

#[tokio::test]
async fn a_bulk_load_is_taken_apart() {
    let recorder = Recorder::start().unwrap();
    recorder.table(
        "[my]]orders]",
        vec![
            Column::new("id", Type::uniqueidentifier()),
            Column::new("note", Type::nvarchar_max()),
            Column::new("total", Type::bigint_not_null()),
        ],
    );
    let mut client = connect(&recorder).await.unwrap();
    let hints = [("[id]", SortOrder::Ascending)];
    let mut load = client
        .bulk_insert_with_options(
            "[my]]orders]",
            &["[id]", "[note]", "[total]"],
            SqlBulkCopyOption::CheckConstraints.into(),
            &hints,
        )
        .await
        .unwrap();
    for (note, total) in [(Some("n"), 1_i64), (None, 2)] {
        let mut row = TokenRow::new();
        row.push(tiberius::IntoSql::into_sql(VALUE));
        row.push(tiberius::IntoSql::into_sql(note));
        row.push(tiberius::IntoSql::into_sql(total));
        load.send(row).await.unwrap();
    }
    assert_eq!(load.finalize().await.unwrap().total(), 2);

    let log = recorder.take();
    let texts: Vec<_> = log.iter().map(|received| received.request.text()).collect();
    assert_eq!(
        texts,
        [
            "SELECT TOP 0 [id], [note], [total] FROM [my]]orders]",
            "INSERT BULK [my]]orders] ([id] uniqueidentifier, [note] nvarchar(max), \
             [total] bigint) WITH (CHECK_CONSTRAINTS, ORDER([id] ASC))",
            "BULK",
        ]
    );
    let Request::Bulk(bulk) = &log[2].request else {
        panic!("{log:?}")
    };
    let names: Vec<_> = bulk.columns.iter().map(|column| &column.name[..]).collect();
    assert_eq!(names, ["id", "note", "total"]);
    assert_eq!(
        bulk.rows,
        [
            vec![
                Some(WIRE.to_vec()),
                Some(b"n\0".to_vec()),
                Some(vec![1, 0, 0, 0, 0, 0, 0, 0])
            ],
            vec![
                Some(WIRE.to_vec()),
                None,
                Some(vec![2, 0, 0, 0, 0, 0, 0, 0])
            ],
        ]
    );
    assert_eq!(bulk.raw[1][..18], [&[0xd1, 16], &WIRE[..]].concat());
}

#[tokio::test]
async fn long_messages_span_packets() {
    let recorder = Recorder::start().unwrap();
    let text = "x".repeat(100_000);
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    recorder.once(
        "SELECT",
        Answer::rows(
            [Column::new("t", Type::nvarchar_max())],
            [vec![Some(wide.clone())]],
        ),
    );
    let mut client = connect(&recorder).await.unwrap();
    let rows = client.query("SELECT @P1", &[&text]).await.unwrap();
    let row = rows.into_row().await.unwrap().unwrap();
    assert_eq!(row.get("t"), Some(&text[..]));
    let log = recorder.take();
    assert_eq!(log[0].request.arguments()[0].value, Some(wide));
}

#[tokio::test]
async fn a_connection_can_be_cut() {
    for answer in [Answer::HangUp, Answer::HalfAnswer] {
        let recorder = Recorder::start().unwrap();
        recorder.once("SELECT", answer);
        let mut client = connect(&recorder).await.unwrap();
        let outcome = client.execute("SELECT 1", &[]).await;
        assert!(
            matches!(outcome, Err(tiberius::error::Error::Io { .. })),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_deadlock_ends_the_transaction() {
    let recorder = Recorder::start().unwrap();
    recorder.once("UPDATE", Answer::fatal(1205, "deadlock victim"));
    let mut client = connect(&recorder).await.unwrap();
    client.begin_transaction().await.unwrap();
    let error = client.execute("UPDATE t", &[]).await.unwrap_err();
    assert!(error.is_deadlock());
    client.execute("after", &[]).await.unwrap();
    assert_eq!(recorder.take().last().map(|last| last.transaction), Some(0));
}
