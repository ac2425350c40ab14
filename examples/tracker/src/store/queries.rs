//! The tracker's queries. This file is compiled once for each database, whose type is `Db`.

use std::collections::HashMap;

use ordid::{KeyType, Tracked, clock::Timestamp, page::Slice, scheme::TimeOrdered};
use ordid_sqlx::{OnConflict, UnitOfWork};
use sqlx::{Pool, QueryBuilder};

use super::Db;
use crate::{
    error::{Error, Kind, Stale},
    import::{Imported, Line, Observer},
    model::{
        Comment, CommentId, EditedIssue, Filter, Issue, IssueId, IssueLabel, IssueRow, Label,
        LabelId, Named, NewComment, NewIssue, Place, Project, ProjectId, RequestId, Tenant,
        TenantId,
    },
    store::{checked, checked_body, checked_label, checked_title},
};

#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) pool: Pool<Db>,
}

type Result<T> = std::result::Result<T, Error>;

/// Returns the keys that the rows of a page stand between: the lowest and the highest one where the client has named none.
/// With `$2 IS NULL OR id > $2`, SQLite would read all rows before the page.
fn bounds<K: KeyType<Scheme: TimeOrdered>>(slice: &Slice<K>) -> Result<(K, K)> {
    let all = K::range(Timestamp::MIN..Timestamp::MAX)?;
    Ok((
        slice.above.unwrap_or(all.start),
        slice.below.unwrap_or(all.end),
    ))
}

impl Database {
    pub(super) async fn new(pool: Pool<Db>, schema: &'static str) -> Result<Self> {
        sqlx::raw_sql(schema).execute(&pool).await?;
        // Flushes with updates write marker rows. If the answer to a COMMIT is lost, its row tells whether it
        // succeeded.
        ordid_sqlx::create_flushes_table(&pool).await?;
        ordid_sqlx::remove_old_markers(&pool).await?;
        Ok(Self { pool })
    }

    pub(crate) async fn add_tenant(&self, new: Named) -> Result<Tenant> {
        let name = checked("the name", new.name, 200)?;
        let tenant = Tenant {
            id: TenantId::generate(),
            name,
        };
        let mut work = UnitOfWork::new();
        let id = work.add(tenant);
        work.flush(&self.pool).await?;
        self.tenant(id).await
    }

    pub(crate) async fn tenant(&self, id: TenantId) -> Result<Tenant> {
        let found = sqlx::query_as("SELECT id, name FROM tenants WHERE id = $1").bind(id);
        let found = found.fetch_optional(&self.pool).await?;
        found.ok_or_else(|| Error::not_found(id))
    }

    pub(crate) async fn add_project(&self, tenant: TenantId, new: Named) -> Result<Project> {
        self.tenant(tenant).await?;
        let name = checked("the name", new.name, 200)?;
        let mut work = UnitOfWork::new();
        let project = work.add(Project {
            id: ProjectId::generate(),
            tenant,
            name,
        });
        work.flush(&self.pool).await?;
        self.project(Place { tenant, project }).await
    }

    /// Returns a project. Every query of a project's issues calls this first, so that a tenant sees only its own
    /// issues.
    pub(crate) async fn project(&self, place: Place) -> Result<Project> {
        let found =
            sqlx::query_as("SELECT id, tenant, name FROM projects WHERE id = $1 AND tenant = $2");
        let found = found.bind(place.project).bind(place.tenant);
        match found.fetch_optional(&self.pool).await? {
            Some(project) => Ok(project),
            None => {
                self.tenant(place.tenant).await?;
                Err(Error::not_found(place.project))
            }
        }
    }

    pub(crate) async fn projects(&self, tenant: TenantId) -> Result<Vec<Project>> {
        self.tenant(tenant).await?;
        let found =
            sqlx::query_as("SELECT id, tenant, name FROM projects WHERE tenant = $1 ORDER BY id");
        Ok(found.bind(tenant).fetch_all(&self.pool).await?)
    }

