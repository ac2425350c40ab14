DROP TABLE order_lines;
DROP TABLE orders;
DROP TABLE customers;
DROP TABLE products;
