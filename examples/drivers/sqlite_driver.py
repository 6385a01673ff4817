#!/usr/bin/env python3
"""A driver for `isolario run --db 'exec:python3 sqlite_driver.py FILE'`.

Isolario starts this program once per connection, writes requests to its standard input, one JSON
object per line, and reads one answer per request from its standard output. This driver stands for
any database: change the methods below to talk to yours.

It needs Python 3.8 and nothing else.
"""

import json
import sqlite3
import sys


class DatabaseError(Exception):
    """An answer that says what an error means for the transaction.

    aborted    it certainly did not commit, and another attempt would not help
    retryable  it certainly did not commit, and may when it is tried again
    unknown    nobody can tell: the commit was sent, and no answer came
    fatal      the run cannot go on
    """

    def __init__(self, kind, message, code=None):
        super().__init__(message)
        self.answer = {"class": kind, "message": message, "code": code}


class Driver:
    def __init__(self, path):
        self.path = path
        self.db = None

    # Once per connection.

    def hello(self, request):
        """Connects, and says who we are.

        request["isolation"] is what the user asked for with --isolation, or null.
        request["timeout_ms"] is how long a statement may take.
        """
        if request["isolation"] not in (None, "serializable"):
            raise DatabaseError("fatal", "there is no isolation level but serializable")
        # Without an isolation level, the module begins no transactions of its own.
        self.db = sqlite3.connect(
            self.path, timeout=request["timeout_ms"] / 1000, isolation_level=None
        )
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = OFF")
        return {
            "name": "SQLite " + sqlite3.sqlite_version + " by Python",
            "isolation": "serializable",
            "workloads": ["mini", "general", "append", "lwt", "predicate"],
            "claim": ["strict-serializable"],
            # A write inserts what is not there.
            "new_keys": True,
        }

    # Once per run.

    def prepare(self, request):
        """Makes empty tables. Nothing but our own may be dropped."""
        for name, columns in (
            ("isolario_exec_register", "k INTEGER PRIMARY KEY, v INTEGER"),
            ("isolario_exec_list", "k INTEGER, n INTEGER, e INTEGER, PRIMARY KEY (k, n)"),
            ("isolario_exec_row", "id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, v INTEGER"),
        ):
            self.db.execute(f"DROP TABLE IF EXISTS {name}")
            self.db.execute(f"CREATE TABLE {name} ({columns})")
        return {}

    # Transactions.

    def begin(self, request):
        """request["access"] is read, write, or single: one operation, and then a commit."""
        self.db.execute("BEGIN" if request["access"] == "read" else "BEGIN IMMEDIATE")
        return {}

    def commit(self, request):
        self.db.execute("COMMIT")
        return {}

    def rollback(self, request):
        """Comes after every error. There may be no transaction any more."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        return {}

    # Registers. What was never written reads as null.

    def held(self, key):
        row = self.db.execute("SELECT v FROM isolario_exec_register WHERE k = ?", (key,)).fetchone()
        return row[0] if row else None

    def put(self, key, value):
        self.db.execute("INSERT OR REPLACE INTO isolario_exec_register VALUES (?, ?)", (key, value))

    def read(self, request):
        return {"value": self.held(request["key"])}

    def write(self, request):
        self.put(request["key"], request["value"])
        return {}

    def delete(self, request):
        self.db.execute("DELETE FROM isolario_exec_register WHERE k = ?", (request["key"],))
        return {}

    # Lists.

    def read_list(self, request):
        query = "SELECT e FROM isolario_exec_list WHERE k = ? ORDER BY n"
        return {"elements": [row[0] for row in self.db.execute(query, (request["key"],))]}

    def append(self, request):
        self.db.execute(
            "INSERT INTO isolario_exec_list SELECT ?1, ifnull(max(n), 0) + 1, ?2"
            " FROM isolario_exec_list WHERE k = ?1",
            (request["key"], request["element"]),
        )
        return {}

    # Conditional writes. "seen" is what was there instead, if the database tells.

    def insert(self, request):
        return self.cas({"key": request["key"], "expected": None, "new": request["value"]})

    def cas(self, request):
        seen = self.held(request["key"])
        if seen != request["expected"]:
            return {"applied": False, "seen": seen}
        self.put(request["key"], request["new"])
        return {"applied": True}

    # Rows of a table, by their key and by ranges of a column. A row is sent as [id, a, b, v].

    def insert_row(self, request):
        row = [request[column] for column in ("id", "a", "b", "v")]
        self.db.execute("INSERT OR REPLACE INTO isolario_exec_row VALUES (?, ?, ?, ?)", row)
        return {}

    def update_row(self, request):
        update = "UPDATE isolario_exec_row SET a = :a, b = :b, v = :v WHERE id = :id"
        return {"found": self.db.execute(update, request).rowcount > 0}

    def read_row(self, request):
        query = "SELECT id, a, b, v FROM isolario_exec_row WHERE id = :id"
        return {"rows": self.db.execute(query, request).fetchall()}

    def range_of(self, request):
        return f"{request['column']} BETWEEN {request['low']} AND {request['high']}"

    def read_range(self, request):
        query = "SELECT id, a, b, v FROM isolario_exec_row WHERE " + self.range_of(request)
        return {"rows": self.db.execute(query).fetchall()}

    def update_range(self, request):
        """Which rows that are has to be found out first: they may not be in the range afterwards."""
        rows = self.read_range(request)["rows"]
        new = request["set"]
        rows = [[row[0], row[1], new["b"], new["v"]] for row in rows]
        for row in rows:
            self.insert_row(dict(zip(("id", "a", "b", "v"), row)))
        return {"rows": rows}

    def delete_range(self, request):
        rows = self.read_range(request)["rows"]
        self.db.execute("DELETE FROM isolario_exec_row WHERE " + self.range_of(request))
        return {"ids": [row[0] for row in rows]}

    def aggregate(self, request):
        function = f"{request['function']}({request['of'] or '*'})"
        query = f"SELECT {function} FROM isolario_exec_row WHERE " + self.range_of(request)
        value = self.db.execute(query).fetchone()[0]
        return {"value": value, "rows": self.read_range(request)["rows"]}

    # The loop.

    def answer(self, request):
        try:
            return getattr(self, request["do"].replace("-", "_"))(request)
        except DatabaseError as error:
            return {"error": error.answer}
        except sqlite3.OperationalError as error:
            kind = "retryable" if "locked" in str(error) else "fatal"
            return {"error": {"class": kind, "message": str(error)}}
        except sqlite3.Error as error:
            return {"error": {"class": "fatal", "message": str(error)}}

    def serve(self):
        """Answers until there are no more requests: then Isolario is gone, and so are we."""
        for line in sys.stdin:
            print(json.dumps(self.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sqlite_driver.py FILE")
    Driver(sys.argv[1]).serve()
