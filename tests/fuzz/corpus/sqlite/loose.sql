CREATE TABLE a (k, x, "when"); CREATE TABLE b (a_id, y, t);
INSERT INTO a VALUES (1, 1.5, '2020-01-01'), ('1', x'ff', 3), (CAST(x'6100' AS TEXT), CAST(x'ff' AS TEXT), '2016-12-31T23:59:60+02:00');
INSERT INTO b SELECT a.k, b.value, b.value FROM a, json_each('[1, 2, null, "x", 1e999]') b;
a.k key
b.a_id -> a
b.y class
a.when time row
