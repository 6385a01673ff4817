"""A driver that serves every session by one process, and can fail: `shared.py FAULT FILE`.

works              does what it should
dies-after-commit  ends after every fortieth commit, with every session
hangs              never answers the thirtieth request to begin
forgets-session    answers without saying whom
"""

import itertools
import os
import sqlite3
import sys
import time

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../examples/drivers")
sys.path.insert(0, EXAMPLES)

import shared_sessions  # noqa: E402

FAULT, PATH = sys.argv[1:]
COUNT = itertools.count(1)


class Session(shared_sessions.Registers):
    def connect(self, request):
        if FAULT == "forgets-session":
            print("{}", flush=True)
            time.sleep(60)
        self.db = sqlite3.connect(PATH, timeout=60, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = OFF")
        return {}

    def prepare(self, request):
        for table in ("isolario_register", "isolario_list"):
            self.db.execute(f"DROP TABLE IF EXISTS {table}")
            self.db.execute(f"CREATE TABLE {table} (k INTEGER PRIMARY KEY, v)")
        return {}

    def begin(self, request):
        if FAULT == "hangs" and next(COUNT) == 30:
            time.sleep(600)
        self.db.execute("BEGIN IMMEDIATE")
        return {}

    def commit(self, request):
        self.db.execute("COMMIT")
        if FAULT == "dies-after-commit" and next(COUNT) % 40 == 0:
            os._exit(1)
        return {}

    def rollback(self, request):
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        return {}

    def disconnect(self, request):
        self.db.close()
        return {}

    def query(self, sql, key):
        row = self.db.execute(sql, (key,)).fetchone()
        return row[0] if row else None

    def update(self, sql, value, key):
        return self.db.execute(sql, (value, key)).rowcount


def greet(request):
    return {"name": "SQLite, shared", "workloads": ["mini", "general", "append", "lwt"]}


shared_sessions.serve(greet, Session)
