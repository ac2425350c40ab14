-- Keys are `uuid`. PostgreSQL compares it as bytes, so keys are sorted by the time at which they were made.
CREATE TABLE IF NOT EXISTS tenants (
    id uuid NOT NULL PRIMARY KEY,
    name text NOT NULL
);

CREATE TABLE IF NOT EXISTS projects (
    id uuid NOT NULL PRIMARY KEY,
    tenant uuid NOT NULL REFERENCES tenants (id),
    name text NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE IF NOT EXISTS labels (
    id uuid NOT NULL PRIMARY KEY,
    tenant uuid NOT NULL REFERENCES tenants (id),
    name text NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE IF NOT EXISTS issues (
    id uuid NOT NULL PRIMARY KEY,
    project uuid NOT NULL REFERENCES projects (id),
    parent uuid REFERENCES issues (id),
    title text NOT NULL,
    body text NOT NULL,
    is_closed boolean NOT NULL,
    version bigint NOT NULL,
    request uuid UNIQUE,
    contents uuid
);

-- A list of a project's issues, newest first, reads this index from its end.
CREATE INDEX IF NOT EXISTS issues_of_project ON issues (project, id);

CREATE TABLE IF NOT EXISTS issue_labels (
    issue uuid NOT NULL REFERENCES issues (id),
    label uuid NOT NULL REFERENCES labels (id),
    PRIMARY KEY (issue, label)
);

CREATE TABLE IF NOT EXISTS comments (
    id uuid NOT NULL PRIMARY KEY,
    issue uuid NOT NULL REFERENCES issues (id),
    author text NOT NULL,
    body text NOT NULL
);

CREATE INDEX IF NOT EXISTS comments_of_issue ON comments (issue, id);

CREATE INDEX IF NOT EXISTS issues_of_parent ON issues (parent, id);
