//! Tests of requests that are sent twice, edits at the same time, and imports.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use serde_json::{Value, json};

use crate::{Client, Place, Result, text, titles};

/// Opens an issue with a request that has an idempotency key.
async fn open(
    tracker: &Client,
    place: &Place,
    key: &str,
    new: &Value,
) -> Result<(StatusCode, Value)> {
    let request = Request::post(format!("{}/issues", place.path()))
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", key);
    let (status, _, value) = tracker
        .send(request.body(Body::from(new.to_string()))?)
        .await?;
    Ok((status, value))
}

pub(crate) async fn a_request_that_is_sent_again_opens_one_issue(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let new = json!({ "title": "Slow", "body": "Since Tuesday." });
    let (status, issue) = open(&tracker, &place, "4f1c", &new).await?;
    assert_eq!(status, 201, "{issue}");
    assert_eq!(
        open(&tracker, &place, "4f1c", &new).await?,
        (StatusCode::OK, issue.clone())
    );

    // The request finds the issue after an edit, too, and the answer has the edited issue.
    let edited = format!("{}/issues/{}", place.path(), text(&issue["id"]));
    let (_, edited) = tracker
        .ask(
            "PATCH",
            &edited,
            &json!({ "version": 1, "title": "Slower" }),
        )
        .await?;
    assert_eq!(
        open(&tracker, &place, "4f1c", &new).await?,
        (StatusCode::OK, edited)
    );

    let (status, refused) = open(&tracker, &place, "4f1c", &json!({ "title": "Loud" })).await?;
    assert_eq!(status, 422);
    assert_eq!(
        refused["error"],
        "another issue was opened with this idempotency key"
    );
    let (status, other) = open(&tracker, &place, "4f1d", &new).await?;
    assert!(status == 201 && other["id"] != issue["id"], "{other}");
    // The same key in another project is another request.
    let theirs = tracker.place("Looms").await?;
    assert_eq!(open(&tracker, &theirs, "4f1c", &new).await?.0, 201);
    assert_eq!(open(&tracker, &place, &"x".repeat(201), &new).await?.0, 400);
    let listed = tracker.found(&format!("{}/issues", place.path())).await?;
    assert_eq!(titles(&listed), ["Slow", "Slower"]);
    Ok(())
}

pub(crate) async fn requests_with_one_key_at_once_open_one_issue(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let (tracker, place) = (tracker.clone(), place.clone());
        let new = json!({ "title": "Slow" });
        clients.push(tokio::spawn(async move {
            open(&tracker, &place, "4f1c", &new).await
        }));
    }
    let mut statuses = Vec::new();
    let mut ids = Vec::new();
    for client in clients {
        let (status, issue) = client.await??;
        statuses.push(status.as_u16());
        ids.push(issue["id"].clone());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    ids.dedup();
    assert_eq!(ids.len(), 1);
    Ok(())
}

pub(crate) async fn an_edit_writes_what_it_names(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let new = json!({ "title": "Slow", "body": "Since Tuesday." });
    let mut issue = tracker
        .made(&format!("{}/issues", place.path()), &new)
        .await?;
    let path = format!("{}/issues/{}", place.path(), text(&issue["id"]));
    for (edit, field) in [
        (json!({ "version": 1, "title": "Slow search" }), "title"),
        (json!({ "version": 2, "body": "" }), "body"),
        (json!({ "version": 3, "is_closed": true }), "is_closed"),
    ] {
        let (status, edited) = tracker.ask("PATCH", &path, &edit).await?;
        assert_eq!(status, 200, "{edited}");
        issue[field] = edit[field].clone();
        issue["version"] = json!(edit["version"].as_i64().ok_or("no version")? + 1);
        assert_eq!(edited, issue);
        assert_eq!(tracker.found(&path).await?, issue);
    }
    // An edit that changes nothing writes nothing.
    let same = json!({ "version": 4, "title": "Slow search", "is_closed": true });
    assert_eq!(
        tracker.ask("PATCH", &path, &same).await?,
        (StatusCode::OK, issue)
    );
    Ok(())
}

