//! Tests of routes that read and create objects.

use serde_json::{Value, json};

use crate::{Client, Result, text, titles};

pub(crate) async fn what_is_made_can_be_found(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    // The masked id is a UUID of version 4. The text of one of version 7 would begin with 01, from its time.
    let id: uuid::Uuid = of_type_id(&place.tenant)?;
    assert_eq!(id.get_version_num(), 4);
    assert_eq!(of_type_id(&place.project)?.get_version_num(), 7);
    let tenant = tracker
        .found(&format!("/api/tenants/{}", place.tenant))
        .await?;
    assert_eq!(tenant, json!({ "id": place.tenant, "name": "Engines" }));
    let projects = tracker
        .found(&format!("/api/tenants/{}/projects", place.tenant))
        .await?;
    assert_eq!(
        projects,
        json!([{ "id": place.project, "tenant": place.tenant, "name": "Engine" }])
    );

    let issues = format!("{}/issues", place.path());
    let above = tracker.issue(&place, "Slow").await?;
    let new = json!({ "title": "Slow search", "body": "Since Tuesday.", "parent": above["id"] });
    let issue = tracker.made(&issues, &new).await?;
    assert!(text(&issue["created_at"]).starts_with("20"), "{issue}");
    let expected = json!({
        "id": issue["id"], "project": place.project, "parent": above["id"], "title": "Slow search",
        "body": "Since Tuesday.", "is_closed": false, "version": 1, "created_at": issue["created_at"], "labels": [],
    });
    assert_eq!(issue, expected);
    let below = tracker
        .found(&format!("{issues}?parent={}", text(&above["id"])))
        .await?;
    assert_eq!(titles(&below), ["Slow search"]);

    let comments = format!("{issues}/{}/comments", text(&issue["id"]));
    for body in ["First", "Second", "Third"] {
        let made = tracker
            .made(&comments, &json!({ "author": "Ada", "body": body }))
            .await?;
        assert_eq!((text(&made["body"]), &made["issue"]), (body, &issue["id"]));
    }
    let page = tracker.found(&format!("{comments}?first=2")).await?;
    assert_eq!(page["edges"][1]["node"]["body"], "Second");
    let next = format!("{comments}?after={}", text(&page["pageInfo"]["endCursor"]));
    let next = tracker.found(&next).await?;
    assert_eq!(next["edges"][0]["node"]["body"], "Third");
    assert_eq!(next["pageInfo"]["hasNextPage"], false);
    Ok(())
}

/// Decodes a TypeID as its specification says, and returns the UUID.
fn of_type_id(text: &str) -> Result<uuid::Uuid> {
    let (_, suffix) = text.rsplit_once('_').ok_or("no prefix")?;
    let digit = |byte| {
        b"0123456789abcdefghjkmnpqrstvwxyz"
            .iter()
            .position(|it| *it == byte)
    };
    let number = suffix.bytes().try_fold(0_u128, |number, byte| {
        Some(number << 5 | digit(byte)? as u128)
    });
    Ok(uuid::Uuid::from_u128(number.ok_or("no suffix")?))
}

/// Suffixes of ids that do not exist: a masked one and one that is not masked.
const NOBODY: &str = "7zgv8xgyev9k1shh6w1g60eecf";
const NOTHING: &str = "01h455vb4pex5vsknk084sn02q";