    pub(crate) async fn add_label(&self, tenant: TenantId, new: Named) -> Result<Label> {
        self.tenant(tenant).await?;
        let name = checked_label(new.name)?;
        let label = Label {
            id: LabelId::generate(),
            tenant,
            name,
        };
        let mut work = UnitOfWork::new();
        work.add(label.clone());
        work.flush(&self.pool).await?;
        Ok(label)
    }

    pub(crate) async fn labels(&self, tenant: TenantId) -> Result<Vec<Label>> {
        self.tenant(tenant).await?;
        let found =
            sqlx::query_as("SELECT id, tenant, name FROM labels WHERE tenant = $1 ORDER BY name");
        Ok(found.bind(tenant).fetch_all(&self.pool).await?)
    }

    pub(crate) async fn issues(
        &self,
        place: Place,
        slice: Slice<IssueId>,
        only: Filter,
    ) -> Result<Vec<Issue>> {
        self.project(place).await?;
        let sql = if slice.is_descending {
            "SELECT * FROM issues WHERE project = $1 AND id > $2 AND id < $3 \
             AND ($4 IS NULL OR is_closed = $4) AND ($5 IS NULL OR parent = $5) ORDER BY id DESC LIMIT $6"
        } else {
            "SELECT * FROM issues WHERE project = $1 AND id > $2 AND id < $3 \
             AND ($4 IS NULL OR is_closed = $4) AND ($5 IS NULL OR parent = $5) ORDER BY id LIMIT $6"
        };
        let (above, below) = bounds(&slice)?;
        let rows: Vec<IssueRow> = sqlx::query_as(sql)
            .bind(place.project)
            .bind(above)
            .bind(below)
            .bind(only.is_closed)
            .bind(only.parent)
            .bind(i64::from(slice.rows()))
            .fetch_all(&self.pool)
            .await?;
        self.with_labels(rows).await
    }