pub(crate) async fn of_edits_of_one_version_one_is_saved(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let issue = tracker.issue(&place, "Slow").await?;
    let path = format!("{}/issues/{}", place.path(), text(&issue["id"]));
    let mut clients = Vec::new();
    for number in 0..8 {
        let (tracker, path) = (tracker.clone(), path.clone());
        let edit = json!({ "version": 1, "title": format!("Slow {number}") });
        clients.push(tokio::spawn(async move {
            let answer = tracker.ask("PATCH", &path, &edit).await?;
            Ok::<_, libtest_mimic::Failed>((edit, answer))
        }));
    }
    let mut saved = Vec::new();
    for client in clients {
        let (edit, (status, body)) = client.await??;
        if status == 200 {
            saved.push(edit["title"].clone());
            continue;
        }
        assert_eq!(status, 409, "{body}");
        assert_eq!(
            (&body["read_version"], &body["found_version"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(body["issue"]["version"], 2);
        let message = text(&body["error"]);
        assert!(
            message.ends_with("it was read with version 1, and has version 2"),
            "{message}"
        );
    }
    assert_eq!(saved.len(), 1);
    let found = tracker.found(&path).await?;
    assert_eq!((&found["title"], &found["version"]), (&saved[0], &json!(2)));

    // A version that does not exist yet is refused, too.
    let (status, body) = tracker
        .ask("PATCH", &path, &json!({ "version": 3, "title": "Fast" }))
        .await?;
    assert_eq!((status.as_u16(), &body["found_version"]), (409, &json!(2)));
    Ok(())
}

pub(crate) async fn labels_come_and_go(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let labels = format!("/api/tenants/{}/labels", place.tenant);
    let mut ids = Vec::new();
    for name in ["ui", "bug"] {
        let label = tracker.made(&labels, &json!({ "name": name })).await?;
        ids.push(text(&label["id"]).to_owned());
    }
    let names = tracker.found(&labels).await?;
    assert_eq!(
        (&names[0]["name"], &names[1]["name"]),
        (&json!("bug"), &json!("ui"))
    );
    assert_eq!(names[0].get("tenant"), None);

    let issue = tracker.issue(&place, "Slow").await?;
    tracker.issue(&place, "Loud").await?;
    let path = format!("{}/issues/{}", place.path(), text(&issue["id"]));
    // Adding a label twice has the effect of adding it once.
    for id in [&ids[0], &ids[1], &ids[0]] {
        let (status, _) = tracker
            .ask("PUT", &format!("{path}/labels/{id}"), &Value::Null)
            .await?;
        assert_eq!(status, 200);
    }
    let listed = tracker.found(&format!("{}/issues", place.path())).await?;
    assert_eq!(listed["edges"][0]["node"]["labels"], json!([]));
    assert_eq!(listed["edges"][1]["node"]["labels"], json!(["bug", "ui"]));
    let taken = format!("{path}/labels/{}", ids[1]);
    let (status, issue) = tracker.ask("DELETE", &taken, &Value::Null).await?;
    assert_eq!((status.as_u16(), &issue["labels"]), (200, &json!(["ui"])));
    tracker.refused("DELETE", &taken, &Value::Null, 404).await?;
    Ok(())
}

/// Sends an import, and waits for its end.
async fn import(tracker: &Client, place: &Place, media_type: &str, body: String) -> Result<Value> {
    let request =
        Request::post(format!("{}/imports", place.path())).header(header::CONTENT_TYPE, media_type);
    let (status, location, begun) = tracker.send(request.body(Body::from(body))?).await?;
    assert_eq!(status, 202, "{begun}");
    let location = location.ok_or("no location")?;
    loop {
        let status = tracker.found(&location).await?;
        if status["state"] != "running" {
            return Ok(status);
        }
        assert!(
            status["rows_sent"].as_u64() <= status["rows_to_send"].as_u64(),
            "{status}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn an_import_is_all_or_nothing_and_can_be_sent_again(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let label = format!("/api/tenants/{}/labels", place.tenant);
    tracker.made(&label, &json!({ "name": "bug" })).await?;
    // Children stand before their parents. One label exists, and the other one does not.
    let csv = "name,parent,title,body,labels\n\
        3,2,Below that,,ui\n\
        2,1,\"Below, with a comma\",\"Two\nlines\",bug ui\n\
        1,,Above,,\n";
    let done = import(&tracker, &place, "text/csv", csv.into()).await?;
    assert_eq!(
        (&done["state"], &done["added"], &done["known"]),
        (&json!("done"), &json!(3), &json!(0)),
        "{done}"
    );
    let issues = format!("{}/issues", place.path());
    let page = tracker.found(&issues).await?;
    // The issues are in the order of the file.
    assert_eq!(
        titles(&page),
        ["Above", "Below, with a comma", "Below that"]
    );
    let node = |index: usize| &page["edges"][index]["node"];
    assert_eq!(
        (&node(2)["parent"], &node(1)["parent"]),
        (&node(1)["id"], &node(0)["id"])
    );
    assert_eq!(
        (&node(1)["labels"], &node(1)["body"]),
        (&json!(["bug", "ui"]), &json!("Two\nlines"))
    );

    // The same issues are sent again, now as JSON, with new ones whose parents were imported before.
    let json = json!([
        { "name": "3", "parent": "2", "title": "Below that" },
        { "name": "4", "parent": "3", "title": "Deep", "labels": ["ui"] },
        { "name": "5", "parent": "1", "title": "Side" },
    ]);
    let done = import(
        &tracker,
        &place,
        "application/json; charset=utf-8",
        json.to_string(),
    )
    .await?;
    assert_eq!(
        (&done["added"], &done["known"]),
        (&json!(2), &json!(1)),
        "{done}"
    );
    let again = import(&tracker, &place, "application/json", json.to_string()).await?;
    assert_eq!(
        (&again["added"], &again["known"]),
        (&json!(0), &json!(3)),
        "{again}"
    );

    // The parent of one issue does not exist, so nothing of the file is imported.
    let json = json!([{ "name": "6", "title": "Fine" }, { "name": "7", "parent": "none", "title": "Lost" }]);
    let failed = import(&tracker, &place, "application/json", json.to_string()).await?;
    assert_eq!(
        (&failed["state"], &failed["error"]),
        (&json!("failed"), &json!("7: no line is named \"none\""))
    );
    assert_eq!(titles(&tracker.found(&issues).await?).len(), 5);
    Ok(())
}

pub(crate) async fn an_import_says_how_far_it_is(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let lines: Vec<Value> = (0..3_000)
        .map(|number| {
            let parent = (number > 0).then(|| (number / 10).to_string()).filter(|_| number >= 10);
            json!({ "name": number.to_string(), "parent": parent, "title": format!("Issue {number}"), "labels": ["bulk"] })
        })
        .rev()
        .collect();
    let done = import(
        &tracker,
        &place,
        "application/json",
        json!(lines).to_string(),
    )
    .await?;
    assert_eq!(
        (&done["state"], &done["added"]),
        (&json!("done"), &json!(3_000)),
        "{done}"
    );
    // The rows are the issues, the labels of issues, and the label.
    assert_eq!(
        (&done["rows_sent"], &done["rows_to_send"]),
        (&json!(6_001), &json!(6_001))
    );
    let issues = format!("{}/issues", place.path());
    let page = tracker.found(&format!("{issues}?first=1")).await?;
    assert_eq!(
        (titles(&page), &page["edges"][0]["node"]["labels"]),
        (vec!["Issue 0"], &json!(["bulk"]))
    );
    // Another tenant does not see the import.
    let theirs = tracker.place("Looms").await?;
    let status = format!("{}/imports/{}", theirs.path(), text(&done["id"]));
    assert_eq!(tracker.get(&status).await?.0, 404);
    Ok(())
}

pub(crate) async fn an_import_that_cannot_be_is_refused(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let circle = json!([{ "name": "1", "parent": "2", "title": "a" }, { "name": "2", "parent": "1", "title": "b" }]);
    for (media_type, body, status, reason) in [
        (
            "application/json",
            circle.to_string(),
            422,
            "it is its own ancestor",
        ),
        (
            "application/json",
            json!([{ "name": "", "title": "a" }]).to_string(),
            422,
            "from 1 to 200 bytes",
        ),
        ("application/json", "[{".to_owned(), 400, "EOF"),
        (
            "application/json",
            json!([{ "name": "1" }]).to_string(),
            400,
            "missing field `title`",
        ),
        (
            "text/csv",
            "name,title\n1,a\n1,b\n".to_owned(),
            422,
            "two lines have this name",
        ),
        ("text/csv", "name,sprint\n1,a\n".to_owned(), 400, "sprint"),
        (
            "text/plain",
            "1".to_owned(),
            415,
            "application/json or text/csv",
        ),
    ] {
        let request = Request::post(format!("{}/imports", place.path()))
            .header(header::CONTENT_TYPE, media_type);
        let (found, _, body) = tracker.send(request.body(Body::from(body))?).await?;
        assert_eq!(found, status, "{body}");
        assert!(text(&body["error"]).contains(reason), "{body}");
    }
    Ok(())
}