pub(crate) async fn ids_that_cannot_be_are_told(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let path = place.path();
    let issue = tracker.issue(&place, "Slow").await?;
    let issue = text(&issue["id"]);
    for (path, status, reason) in [
        (
            "/api/tenants/1".to_owned(),
            400,
            "not a `TenantId`: expected the prefix \"ten\"",
        ),
        // A key that is not masked is refused as an id, so that nobody can guess an id by its time.
        (
            format!("/api/tenants/ten_{NOTHING}"),
            400,
            "found an unmasked key",
        ),
        (
            format!("/api/tenants/ten_{NOBODY}"),
            404,
            "no ten_7zgv8xgyev9k1shh6w1g60eecf here",
        ),
        (
            format!("/api/tenants/ten_{NOBODY}/projects"),
            404,
            "no ten_",
        ),
        (format!("/api/tenants/ten_{NOBODY}/labels"), 404, "no ten_"),
        (
            format!(
                "/api/tenants/ten_{NOBODY}/projects/{}/issues",
                place.project
            ),
            404,
            "no ten_",
        ),
        (
            format!(
                "/api/tenants/{}/projects/prj_{NOTHING}/issues",
                place.tenant
            ),
            404,
            "no prj_",
        ),
        (format!("{path}/issues/iss_{NOTHING}"), 404, "no iss_"),
        (
            format!("{path}/issues/{}", issue.to_uppercase()),
            400,
            "\"iss\"",
        ),
        (format!("{path}/issues/{}", place.project), 400, "\"iss\""),
        // This is a UUID of version 4, and ids of issues have version 7.
        (format!("{path}/issues/iss_{NOBODY}"), 400, "version 4"),
        (format!("{path}/issues?after={issue}"), 400, "cursor"),
        (format!("{path}/issues?first=many"), 400, "a number of rows"),
        (
            format!("{path}/issues?first=1&last=1"),
            400,
            "either `first` or `last`",
        ),
        (format!("{path}/issues?is_closed=perhaps"), 400, "is_closed"),
        (format!("{path}/issues?parent=1"), 400, "IssueId"),
        (format!("{path}/imports/imp_{NOTHING}"), 404, "no imp_"),
        ("/nowhere".to_owned(), 404, "no such route"),
    ] {
        let (found, body) = tracker.get(&path).await?;
        assert_eq!(found, status, "{path}: {body}");
        assert!(text(&body["error"]).contains(reason), "{path}: {body}");
    }
    let reason = tracker.refused("DELETE", &path, &Value::Null, 405).await?;
    assert_eq!(reason, "no such method here");
    Ok(())
}

pub(crate) async fn what_is_against_the_rules_is_told(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let (path, tenant) = (place.path(), format!("/api/tenants/{}", place.tenant));
    let issue = tracker.issue(&place, "Slow").await?;
    let edited = format!("{path}/issues/{}", text(&issue["id"]));
    tracker
        .made(&format!("{tenant}/labels"), &json!({ "name": "bug" }))
        .await?;
    let long = "x".repeat(201);
    for (method, path, body, status, reason) in [
        (
            "POST",
            "/api/tenants".to_owned(),
            json!({ "name": " " }),
            422,
            "the name is empty",
        ),
        (
            "POST",
            "/api/tenants".to_owned(),
            json!({ "name": "a\0b" }),
            422,
            "NUL",
        ),
        (
            "POST",
            "/api/tenants".to_owned(),
            json!({ "title": "a" }),
            400,
            "title",
        ),
        (
            "POST",
            "/api/tenants".to_owned(),
            json!("a"),
            400,
            "invalid type",
        ),
        (
            "POST",
            format!("{tenant}/projects"),
            json!({ "name": "Engine" }),
            409,
            "projects",
        ),
        (
            "POST",
            format!("{tenant}/labels"),
            json!({ "name": "bug" }),
            409,
            "labels",
        ),
        (
            "POST",
            format!("{path}/issues"),
            json!({ "title": long }),
            422,
            "more than 200 characters",
        ),
        (
            "POST",
            format!("{path}/issues"),
            json!({ "title": "a", "parent": 7 }),
            400,
            "the text of a `IssueId`",
        ),
        (
            "POST",
            format!("{path}/issues"),
            json!({ "title": "a", "parent": format!("iss_{NOTHING}") }),
            422,
            "is no issue of this project",
        ),
        (
            "PATCH",
            edited.clone(),
            json!({ "title": "a" }),
            400,
            "version",
        ),
        (
            "PATCH",
            edited.clone(),
            json!({ "version": 1, "title": "" }),
            422,
            "the title is empty",
        ),
        (
            "PATCH",
            edited.clone(),
            json!({ "version": 1, "id": "iss_1" }),
            400,
            "unknown field `id`",
        ),
        (
            "PUT",
            format!("{edited}/labels/lbl_{NOTHING}"),
            Value::Null,
            404,
            "no lbl_",
        ),
        (
            "POST",
            format!("{edited}/comments"),
            json!({ "author": "", "body": "a" }),
            422,
            "the author is empty",
        ),
    ] {
        let error = tracker.refused(method, &path, &body, status).await?;
        assert!(error.contains(reason), "{path} {body}: {error}");
    }
    assert_eq!(tracker.found(&edited).await?, issue);
    Ok(())
}

