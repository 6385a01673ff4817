"""The example driver, with a fault: faulty.py FAULT FILE."""

import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../examples/drivers"))
from sqlite_driver import DatabaseError, Driver  # noqa: E402


class Faulty(Driver):
    def __init__(self, fault, path):
        super().__init__(path)
        self.fault = fault

    def seldom(self):
        return random.random() < 0.02

    def commit(self, request):
        if self.fault == "dies-before-commit" and self.seldom():
            os._exit(1)
        if self.fault == "hangs-before-commit" and self.seldom():
            time.sleep(3600)
        answer = super().commit(request)
        if self.fault == "dies-after-commit" and self.seldom():
            os._exit(1)
        if self.fault == "loses-commits" and self.seldom():
            raise DatabaseError("retryable", "not committed, or so it says")
        if self.fault == "garbage-after-commit" and self.seldom():
            print("Traceback: something went wrong", flush=True)
        return answer

    def write(self, request):
        if self.fault == "dies-in-write" and self.seldom():
            sys.exit("out of paper")
        return super().write(request)


if __name__ == "__main__":
    if sys.argv[1] == "dies-at-once":
        sys.exit("no such module")
    if sys.argv[1] == "garbage":
        print("Hello there", flush=True)
    Faulty(sys.argv[1], sys.argv[2]).serve()
