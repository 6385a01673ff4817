#!/usr/bin/env python3
"""A driver for DuckDB: `isolario run --db 'exec:python3 duckdb_driver.py FILE'`.

Needs the package `duckdb`. DuckDB lets one process at a time write, so one serves every session.
"""

import sys

import duckdb
from shared_sessions import Refused, Registers, serve

DATABASE = duckdb.connect(sys.argv[1] if len(sys.argv) > 1 else ":memory:")


def greet(request):
    if request["isolation"] not in (None, "snapshot"):
        raise Refused("fatal", "there is no isolation level but snapshot")
    return {
        "name": "DuckDB " + duckdb.__version__,
        "isolation": "snapshot",
        "workloads": ["mini", "general", "append", "lwt"],
        "claim": sys.argv[2:],
        "new_keys": True,
    }


class Session(Registers):
    def connect(self, request):
        self.db = DATABASE.cursor()
        return {}

    def prepare(self, request):
        self.db.execute("CREATE OR REPLACE TABLE isolario_register (k INTEGER PRIMARY KEY, v BIGINT)")
        self.db.execute("CREATE OR REPLACE TABLE isolario_list (k INTEGER PRIMARY KEY, v VARCHAR)")
        return {}

    def begin(self, request):
        self.db.execute("BEGIN")
        return {}

    def commit(self, request):
        self.run("COMMIT")
        return {}

    def rollback(self, request):
        """Comes after every error. There may be no transaction any more."""
        try:
            self.db.execute("ROLLBACK")
        except duckdb.TransactionException:
            pass
        return {}

    def disconnect(self, request):
        self.rollback(request)
        self.db.close()
        return {}

    def run(self, sql, *values):
        try:
            return self.db.execute(sql, values)
        except (duckdb.TransactionException, duckdb.ConstraintException) as error:
            # Somebody else changed the row first, or inserted it.
            raise Refused("retryable", str(error), type(error).__name__)

    def query(self, sql, key):
        row = self.run(sql, key).fetchone()
        return row[0] if row else None

    def update(self, sql, *values):
        return self.run(sql, *values).fetchone()[0]


serve(greet, Session)