pub(crate) async fn a_tenant_sees_its_own_alone(tracker: Client) -> Result {
    let [ours, theirs] = [
        tracker.place("Engines").await?,
        tracker.place("Looms").await?,
    ];
    let issue = tracker.issue(&theirs, "Torn").await?;
    let label = format!("/api/tenants/{}/labels", theirs.tenant);
    let label = tracker.made(&label, &json!({ "name": "bug" })).await?;
    let (id, label) = (text(&issue["id"]), text(&label["id"]));
    // A path may name their project under our tenant, or their issue in our project.
    let foreign = format!("/api/tenants/{}/projects/{}", ours.tenant, theirs.project);
    for path in [
        foreign.clone(),
        format!("{foreign}/issues"),
        format!("{foreign}/issues/{id}"),
    ] {
        assert_eq!(tracker.get(&path).await?.0, 404, "{path}");
    }
    let ours = ours.path();
    let edit = json!({ "version": 1, "title": "Ours" });
    tracker
        .refused("PATCH", &format!("{ours}/issues/{id}"), &edit, 404)
        .await?;
    let comment = json!({ "author": "Ada", "body": "Ours" });
    tracker
        .refused(
            "POST",
            &format!("{ours}/issues/{id}/comments"),
            &comment,
            404,
        )
        .await?;
    let below = json!({ "title": "Ours", "parent": id });
    tracker
        .refused("POST", &format!("{ours}/issues"), &below, 422)
        .await?;
    let own = tracker
        .made(&format!("{ours}/issues"), &json!({ "title": "Ours" }))
        .await?;
    let labelled = format!("{ours}/issues/{}/labels/{label}", text(&own["id"]));
    tracker.refused("PUT", &labelled, &Value::Null, 404).await?;
    assert_eq!(
        titles(&tracker.found(&format!("{ours}/issues")).await?),
        ["Ours"]
    );
    assert_eq!(
        tracker
            .found(&format!("{}/issues/{id}", theirs.path()))
            .await?,
        issue
    );
    Ok(())
}

pub(crate) async fn lists_are_newest_first_page_by_page(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    let issues = format!("{}/issues", place.path());
    let mut newest_first = Vec::new();
    for number in 0..25 {
        let title = format!("Issue {number}");
        let issue = tracker.issue(&place, &title).await?;
        if number % 5 == 0 {
            let edited = format!("{issues}/{}", text(&issue["id"]));
            tracker
                .ask(
                    "PATCH",
                    &edited,
                    &json!({ "version": 1, "is_closed": true }),
                )
                .await?;
        }
        newest_first.insert(0, title);
    }
    let mut walked = Vec::new();
    let mut path = format!("{issues}?first=10");
    let last = loop {
        let page = tracker.found(&path).await?;
        walked.extend(titles(&page).into_iter().map(str::to_owned));
        // An issue that is created between two requests does not shift the next pages.
        tracker.issue(&place, "New").await?;
        if page["pageInfo"]["hasNextPage"] == false {
            break page;
        }
        path = format!(
            "{issues}?first=10&after={}",
            text(&page["pageInfo"]["endCursor"])
        );
    };
    assert_eq!(walked, newest_first);
    let back = format!(
        "{issues}?last=2&before={}",
        text(&last["pageInfo"]["startCursor"])
    );
    assert_eq!(titles(&tracker.found(&back).await?), ["Issue 6", "Issue 5"]);
    let closed = tracker
        .found(&format!("{issues}?is_closed=true&first=3"))
        .await?;
    assert_eq!(titles(&closed), ["Issue 20", "Issue 15", "Issue 10"]);
    assert_eq!(closed["pageInfo"]["hasNextPage"], true);
    let many = tracker.found(&format!("{issues}?first=4000000000")).await?;
    assert_eq!(titles(&many).len(), 28);
    Ok(())
}

