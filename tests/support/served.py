"""Minimal clients of the foreign wires, and a server as a process for them; they know nothing of the package."""

import json
import re
import signal
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager

TEST, TRAINING, RESUMED, TRIAL, OVER = 8, 9, 10, 11, 13
MENU, PLAYING, WON, LOST, BELIEF = 1, 5, 6, 7, 12


@contextmanager
def serving(path, domain, *options):
    """Run `openfield serve` as long as the block lasts and give the port; it is ended by Ctrl-C."""
    start = [sys.executable, "-c", "from openfield.cli import main; main()", "serve", domain, "--port", "0"]
    with subprocess.Popen([*start, "--output", str(path), *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            found = re.search(r":(\d+)", line)
            assert found, line
            yield int(found[1])
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


class Team:
    """A team of the Birds protocol that shoots each level once, always alike."""

    def __init__(self, port, team):
        self.socket = socket.create_connection(("127.0.0.1", port), 600)
        self.ask(">BBB", 1, "IB", team, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, layout, code, sent="", *fields):
        self.socket.sendall(struct.pack(">B" + sent, code, *fields))
        return struct.unpack(layout, self.socket.recv(struct.calcsize(layout), socket.MSG_WAITALL))

    def state(self):
        return self.ask(">B", 12)[0]

    def play(self, until):
        """Go on until the game is in a state; returns how many shots that took."""
        shots = 0
        while (state := self.state()) != until:
            if state in (TEST, TRAINING, RESUMED, TRIAL):
                self.ask(">IIIIBBB", 68)
            elif state in (MENU, WON, LOST):
                self.ask(">I", 53)
            else:
                assert state == PLAYING, state
                self.shoot()
                shots += 1
        return shots

    def shoot(self):
        self.ask(">B", 31, "IIII", 90, 340, 0, 0)


class Visitor:
    """A session of the OND protocol: every sample is of the first known class, and nothing ever changes."""

    def __init__(self, http, session=""):
        self.http, self.session = http, session

    @property
    def tests(self):
        asked = {"protocol": "OND", "domain": "image_classification", "detector_seed": "0"}
        return self._get("/test/ids", asked).text.split()

    def open(self):
        told = {
            "protocol": "OND",
            "domain": "image_classification",
            "novelty_detector_version": "plain-0.0.1",
            "detection_threshold": 0.5,
            "hints": [],
        }
        files = {"configuration": json.dumps(told).encode(), "test_ids": "\n".join(self.tests).encode()}
        answer = self.http.post("/session", files=files)
        assert answer.status_code == 200, answer.text
        self.session = answer.json()["session_id"]

    def play(self, test, first=0, rounds=None):
        """Play a test from a round on, to its end and completion if no number of rounds is given."""
        number = first
        while rounds is None or number < first + rounds:
            found = self._get("/session/dataset", self._about(test) | {"round_id": number})
            if not found.content:
                break
            self._post(test, number, found.text.split())
            number += 1
        if rounds is None:
            assert self.http.delete("/test", params=self._about(test)).status_code == 200

    def latest(self):
        return self._get("/session/latest", {"session_id": self.session, "rounds": "1"}).json()

    def _about(self, test):
        return {"session_id": self.session, "test_id": test}

    def _get(self, path, asked):
        answer = self.http.get(path, params=asked)
        assert answer.status_code in (200, 204), answer.text
        return answer

    def _post(self, test, number, ids):
        classes = int(self._get("/test/metadata", self._about(test)).json()["known_classes"])
        asked = self._about(test) | {"round_id": number, "result_types": "detection|classification"}
        row = ",".join(["0", "1", *["0"] * (classes - 1)])
        files = {
            "test_identification": ("test_identification.json", json.dumps(asked).encode()),
            "detection_file": ("detection.csv", "".join(f"{each},0.1\n" for each in ids).encode()),
            "classification_file": ("classification.csv", "".join(f"{each},{row}\n" for each in ids).encode()),
        }
        answer = self.http.post("/session/results", files=files)
        assert answer.status_code == 200, answer.text
