-- Keys are `BLOB`. SQLite compares it as bytes, so keys are sorted by the time at which they were made. The tables are
-- WITHOUT ROWID, so that the rows themselves are stored in this order.
CREATE TABLE IF NOT EXISTS tenants (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS projects (
    id BLOB NOT NULL PRIMARY KEY,
    tenant BLOB NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    UNIQUE (tenant, name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS labels (
    id BLOB NOT NULL PRIMARY KEY,
    tenant BLOB NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    UNIQUE (tenant, name)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS issues (
    id BLOB NOT NULL PRIMARY KEY,
    project BLOB NOT NULL REFERENCES projects (id),
    parent BLOB REFERENCES issues (id),
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    is_closed BOOLEAN NOT NULL,
    version INTEGER NOT NULL,
    request BLOB UNIQUE,
    contents BLOB
) WITHOUT ROWID;

-- A list of a project's issues, newest first, reads this index from its end.
CREATE INDEX IF NOT EXISTS issues_of_project ON issues (project, id);

CREATE TABLE IF NOT EXISTS issue_labels (
    issue BLOB NOT NULL REFERENCES issues (id),
    label BLOB NOT NULL REFERENCES labels (id),
    PRIMARY KEY (issue, label)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS comments (
    id BLOB NOT NULL PRIMARY KEY,
    issue BLOB NOT NULL REFERENCES issues (id),
    author TEXT NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS comments_of_issue ON comments (issue, id);

CREATE INDEX IF NOT EXISTS issues_of_parent ON issues (parent, id);
