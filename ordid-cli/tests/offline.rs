//! The commands that need no database, as a user runs them: output, exit codes, bad input.
//!
//! What they print is kept in `tests/snapshots`; `UPDATE_SNAPSHOTS=1` writes it anew, to be read as a difference.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

const KEY: &str = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";

struct Run {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn ordid_with(arguments: &[&str], stdin: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(arguments)
        .env_remove("DATABASE_URL")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("stdin is a pipe");
    let stdin = stdin.to_owned();
    // The command may end before it has read all.
    let writer = std::thread::spawn(move || {
        let _ = input.write_all(stdin.as_bytes());
    });
    let output = child.wait_with_output().expect("it is waited for once");
    writer.join().expect("the writer does not panic");
    Run {
        stdout: String::from_utf8(output.stdout).expect("it prints UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("it prints UTF-8"),
        code: output.status.code(),
    }
}

fn ordid(arguments: &[&str]) -> Run {
    ordid_with(arguments, "")
}

/// Holds what a command prints against the file of this name.
fn snapshot(name: &str, arguments: &[&str], code: i32) {
    let run = ordid(arguments);
    assert_eq!(run.stderr, "", "{arguments:?}");
    assert_eq!(run.code, Some(code), "{arguments:?}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &run.stdout).expect("the snapshot can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        run.stdout, kept,
        "{arguments:?} prints something else than {name}"
    );
}

/// The command refuses with one line that has these words.
fn refused(arguments: &[&str], words: &str) {
    let run = ordid(arguments);
    assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    assert_eq!(run.stdout, "", "{arguments:?}");
    if run.stderr.starts_with("ordid: ") {
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

#[test]
fn fixed_keys_are_printed_as_before() {
    let keys = [
        KEY,
        "759517997340696579",
        "01FWHE4YDGFK1SHH6W1G60EECF",
        "507f1f77bcf86cd799439011",
    ];
    let inspect: Vec<&str> = ["inspect"].into_iter().chain(keys).collect();
    snapshot("inspect.txt", &inspect, 0);
    snapshot("inspect.json", &["inspect", "--json", KEY], 0);
    snapshot(
        "inspect-engine.txt",
        &["inspect", "--engine", "sql-server", KEY],
        0,
    );
    snapshot(
        "inspect-unknown.txt",
        &[
            "inspect",
            "no key",
            "{017F22E2-79B0-7CC3-98C4-DC0C0C07398F}",
        ],
        1,
    );
    let range = ["range", "uuid_v7", "2026-01-01", "2026-02-01"];
    snapshot("range.txt", &range, 0);
    for engine in [
        "postgres",
        "mysql",
        "mariadb",
        "sqlite",
        "sql-server",
        "oracle",
    ] {
        let of_engine: Vec<&str> = range.into_iter().chain(["--engine", engine]).collect();
        let of_engine: Vec<&str> = match engine {
            "sql-server" => of_engine.into_iter().chain(["--json"]).collect(),
            _ => of_engine,
        };
        snapshot(&format!("range-{engine}.txt"), &of_engine, 0);
    }
    snapshot("scheme.txt", &["schemes", "instagram"], 0);
    snapshot("scheme.json", &["schemes", "instagram", "--json"], 0);
    snapshot("schemes.txt", &["schemes"], 0);
    snapshot(
        "range-spread.txt",
        &[
            "range",
            "snowflake_spread",
            "2026-01-01",
            "2026-01-02",
            "--engine",
            "mysql",
            "--name",
            "a`b",
        ],
        0,
    );
}

#[test]
fn the_help_of_each_command_is_as_before() {
    for command in [
        "new",
        "inspect",
        "convert",
        "range",
        "verify",
        "schemes",
        "advise",
        "sql",
        "doctor",
        "plan",
        "apply",
        "partition",
        "bench",
        "completions",
        "man",
    ] {
        snapshot(&format!("help-{command}.txt"), &[command, "--help"], 0);
    }
}

#[test]
fn new_makes_keys_that_rise_and_verify_agrees() {
    for scheme in [
        "uuid_v7",
        "ulid",
        "object-id",
        "push_id",
        "ordered_text_32",
        "comb_rt_sql",
    ] {
        let made = ordid(&["new", scheme, "-n", "3000"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        assert_eq!(made.stdout.lines().count(), 3000);
        let verified = ordid_with(&["verify", "--scheme", scheme, "-"], &made.stdout);
        assert_eq!(verified.code, Some(0), "{scheme}: {}", verified.stdout);
    }
    let made = ordid(&[
        "new",
        "snowflake",
        "--node",
        "7",
        "--at",
        "2026-01-01",
        "--json",
    ]);
    let made: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!(made["time"], "2026-01-01T00:00:00.000Z");
    assert_eq!(made["scheme"], "snowflake");
}

#[test]
fn a_named_key_is_that_of_other_libraries() {
    let key = ordid(&["new", "uuid_v5", "--name", "www.example.com"]).stdout;
    assert_eq!(
        key, "2ed6657d-e927-568b-95e1-2665a8aea6a2\n",
        "RFC 9562, appendix A.4"
    );
}

#[test]
fn verify_counts_what_is_out_of_order_twice_or_unreadable() {
    let lines = "01a21915-8d6d-77c8-9729-000000000003\n01a21915-8d6d-77c8-9729-000000000001\n\
                 01a21915-8d6d-77c8-9729-000000000003\nno key\n01a21915-8d6d-77c8-9729-000000000002\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), lines).unwrap();
    let path = file.path().to_str().unwrap();
    for (file, stdin) in [(path, ""), ("-", lines)] {
        let run = ordid_with(&["verify", "--json", file], stdin);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(found["keys"], 4);
        assert_eq!(found["out_of_order"], 2);
        assert_eq!(found["repeated"], 1);
        assert_eq!(found["unreadable"], 1);
        assert_eq!(found["rising"], false);
        assert_eq!(found["first"][0]["line"], 2);
        assert_eq!(found["first"][1]["problem"], "unreadable");
    }
    // A pipe with a name cannot be read a second time.
    let run = ordid_with(&["verify", "--json", "/dev/stdin"], lines);
    let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &found["repeated"]), (Some(1), &1.into()));
    // Nobody looks for keys that come twice.
    let run = ordid_with(&["verify", "--order-only", "-"], &format!("{KEY}\n{KEY}\n"));
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert_eq!(
        ordid_with(&["verify", "-"], &format!("{KEY}\n{KEY}\n")).code,
        Some(1)
    );
    // Keys as SQL Server, PostgreSQL and MySQL print them.
    for spelled in [
        "01A21915-8D6D-77C8-9729-000000000001\n01A21915-8D6D-77C8-9729-000000000002\n",
        "\\x01a219158d6d77c89729000000000001\n\\x01a219158d6d77c89729000000000002\n",
        "0x01A219158D6D77C89729000000000001\n0x01A219158D6D77C89729000000000002\n",
        "order_01fwhe4ydgfk1shh6w1g60eecf\norder_01fwhe4ydgfk1shh6w1g60eecg\n",
    ] {
        let run = ordid_with(&["verify", "--scheme", "uuid_v7", "-"], spelled);
        assert_eq!(run.code, Some(0), "{spelled}{}", run.stdout);
        assert!(
            run.stdout.starts_with("2 keys of uuid_v7"),
            "{}",
            run.stdout
        );
    }
    // Keys of one millisecond and another last half: SQL Server looks at that half first.
    let guid = [
        "verify",
        "--engine",
        "sql-server",
        "--column",
        "unique_identifier",
        "-",
    ];
    let keys = "01a21915-8d6d-77c8-9729-900000000000\n01a21915-8d6d-77c9-9729-100000000000\n";
    assert_eq!(ordid_with(&guid, keys).code, Some(1));
    assert_eq!(
        ordid_with(&["verify", "--engine", "sql-server", "-"], keys).code,
        Some(0)
    );
}

#[test]
fn a_type_id_keeps_its_prefix_unless_another_is_given() {
    let key = "user_01fwhe4ydgfk1shh6w1g60eecf";
    let converted = |arguments: &[&str]| ordid(&[&["convert", "--to"], arguments].concat()).stdout;
    assert_eq!(converted(&["typeid", key]), format!("{key}\n"));
    assert_eq!(
        converted(&["typeid", "--prefix", "person", key]),
        "person_01fwhe4ydgfk1shh6w1g60eecf\n"
    );
    assert_eq!(converted(&["canonical", key]), format!("{KEY}\n"));
}

#[test]
fn numbers_that_count_are_verified_as_a_sequence() {
    let numbers: String = (1..=1_000).map(|number| format!("{number}\n")).collect();
    let run = ordid_with(&["verify", "-"], &numbers);
    assert!(
        run.stdout.starts_with("1000 keys of sequence,"),
        "{}",
        run.stdout
    );
    let keys = ordid(&["new", "uuid_v4", "-n", "100"]).stdout;
    let run = ordid_with(&["verify", "-"], &keys);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains(" more\n"), "{}", run.stdout);
    assert!(
        run.stdout.contains("keys of uuid_v4 have no order"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_list_from_a_pipe_is_inspected_line_by_line() {
    let many = format!("{KEY}\n759517997340696579\n").repeat(40_000);
    let run = ordid_with(&["inspect", "-"], &many);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let line = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f\tuuid_v7\tstated\t2022-02-22T19:22:22.000Z\t-\t3508330093580";
    assert_eq!(run.stdout.lines().count(), 80_000);
    assert!(run.stdout.lines().step_by(2).all(|found| found == line));
    let run = ordid_with(&["inspect", "--json", "-"], &format!("{KEY}\n\nno key\n"));
    assert_eq!(run.code, Some(1), "one is of no scheme");
    let kinds: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(kinds[0]["candidates"][0]["scheme"], "uuid_v7");
    assert_eq!(kinds[1]["candidates"], serde_json::json!([]));
}

#[test]
fn whoever_stops_reading_ends_the_command_without_a_message() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(["new", "-n", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn bad_input_of_every_kind_gets_a_clear_line_and_code_2() {
    refused(&[], "Usage: ordid");
    refused(&["frob"], "unrecognized subcommand 'frob'");
    refused(&["new", "uuid_7"], "did you mean `uuid_v7`?");
    refused(&["new", "-n", "-1"], "unexpected argument '-1'");
    refused(&["new", "snowflake"], "give it by --node");
    refused(&["new", "snowflake", "--node", "1024"], "10 bits");
    refused(
        &["new", "uuid_v7", "--node", "1"],
        "keys of uuid_v7 have no node",
    );
    refused(&["new", "uuid_v5"], "give one by --name");
    refused(&["new", "uuid_v7", "--name", "x"], "not made of names");
    refused(&["new", "sequence"], "a store counts them");
    refused(
        &["new", "uuid_v4", "--at", "2026-01-01"],
        "do not tell a time",
    );
    refused(&["new", "--at", "tomorrow"], "is no time");
    refused(&["new", "--prefix", "Order"], "letters a-z");
    refused(
        &["convert", "--to", "ulid", "1"],
        "a key of 8 bytes has no form `ulid`",
    );
    refused(
        &["convert", "--to", "ulid", "???"],
        "is no key in a known form",
    );
    refused(&["convert", "--to", "frob", "1"], "possible values");
    refused(
        &["convert", "--to", "hex", "--prefix", "a", KEY],
        "--prefix is for TypeIDs",
    );
    let run = ordid_with(&["convert", "--to", "hex", "-"], &format!("{KEY}\n?\n"));
    assert!(run.stderr.contains("key 2: "), "{}", run.stderr);
    refused(
        &["range", "uuid_v4", "2026-01-01", "2026-01-02"],
        "not ordered by a time",
    );
    refused(
        &["range", "uuid_v7", "2026-01-02", "2026-01-01"],
        "which is not after",
    );
    refused(
        &[
            "range",
            "uuid_v7",
            "2026-01-01",
            "2026-01-02",
            "--engine",
            "sql-server",
            "--column",
            "unique_identifier",
        ],
        "lose their order",
    );
    refused(
        &["range", "object_id", "2026-01-01", "2110-01-01"],
        "does not fit",
    );
    refused(&["verify", "-"], "there are no keys");
    let run = ordid(&["verify", "/no/such/file"]);
    assert_eq!(
        (run.code, run.stderr.lines().count()),
        (Some(3), 1),
        "{}",
        run.stderr
    );
    let run = ordid_with(&["inspect", "-"], &"a".repeat(10_000));
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("line 1 is longer than"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_server_that_refuses_connections_is_named_at_once_without_its_password() {
    // Nobody listens at a port that was just given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let plan = std::env::temp_dir().join("ordid-plan-that-is-not-written.json");
    let plan = plan.to_str().expect("a path of Unicode");
    for scheme in ["postgres", "mysql", "mariadb"] {
        let url = format!("{scheme}://somebody:secret@{place}/shop");
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["doctor", &url],
            vec![
                "plan", &url, "--table", "orders", "--to", "uuid_v7", "--output", plan,
            ],
            vec!["bench", &url],
        ];
        if scheme == "postgres" {
            commands.push(vec!["partition", &url, "--table", "orders"]);
        }
        for command in commands {
            let begun = std::time::Instant::now();
            let run = ordid(&command);
            let words = run.stderr.to_lowercase();
            assert_eq!(run.code, Some(3), "{command:?}: {words}");
            assert!(
                words.contains(&format!(
                    "cannot connect to the database at {place}: connection refused"
                )),
                "{words}"
            );
            assert!(!words.contains("secret"), "{words}");
            println!("{command:?}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn no_message_has_the_password_of_a_url() {
    let url = "postgres://me:secret@host.example/shop";
    let commands: &[&[&str]] = &[
        &[url],
        &["sql", url],
        &["sql", "postgres", "--scheme", url],
        &["sql", "postgres", "--schema", url],
        &["sql", "postgres", "--column", url],
        &["sql", "postgres", url],
        &["advise", url],
        &["advise", "postgres", "--library", url],
        &["schemes", url],
        &["new", url],
        &["new", "--prefix", url],
        &["new", "--at", url],
        &["new", "-n", url],
        &["range", url, "2026-01-01", "2026-01-02"],
        &["range", "uuid_v7", url, "2026-01-02"],
        &["convert", "--to", url, KEY],
        &["convert", "--to", "hex", url],
        &["convert", "--to", "hex", "--from", "ulid", url],
        &["inspect", url],
        &["inspect", "--json", url],
        &["inspect", "--engine", url, KEY],
        &["verify", url],
        &["verify", "--engine", url, "-"],
        &["doctor", url, url],
        &["doctor", url, "--frob", url],
        &["doctor", "--json=postgres://me:secret@host.example/shop"],
        &["doctor", "postgres://me:12secret/34@host.example/shop"],
        &["doctor", "postgres://me:secret secret@127.0.0.1:1/shop"],
        &[
            "doctor",
            "postgres://127.0.0.1:1/shop?user=me&password=secret&sslmode=frob",
        ],
        &["doctor", "oracle://me:secret@host.example/shop"],
        &["doctor", "me:secret@host.example"],
        &["plan", "shop.sqlite", "--table", url, "--to", url],
        &["apply", url, url],
        &["partition", "shop.sqlite", "--table", "a", "--scheme", url],
        &["partition", "shop.sqlite", "--table", "a", "--by", url],
        &["bench", "--keys", url],
        &["bench", "--html", url, "/no/such/file"],
        &["completions", url],
        &["man", "/dev/null/postgres://me:secret@host.example/shop"],
        &["--color", url, "schemes"],
    ];
    for command in commands {
        for format in [&[][..], &["--json"]] {
            let run = ordid(&[format, command].concat());
            let all = format!("{}{}", run.stdout, run.stderr);
            assert_ne!(run.code, Some(0), "{command:?}: {all}");
            assert!(!all.contains("secret"), "{command:?}: {all}");
        }
    }
    for command in [
        &["inspect", "-"][..],
        &["inspect", "--json", "-"],
        &["inspect", "--full", "-"],
    ] {
        let run = ordid_with(command, &format!("{url}\n"));
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(
            run.stdout.contains("://***@host.example/shop"),
            "{}",
            run.stdout
        );
    }
    for command in [&["verify", "-"][..], &["verify", "--json", "-"]] {
        let run = ordid_with(command, &format!("{KEY}\n{url}\n"));
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(!run.stdout.contains("secret"), "{}", run.stdout);
        let run = ordid_with(command, &format!("{url}\n{KEY}\n"));
        assert_eq!(run.code, Some(2), "{}", run.stdout);
        assert!(!run.stderr.contains("secret"), "{}", run.stderr);
    }
}

#[test]
fn a_range_has_whole_steps_of_the_scheme() {
    let range = |arguments: &[&str]| -> serde_json::Value {
        let run = ordid(&[&["range", "--json"], arguments].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    let found = range(&[
        "object_id",
        "2026-01-01T00:00:00.5",
        "2026-01-01T00:00:01.5",
    ]);
    // Keys of 00:00:01 may have been made before 00:00:01.5.
    assert_eq!(found["ranges"][0]["lowest"], "6955b9000000000000000000");
    assert_eq!(found["ranges"][0]["highest"], "6955b901ffffffffffffffff");
    assert_eq!(found["ranges"][0]["end"], "6955b9020000000000000000");
    let last = ["object_id", "2106-02-07T06:28:15Z", "2106-02-07T06:28:16Z"];
    let found = range(&[&last[..], &["--engine", "postgres"]].concat());
    assert_eq!(found["ranges"][0]["end"], serde_json::Value::Null);
    let condition = found["where"].as_str().expect("a condition");
    assert!(condition.contains("\"id\" <= "), "{condition}");
    let shown = ordid(&[&["range"], &last[..]].concat()).stdout;
    assert!(shown.contains("end     none"), "{shown}");
}

#[test]
fn new_prints_no_key_if_a_time_has_too_few() {
    let sonyflake = [
        "new",
        "sonyflake",
        "--node",
        "7",
        "--at",
        "2024-01-01",
        "-n",
    ];
    refused(
        &[&sonyflake[..], &["256257"]].concat(),
        "there are 256256 keys of sonyflake at 2024-01-01T00:00:00.000Z",
    );
    let run = ordid(&[&sonyflake[..], &["256256"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), 256_256);
    refused(&["new", "object_id", "--at", "2200-01-01"], "does not fit");
}

/// Reads how much memory a command has had at most while it sorts, in kilobytes: it has then read the keys, and waits.
#[cfg(target_os = "linux")]
fn peak_memory(arguments: &[&str], keys: &str) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("stdin is a pipe");
    input.write_all(keys.as_bytes()).expect("it reads");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    drop(input);
    assert!(
        child
            .wait()
            .expect("it is waited for once")
            .code()
            .is_some()
    );
    let field = |name| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    };
    // Pages of the program's file are no memory of ours: how many the kernel maps around one differs from run to run.
    field("VmHWM:") - field("RssFile:")
}

#[test]
#[cfg(target_os = "linux")]
fn verify_keeps_the_memory_that_it_is_given_for_integers() {
    use std::fmt::Write as _;

    // They fall, so that they are sorted. Three runs and more.
    let mut keys = String::new();
    for number in (1..=1_200_000_u64).rev() {
        writeln!(keys, "{number}").expect("a text takes all");
    }
    let verify = ["verify", "--scheme", "sequence", "-", "--memory", "8"];
    let without = peak_memory(&[&verify[..], &["--order-only"]].concat(), &keys);
    let with = peak_memory(&verify, &keys);
    // The buffer of a file that is written, and what the allocator does not give back.
    assert!(
        with <= without + 8 * 1_024 + 512,
        "{with} KB, {without} KB without"
    );
}

/// The text of a masked key is that of a UUID of version 4.
#[test]
fn a_prefixed_uuid_of_version_4_may_be_masked() {
    let note = "if its key type has a mask, the stored key is another one";
    let inspected = |key: &str| ordid(&["inspect", key]).stdout;
    assert!(inspected("inv_2snxh4m8gf9k7rkh6kq0c1dv1s").contains(note));
    for key in [
        "59af624a-220f-4ccf-89c4-d3b81816ec39",
        "inv_01fwhe4ydgfk1shh6w1g60eecf",
    ] {
        assert!(!inspected(key).contains(note), "{key}");
    }
}

#[test]
fn an_option_that_would_do_nothing_is_refused() {
    refused(&["inspect", "-", "--engine", "mysql"], "add --full");
    let full = ["inspect", "-", "--engine", "mysql", "--full"];
    assert!(ordid_with(&full, KEY).stdout.contains("MySQL binary16"));
    refused(
        &[
            "range",
            "uuid_v7",
            "2026-01-01",
            "2026-01-02",
            "--name",
            "key",
        ],
        "--engine",
    );
    refused(
        &[
            "sql",
            "postgres",
            "--scheme",
            "uuid_v7",
            "--scheme",
            "snowflake",
            "--column",
            "uuid",
        ],
        "PostgreSQL has no column \"uuid\" for keys of snowflake; it has bigint",
    );
}

#[test]
fn convert_asks_whether_16_digits_are_a_number_or_hex() {
    let digits = "1234567890123456";
    refused(
        &["convert", "--to", "hex", digits],
        "may be a number or 8 bytes in hex: say which by --from integer or --from hex",
    );
    let converted = |from| ordid(&["convert", "--to", "hex", "--from", from, digits]).stdout;
    assert_eq!(converted("integer"), "000462d53c8abac0\n");
    assert_eq!(converted("hex"), "1234567890123456\n");
    let run = ordid(&["convert", "--to", "hex", "123456789012345"]);
    assert_eq!(run.stdout, "00007048860ddf79\n", "{}", run.stderr);
    let run = ordid(&["convert", "--to", "hex", "123456789012345a"]);
    assert_eq!(run.stdout, "123456789012345a\n", "{}", run.stderr);
}

#[test]
fn advise_quotes_tables_as_the_engine_does() {
    for (engine, table) in [
        ("oracle", "\"orders\""),
        ("sql-server", "[orders]"),
        ("sqlite", "\"orders\""),
        ("postgres", "\"orders\""),
        ("mysql", "`orders`"),
    ] {
        let run = ordid(&["advise", engine]);
        let create = format!("CREATE TABLE {table} (");
        assert!(run.stdout.contains(&create), "{}{}", run.stdout, run.stderr);
    }
}

#[test]
fn advise_takes_a_library_with_hyphens_or_as_its_crate_is_called() {
    for (name, other) in [("sea-orm", "sea_orm"), ("tokio-postgres", "tokio_postgres")] {
        let run = ordid(&["advise", "postgres", "--library", name]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let same = ordid(&["advise", "postgres", "--library", other]);
        assert_eq!(same.stdout, run.stdout, "{}", same.stderr);
    }
}

#[test]
fn colours_are_written_only_where_they_are_wanted() {
    let colored = |arguments: &[&str]| ordid(arguments).stdout.contains('\x1b');
    assert!(!colored(&["inspect", KEY]));
    assert!(colored(&["inspect", KEY, "--color", "always"]));
    assert!(!colored(&["inspect", KEY, "--color", "always", "--json"]));
}

#[test]
fn completions_and_manual_know_each_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ordid(&["completions", shell]);
        assert_eq!(script.code, Some(0));
        assert!(script.stdout.contains("inspect"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    let run = ordid(&["man", folder.path().to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(folder.path().join("ordid-inspect.1").exists());
    assert!(ordid(&["man"]).stdout.contains(".TH ordid"));
}

#[test]
fn the_readme_shows_what_the_commands_print() {
    let readme = include_str!("../README.md");
    let mut commands = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut shown = block.split("$ ordid ");
        assert_eq!(shown.next(), Some(""));
        for shown in shown {
            let (command, printed) = shown.split_once('\n').unwrap();
            let arguments: Vec<&str> = command.split(' ').collect();
            assert_eq!(ordid(&arguments).stdout, printed, "{command}");
            commands += 1;
        }
    }
    assert!(commands >= 7, "{commands}");
}

#[test]
fn sql_without_a_scheme_lists_the_schemes_in_comments() {
    snapshot("sql-postgres.txt", &["sql", "postgres"], 0);
    snapshot(
        "sql-mysql-drop.txt",
        &[
            "sql", "mysql", "--drop", "--schema", "my app", "--column", "char26",
        ],
        0,
    );
    for engine in [
        "postgres",
        "mysql",
        "mariadb",
        "sqlite",
        "sql-server",
        "oracle",
    ] {
        let listed = ordid(&["sql", engine]).stdout;
        assert!(
            listed.lines().all(|line| line.starts_with("--")),
            "{listed}"
        );
        // The line that it names is the one to run.
        let command = format!("ordid sql {engine} --scheme uuid_v7");
        assert!(listed.contains(&command), "{listed}");
        let made = ordid(&["sql", engine, "--scheme", "uuid_v7"]).stdout;
        assert!(made.contains("ordid_uuid_v7_time"), "{made}");
        assert!(!made.contains("ordid_ulid_time"), "{made}");
        let all = ordid(&["sql", engine, "--all"]).stdout;
        for line in listed.lines().skip_while(|line| *line != "--").skip(1) {
            let scheme = line.split_whitespace().nth(1).expect("a scheme");
            assert!(all.contains(&format!("ordid_{scheme}_time")), "{scheme}");
        }
    }
}

#[test]
fn sql_takes_several_schemes() {
    let both = ["--scheme", "uuid_v7", "--scheme", "ulid"];
    let made = ordid(&[&["sql", "postgres", "--column", "uuid"], &both[..]].concat());
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let names: Vec<&str> = made
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("CREATE OR REPLACE FUNCTION "))
        .filter_map(|rest| rest.split('(').next())
        .collect();
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names.contains(&"ordid_uuid_v7_time") && names.contains(&"ordid_ulid_highest"));
    assert_eq!(made.stdout.matches("Made by ordid").count(), 1);
    refused(&["sql", "postgres", "--scheme", "uuid_v4"], "tell no time");
    refused(
        &["sql", "postgres", "--scheme", "uuid_7"],
        "did you mean `uuid_v7`?",
    );
    refused(
        &["sql", "postgres", "--all", "--scheme", "ulid"],
        "cannot be used with",
    );
}

#[test]
fn inspect_keeps_the_order_of_a_long_list_and_tells_the_line_that_is_no_text() {
    let keys = ordid(&["new", "-n", "50000"]).stdout;
    let run = ordid_with(&["inspect", "-"], &keys);
    let shown: Vec<&str> = run
        .stdout
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert!(shown == keys.lines().collect::<Vec<_>>());
    // What was read before is written, and then the failure is told.
    let long = format!("{keys}{}\n", "x".repeat(5_000));
    let run = ordid_with(&["inspect", "-"], &long);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.stdout.lines().count(), 50_000);
    assert_eq!(
        run.stderr,
        "ordid: line 50001 is longer than 4096 bytes, which no key is\n"
    );
}

#[test]
fn inspect_ends_with_its_reader_though_keys_may_still_come() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(["inspect", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // Enough for all threads; the pipe stays open.
    let keys = format!("{KEY}\n").repeat(1_000);
    while input.write_all(keys.as_bytes()).is_ok() {}
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// Asks bash what it completes the last word to.
fn completed(words: &[&str]) -> Vec<String> {
    let script = ordid(&["completions", "bash"]).stdout;
    let list = words
        .iter()
        .map(|word| format!("'{word}'"))
        .collect::<Vec<_>>()
        .join(" ");
    let last = words.len() - 1;
    let script = format!(
        "{script}\nCOMP_WORDS=({list}); COMP_CWORD={last}\n\
         _ordid ordid \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{}]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        last - 1
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("keys.txt"), "").expect("a file");
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &script])
        .current_dir(folder.path())
        .output()
        .expect("bash starts");
    let replies = String::from_utf8(output.stdout).expect("text");
    let mut replies: Vec<String> = replies.lines().map(str::to_owned).collect();
    replies.sort();
    replies
}

#[test]
fn bash_completes_schemes_engines_columns_and_files() {
    for (words, expected) in [
        (
            &["ordid", "new", "uuid_v7"][..],
            &[
                "uuid_v7",
                "uuid_v7_spread",
                "uuid_v7_sub_millis",
                "uuid_v7_unguessable",
            ][..],
        ),
        (&["ordid", "schemes", "snowflake_s"], &["snowflake_spread"]),
        (&["ordid", "range", "object"], &["object_id"]),
        (&["ordid", "verify", "--scheme", "push"], &["push_id"]),
        (&["ordid", "verify", "--engine", "mari"], &["mariadb"]),
        (
            &[
                "ordid", "range", "uuid_v7", "--engine", "mysql", "--column", "binary16",
            ],
            &["binary16", "binary16_dotnet", "binary16_swapped"],
        ),
        (&["ordid", "bench", "--keys", "aut"], &["auto"]),
        (&["ordid", "bench", "--html", "ke"], &["keys.txt"]),
        (&["ordid", "sql", "sql"], &["sql-server", "sqlite"]),
        (&["ordid", "sql", "postgres", "--scheme", "uli"], &["ulid"]),
        (&["ordid", "sql", "postgres", "--column", "uu"], &["uuid"]),
        (&["ordid", "partition", "--scheme", "uuid_v6"], &["uuid_v6"]),
        (&["ordid", "partition", "--by", "mo"], &["month"]),
        (&["ordid", "advise", "cock"], &["cockroachdb"]),
        (&["ordid", "convert", "--to", "type"], &["typeid"]),
    ] {
        assert_eq!(completed(words), expected, "{words:?}");
    }
    // Where the script has nothing to say, such as for the file of `verify`, bash completes names of files.
    let script = ordid(&["completions", "bash"]).stdout;
    assert!(script.contains("-o default ordid"), "{script}");
}

#[test]
fn completions_of_other_shells_have_the_names_too() {
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = ordid(&["completions", shell]).stdout;
        assert!(script.len() > 1_000, "{shell}");
        if matches!(shell, "zsh" | "fish") {
            for name in ["uuid_v7_unguessable", "binary16_swapped", "sql-server"] {
                assert!(script.contains(name), "{shell} does not know {name}");
            }
        }
    }
}