pub(crate) async fn every_operation_of_the_description_is_there(tracker: Client) -> Result {
    let api = tracker.found("/api/openapi.json").await?;
    let pattern = "^iss_[0-7][0-9a-hjkmnp-tv-z]{25}$";
    assert_eq!(api["components"]["schemas"]["IssueId"]["pattern"], pattern);
    let mut operations = 0;
    for (path, item) in api["paths"].as_object().ok_or("no paths")? {
        let filled = ["tenant", "project", "issue", "label", "import"];
        let filled = filled.iter().fold(path.clone(), |path, name| {
            path.replace(&format!("{{{name}}}"), "wrong")
        });
        for (method, operation) in item.as_object().ok_or("no operations")? {
            let (status, body) = tracker
                .ask(&method.to_uppercase(), &filled, &json!(7))
                .await?;
            // The status shows that the route exists, and that its handler has refused the request.
            assert!(
                matches!(status.as_u16(), 400),
                "{method} {path}: {status} {body}"
            );
            let described = ["200", "201", "202"]
                .iter()
                .any(|code| operation["responses"].get(code).is_some());
            assert!(described, "{operation}");
            operations += 1;
        }
    }
    assert_eq!(operations, 17);
    // Every reference names a schema of the document.
    let text = api.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        assert!(api["components"]["schemas"].get(name).is_some(), "{name}");
    }
    Ok(())
}

pub(crate) async fn graphql_finds_issues_and_pages(tracker: Client) -> Result {
    let place = tracker.place("Engines").await?;
    for title in ["One", "Two", "Three"] {
        tracker.issue(&place, title).await?;
    }
    let query = "query($tenant: TenantId!, $project: ProjectId!, $first: Int, $after: String) {
        issues(tenant: $tenant, project: $project, first: $first, after: $after) {
            edges { cursor node { id title version isClosed parent createdAt labels } }
            pageInfo { hasNextPage endCursor }
        }
    }";
    let ask = async |query: &str, variables: Value| -> Result<Value> {
        let body = json!({ "query": query, "variables": variables });
        let (status, answer) = tracker.ask("POST", "/graphql", &body).await?;
        assert_eq!(status, 200, "{answer}");
        Ok(answer)
    };
    let mut variables = json!({ "tenant": place.tenant, "project": place.project, "first": 2 });
    let first = ask(query, variables.clone()).await?;
    let page = &first["data"]["issues"];
    assert_eq!(titles(page), ["Three", "Two"], "{first}");
    assert_eq!(page["pageInfo"]["hasNextPage"], true);
    variables["after"] = page["pageInfo"]["endCursor"].clone();
    let next = ask(query, variables).await?;
    assert_eq!(titles(&next["data"]["issues"]), ["One"], "{next}");

    let one = "query($tenant: TenantId!, $project: ProjectId!, $id: IssueId!) {
        issue(tenant: $tenant, project: $project, id: $id) { id title }
    }";
    let id = &page["edges"][0]["node"]["id"];
    let found = ask(
        one,
        json!({ "tenant": place.tenant, "project": place.project, "id": id }),
    )
    .await?;
    assert_eq!(
        found,
        json!({ "data": { "issue": { "id": id, "title": "Three" } } })
    );
    let nothing = format!("iss_{NOTHING}");
    for (id, reason, code) in [
        (
            json!(nothing),
            format!("no {nothing} here"),
            json!("NOT_FOUND"),
        ),
        (
            json!(place.project),
            "expected the prefix \"iss\", found \"prj\"".to_owned(),
            Value::Null,
        ),
    ] {
        let refused = ask(
            one,
            json!({ "tenant": place.tenant, "project": place.project, "id": id }),
        )
        .await?;
        let error = &refused["errors"][0];
        assert!(text(&error["message"]).contains(&reason), "{refused}");
        assert_eq!(error["extensions"]["code"], code);
    }
    Ok(())
}
