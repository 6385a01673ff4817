#!/usr/bin/env python3
"""A driver for Firebird, embedded: `isolario run --db 'exec:python3 firebird_driver.py FILE'`.

Needs the package `firebird-driver` and Firebird's own library with its engine (`firebird3.0-server` in Debian; no
server has to run). The file is made anew. One process has the database open, so it serves every session.
"""

import os
import sys

import firebird.driver as firebird
from firebird.driver import Isolation
from shared_sessions import Refused, Registers, serve

ISOLATIONS = {
    "read-committed": Isolation.READ_COMMITTED_RECORD_VERSION,
    "snapshot": Isolation.SNAPSHOT,
    "snapshot-table-stability": Isolation.SERIALIZABLE,
}
LOGIN = {"user": "SYSDBA", "password": ""}
# Somebody else was faster, a lock was not to be had, or the row has been inserted by now.
CONFLICTS = ("40001", "23000")
CHOSEN = {}


def greet(request):
    isolation = request["isolation"] or "snapshot"
    if isolation not in ISOLATIONS:
        raise Refused("fatal", f"there is no isolation level {isolation}: " + ", ".join(ISOLATIONS))
    # Waiting for locks for ever would look like a session that hangs.
    seconds = max(1, request["timeout_ms"] // 2000)
    CHOSEN["tpb"] = firebird.tpb(ISOLATIONS[isolation], lock_timeout=seconds)
    if os.path.exists(sys.argv[1]):
        os.remove(sys.argv[1])
    # A first connection stays open: attaching is cheap while somebody is.
    CHOSEN["first"] = firebird.create_database(sys.argv[1], **LOGIN)
    return {
        "name": "Firebird " + CHOSEN["first"].info.version,
        "isolation": isolation,
        "workloads": ["mini", "general", "append", "lwt"],
        "claim": sys.argv[2:],
        "new_keys": True,
    }


class Session(Registers):
    def connect(self, request):
        self.db = firebird.connect(sys.argv[1], **LOGIN)
        self.cursor = self.db.cursor()
        return {}

    def prepare(self, request):
        for table, value in (("isolario_register", "BIGINT"), ("isolario_list", "VARCHAR(8000)")):
            self.cursor.execute(f"RECREATE TABLE {table} (k INTEGER PRIMARY KEY, v {value})")
        self.db.commit()
        return {}

    def begin(self, request):
        self.attempt(lambda: self.db.main_transaction.begin(tpb=CHOSEN["tpb"]))
        return {}

    def commit(self, request):
        self.attempt(self.db.commit)
        return {}

    def rollback(self, request):
        if self.db.is_active():
            self.db.rollback()
        return {}

    def disconnect(self, request):
        self.rollback(request)
        self.db.close()
        return {}

    def attempt(self, step):
        try:
            return step()
        except firebird.DatabaseError as error:
            if error.sqlstate in CONFLICTS:
                raise Refused("retryable", str(error).split("\n")[0], error.sqlstate)
            raise

    def query(self, sql, key):
        row = self.attempt(lambda: self.cursor.execute(sql, (key,)).fetchone())
        return row[0] if row else None

    def update(self, sql, *values):
        self.attempt(lambda: self.cursor.execute(sql, values))
        return self.cursor.affected_rows


serve(greet, Session)
