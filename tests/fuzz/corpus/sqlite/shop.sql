CREATE TABLE customer (id INTEGER PRIMARY KEY, city TEXT, since DATE, boss INTEGER REFERENCES customer);
CREATE TABLE "Order Lines" (k TEXT, n INTEGER, customer INTEGER REFERENCES customer(id), price REAL, tags TEXT, sent TIMESTAMP, PRIMARY KEY (k, n)) WITHOUT ROWID;
CREATE TABLE part (k TEXT, n INTEGER, e, twice INTEGER AS (n * 2), FOREIGN KEY (k, n) REFERENCES "Order Lines");
CREATE VIEW v AS SELECT * FROM part;
INSERT INTO customer VALUES (1, 'rome', '2020-01-31', NULL), (2, 'oslo', '0000-01-01', 1), (3, NULL, NULL, 9);
INSERT INTO "Order Lines" VALUES ('a', 1, 1, 2.5, 'x|y', '2020-02-01 10:00:00'), ('a', 2, 2, 1e308, 'y', '9999-12-31'), ('b', 1, 7, 'NaN', '', NULL);
INSERT INTO part VALUES ('a', 2, '[1, 2]'), ('b', 1, '{3,4}'), ('c', 1, x'00');
customer.city cat unknown 2
Order_Lines.tags float several |
part.e float vector # lists
