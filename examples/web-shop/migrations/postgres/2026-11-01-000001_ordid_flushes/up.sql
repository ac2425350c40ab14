-- Updates and deletes of a unit of work are known by a row of this table, if the answer to COMMIT is lost.
CREATE TABLE IF NOT EXISTS ordid_flushes (
    id uuid NOT NULL PRIMARY KEY,
    flushed_at timestamptz NOT NULL DEFAULT now()
);
