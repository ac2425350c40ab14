-- Keys are `BLOB`, which SQLite compares as bytes: in the order in which they were made. WITHOUT ROWID,
-- so that the rows themselves lie in this order.
CREATE TABLE products (
    "id" BLOB NOT NULL PRIMARY KEY,
    sku TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0)
) WITHOUT ROWID;

CREATE TABLE customers (
    "id" BLOB NOT NULL PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE orders (
    "id" BLOB NOT NULL PRIMARY KEY,
    customer_id BLOB NOT NULL REFERENCES customers (id)
) WITHOUT ROWID;

-- A customer's orders, newest first, are read from the end of this.
CREATE INDEX orders_of_customer ON orders (customer_id, id);

CREATE TABLE order_lines (
    "id" BLOB NOT NULL PRIMARY KEY,
    order_id BLOB NOT NULL REFERENCES orders (id),
    product_id BLOB NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    price_cents INTEGER NOT NULL,
    UNIQUE (order_id, product_id)
) WITHOUT ROWID;
