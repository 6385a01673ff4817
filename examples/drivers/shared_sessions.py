"""One process for every session, as embedded databases need it: the loop of `duckdb_driver.py` and
`firebird_driver.py`.

A driver calls `serve` with what it says of itself, and with a class of which each session gets an object on a
thread of its own. Its methods are named after the requests, with `_` for `-`.
"""

import json
import queue
import sys
import threading


class Refused(Exception):
    """An answer that says what an error means for the transaction: see the page on drivers."""

    def __init__(self, kind, message, code=None):
        super().__init__(message)
        self.answer = {"class": kind, "message": message, "code": code}


_out = threading.Lock()


def _tell(answer):
    with _out:
        print(json.dumps(answer), flush=True)


def _answer(session, request):
    try:
        return getattr(session, request["do"].replace("-", "_"))(request)
    except Refused as error:
        return {"error": error.answer}
    except Exception as error:  # Whatever it is, it has to be told.
        return {"error": {"class": "fatal", "message": f"{type(error).__name__}: {error}"}}


def _run(session, requests):
    while True:
        request = requests.get()
        _tell({"session": request["session"], **_answer(session, request)})
        if request["do"] == "disconnect":
            return


def serve(greet, session_class):
    """Answers until there are no more requests. `greet` gets the first one and says who we are."""
    sessions = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "hello":
            try:
                _tell({**greet(request), "shared": True})
            except Refused as error:
                _tell({"error": error.answer})
            continue
        number = request["session"]
        if request["do"] == "connect":
            sessions[number] = queue.Queue()
            threading.Thread(
                target=_run, args=(session_class(), sessions[number]), daemon=True
            ).start()
        sessions[number].put(request)
        if request["do"] == "disconnect":
            del sessions[number]


class Registers:
    """Registers, lists and conditional writes by SQL. What it takes is `query`, which gives the one column of the
    one row there may be, or None; and `update`, which says how many rows it met."""

    def read(self, request):
        return {"value": self.query("SELECT v FROM isolario_register WHERE k = ?", request["key"])}

    def write(self, request):
        self.put("isolario_register", request["key"], request["value"])
        return {}

    def delete(self, request):
        self.update("DELETE FROM isolario_register WHERE k = ?", request["key"])
        return {}

    def put(self, table, key, value):
        if self.update(f"UPDATE {table} SET v = ? WHERE k = ?", value, key) == 0:
            self.update(f"INSERT INTO {table} (v, k) VALUES (?, ?)", value, key)

    def insert(self, request):
        return self.cas({"key": request["key"], "expected": None, "new": request["value"]})

    def cas(self, request):
        seen = self.read(request)["value"]
        if seen != request["expected"]:
            return {"applied": False, "seen": seen}
        self.put("isolario_register", request["key"], request["new"])
        return {"applied": True}

    def read_list(self, request):
        held = self.query("SELECT v FROM isolario_list WHERE k = ?", request["key"])
        return {"elements": [int(element) for element in held.split(",")] if held else []}

    def append(self, request):
        """In one statement, where there is a row already: two appends do not lose one another."""
        key, more = request["key"], str(request["element"])
        if self.update("UPDATE isolario_list SET v = v || ? WHERE k = ?", "," + more, key) == 0:
            self.update("INSERT INTO isolario_list (v, k) VALUES (?, ?)", more, key)
        return {}