    /// Reads the labels of a page of issues. There may be many issues between those of a page with a filter, so the query
    /// has the keys of the page.
    async fn with_labels(&self, rows: Vec<IssueRow>) -> Result<Vec<Issue>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(
            "SELECT issue_labels.issue, labels.name FROM issue_labels \
             JOIN labels ON labels.id = issue_labels.label WHERE issue_labels.issue IN (",
        );
        let mut keys = query.separated(", ");
        for row in &rows {
            keys.push_bind(row.id);
        }
        query.push(") ORDER BY labels.name");
        let found: Vec<(IssueId, String)> = query.build_query_as().fetch_all(&self.pool).await?;
        let mut labels: HashMap<IssueId, Vec<String>> = HashMap::new();
        for (issue, name) in found {
            labels.entry(issue).or_default().push(name);
        }
        let issues = rows.into_iter().map(Issue::from);
        let labelled = issues.map(|issue| Issue {
            labels: labels.remove(&issue.id).unwrap_or_default(),
            ..issue
        });
        Ok(labelled.collect())
    }

    async fn row(&self, place: Place, id: IssueId) -> Result<IssueRow> {
        self.project(place).await?;
        let found = sqlx::query_as("SELECT * FROM issues WHERE id = $1 AND project = $2");
        let found = found
            .bind(id)
            .bind(place.project)
            .fetch_optional(&self.pool)
            .await?;
        found.ok_or_else(|| Error::not_found(id))
    }

    pub(crate) async fn issue(&self, place: Place, id: IssueId) -> Result<Issue> {
        let row = self.row(place, id).await?;
        let mut issues = self.with_labels(vec![row]).await?;
        issues.pop().ok_or_else(|| Error::not_found(id))
    }

    /// Opens an issue, and returns it with `true`. If a request with the same key has opened it before, it returns that
    /// issue with `false`.
    pub(crate) async fn open_issue(
        &self,
        place: Place,
        new: NewIssue,
        request: Option<RequestId>,
    ) -> Result<(Issue, bool)> {
        self.project(place).await?;
        let new = NewIssue {
            title: checked_title(new.title)?,
            body: checked_body(new.body)?,
            parent: new.parent,
        };
        if let Some(parent) = new.parent {
            let outside = |error: Error| match error.kind() {
                Kind::NotFound => Error::refused(format_args!(
                    "the parent {parent} is no issue of this project"
                )),
                _ => error,
            };
            self.row(place, parent).await.map_err(outside)?;
        }
        let contents = request.map(|_| RequestId::of_contents(&new));
        let row = IssueRow {
            id: IssueId::generate(),
            project: place.project,
            parent: new.parent,
            title: new.title,
            body: new.body,
            is_closed: false,
            version: 1,
            request,
            contents,
        };
        let mut work = UnitOfWork::new();
        let opened = work.upsert_with(row, OnConflict::of(IssueRow::request).ignore());
        work.flush(&self.pool).await?;
        let id = match request {
            None => opened,
            Some(request) => {
                let known = sqlx::query_as("SELECT id, contents FROM issues WHERE request = $1")
                    .bind(request);
                let (id, known): (IssueId, Option<RequestId>) = known.fetch_one(&self.pool).await?;
                if known != contents {
                    return Err(Error::refused(
                        "another issue was opened with this idempotency key",
                    ));
                }
                id
            }
        };
        Ok((self.issue(place, id).await?, id == opened))
    }

    pub(crate) async fn edit_issue(
        &self,
        place: Place,
        id: IssueId,
        edited: EditedIssue,
    ) -> Result<Issue> {
        let read = self.row(place, id).await?;
        // The row gets the version that the client has seen. The flush compares it with the current one.
        let mut issue = Tracked::new(IssueRow {
            version: edited.version,
            ..read
        });
        if let Some(title) = edited.title {
            issue.title = checked_title(title)?;
        }
        if let Some(body) = edited.body {
            issue.body = checked_body(body)?;
        }
        if let Some(is_closed) = edited.is_closed {
            issue.is_closed = is_closed;
        }
        let mut work = UnitOfWork::new();
        // If the edit changes nothing, nothing is written, whatever the version.
        if work.update_changed(issue)?
            && let Err(error) = work.flush(&self.pool).await
        {
            if !error.is_stale() {
                return Err(error.into());
            }
            let stale = Stale {
                read_version: edited.version,
                issue: self.issue(place, id).await?,
            };
            let message = format!(
                "{id} has changed since it was read: it was read with version {}, and has version {}",
                edited.version, stale.issue.version
            );
            return Err(Error::new(Kind::Stale(Box::new(stale)), message));
        }
        self.issue(place, id).await
    }

    async fn check_label(&self, place: Place, label: LabelId) -> Result<()> {
        let labels = self.labels(place.tenant).await?;
        let is_there = labels.iter().any(|it| it.id == label);
        is_there
            .then_some(())
            .ok_or_else(|| Error::not_found(label))
    }

    /// Adds a label to an issue, unless the issue already has it.
    pub(crate) async fn put_label(
        &self,
        place: Place,
        id: IssueId,
        label: LabelId,
    ) -> Result<Issue> {
        self.change_label(place, id, label, |work, row| {
            work.insert_or_ignore(row);
        })
        .await
    }

    pub(crate) async fn take_label(
        &self,
        place: Place,
        id: IssueId,
        label: LabelId,
    ) -> Result<Issue> {
        self.change_label(place, id, label, |work, row| work.delete(&row))
            .await
    }

    async fn change_label(
        &self,
        place: Place,
        id: IssueId,
        label: LabelId,
        change: fn(&mut UnitOfWork<Db>, IssueLabel),
    ) -> Result<Issue> {
        self.row(place, id).await?;
        self.check_label(place, label).await?;
        let mut work = UnitOfWork::new();
        change(&mut work, IssueLabel { issue: id, label });
        work.flush(&self.pool).await?;
        self.issue(place, id).await
    }

    pub(crate) async fn comments(
        &self,
        place: Place,
        id: IssueId,
        slice: Slice<CommentId>,
    ) -> Result<Vec<Comment>> {
        self.row(place, id).await?;
        let sql = if slice.is_descending {
            "SELECT * FROM comments WHERE issue = $1 AND id > $2 AND id < $3 ORDER BY id DESC LIMIT $4"
        } else {
            "SELECT * FROM comments WHERE issue = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4"
        };
        let (above, below) = bounds(&slice)?;
        let rows = sqlx::query_as(sql).bind(id).bind(above).bind(below);
        let rows = rows.bind(i64::from(slice.rows())).fetch_all(&self.pool);
        Ok(rows.await?)
    }

    pub(crate) async fn add_comment(
        &self,
        place: Place,
        id: IssueId,
        new: NewComment,
    ) -> Result<Comment> {
        self.row(place, id).await?;
        let comment = Comment {
            id: CommentId::generate(),
            issue: id,
            author: checked("the author", new.author, 200)?,
            body: checked("the body", new.body, 20_000)?,
        };
        let mut work = UnitOfWork::new();
        work.add(comment.clone());
        work.flush(&self.pool).await?;
        Ok(comment)
    }

    /// Opens an issue for each line, with its labels, in one transaction. Lines that were imported before are left out,
    /// so that an import can be sent again.
    pub(crate) async fn import(
        &self,
        place: Place,
        lines: Vec<Line>,
        observer: Observer,
    ) -> Result<Imported> {
        self.project(place).await?;
        let known = sqlx::query_as(
            "SELECT request, id FROM issues WHERE project = $1 AND request IS NOT NULL",
        );
        let known: Vec<(RequestId, IssueId)> =
            known.bind(place.project).fetch_all(&self.pool).await?;
        let known: HashMap<_, _> = known.into_iter().collect();
        let labels = self.labels(place.tenant).await?;
        let mut labels: HashMap<_, _> = labels
            .into_iter()
            .map(|label| (label.name, label.id))
            .collect();

        // The keys are made first, so that a parent may stand anywhere in the file.
        let requests = lines
            .iter()
            .map(|line| RequestId::of_import(place.project, &line.name));
        let requests: Vec<_> = requests.collect();
        let mut ids: HashMap<String, IssueId> = HashMap::new();
        for (line, request) in lines.iter().zip(&requests) {
            let id = known
                .get(request)
                .copied()
                .unwrap_or_else(IssueId::generate);
            ids.insert(line.name.clone(), id);
        }
        let count = lines.len();
        let mut work = UnitOfWork::new();
        work.reserve::<IssueRow>(count);
        for (line, request) in lines.into_iter().zip(requests) {
            if known.contains_key(&request) {
                continue;
            }
            let parent = line.parent.map(|name| {
                let unknown =
                    || Error::refused(format_args!("{}: no line is named {name:?}", line.name));
                let before = || known.get(&RequestId::of_import(place.project, &name));
                ids.get(&name).or_else(before).copied().ok_or_else(unknown)
            });
            let issue = work.add(IssueRow {
                id: ids[&line.name],
                project: place.project,
                parent: parent.transpose()?,
                title: line.title,
                body: line.body,
                is_closed: false,
                version: 1,
                request: Some(request),
                contents: None,
            });
            for name in line.labels {
                let label = *labels.entry(name.clone()).or_insert_with(|| {
                    work.add(Label {
                        id: LabelId::generate(),
                        tenant: place.tenant,
                        name,
                    })
                });
                work.add(IssueLabel { issue, label });
            }
        }
        let added = work.get::<IssueRow>().len();
        work.observe(move |progress| observer(progress.done, progress.total));
        work.flush(&self.pool).await?;
        Ok(Imported {
            added,
            known: count - added,
        })
    }
}
