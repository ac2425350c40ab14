-- Keys are `uuid`, which PostgreSQL compares as bytes: in the order in which they were made.
CREATE TABLE products (
    "id" uuid NOT NULL PRIMARY KEY,
    sku text NOT NULL UNIQUE,
    name text NOT NULL,
    price_cents bigint NOT NULL CHECK (price_cents >= 0)
);

CREATE TABLE customers (
    "id" uuid NOT NULL PRIMARY KEY,
    email text NOT NULL UNIQUE,
    name text NOT NULL
);

CREATE TABLE orders (
    "id" uuid NOT NULL PRIMARY KEY,
    customer_id uuid NOT NULL REFERENCES customers (id)
);

-- A customer's orders, newest first, are read from the end of this.
CREATE INDEX orders_of_customer ON orders (customer_id, id);

CREATE TABLE order_lines (
    "id" uuid NOT NULL PRIMARY KEY,
    order_id uuid NOT NULL REFERENCES orders (id),
    product_id uuid NOT NULL REFERENCES products (id),
    quantity integer NOT NULL CHECK (quantity > 0),
    price_cents bigint NOT NULL,
    UNIQUE (order_id, product_id)
);
