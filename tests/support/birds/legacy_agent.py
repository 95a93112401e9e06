"""An agent of this game as people have them: it knows the byte table of the protocol, and nothing of this package.

Small replies are read as the Java clients do, with one call that must bring everything; large ones by their length.
"""

import json
import math
import socket
import struct

UNKNOWN, MENU, PLAYING, WON, LOST = 0, 1, 5, 6, 7
TEST, TRAINING, RESUME, TRIAL, LIKELIHOOD, OVER = 8, 9, 10, 11, 12, 13
PICTURE = 8 + 640 * 480 * 3
AWAY = (600, 100)
"""Pulled to here, a bird flies to the left, away from everything."""
PIG = 125
"""The colour of which pigs have most."""


class LegacyAgent:
    """A connection, and a method for everything an agent says."""

    def __init__(self, port, team=None, mode=0):
        self.socket = socket.create_connection(("127.0.0.1", port), 120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if team is not None:
            self.configured = self.ask(struct.pack(">BIB", 1, team, mode), 3)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, request, size):
        """Sends a request and reads so many bytes at once."""
        self.socket.sendall(request)
        data = self.socket.recv(size)
        assert len(data) == size, f"{request!r}: {len(data)} bytes instead of {size}"
        return data

    def byte(self, code, layout="", *fields):
        return self.ask(struct.pack(">B" + layout, code, *fields), 1)[0]

    def word(self, code, layout="", *fields):
        return struct.unpack(">I", self.ask(struct.pack(">B" + layout, code, *fields), 4))[0]

    def silent(self, request=b""):
        """Whether nothing is said to a request: the reply to the next one comes at once."""
        self.socket.sendall(request)
        return self.state() in range(14)

    def exactly(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            assert part, "the server hung up"
            parts += part
        return bytes(parts)

    def state(self):
        return self.byte(12)

    def ready(self):
        return struct.unpack(">IIIIBBB", self.ask(b"\x44", 19))

    def scores(self, code=23):
        count = self.word(code)
        return list(struct.unpack(f">{count}I", self.exactly(4 * count)))

    def picture(self, code=11):
        self.socket.sendall(bytes((code,)))
        return self.read_picture()

    def read_picture(self):
        width, height = struct.unpack(">II", self.exactly(8))
        pixels = self.exactly(width * height * 3)
        return width, height, pixels

    def truth(self, code=62):
        self.socket.sendall(bytes((code,)))
        return self.read_truth()

    def read_truth(self):
        (length,) = struct.unpack(">I", self.exactly(4))
        data = self.exactly(length)
        assert data[-5:] == b"     ", "five bytes that are cut off"
        return json.loads(data[:-5])

    def truths(self, request):
        self.socket.sendall(request)
        (count,) = struct.unpack(">I", self.exactly(4))
        return [self.read_truth() for _ in range(count)]

    def shoot(self, x, y, tap=0, code=31):
        return self.byte(code, "iiii", x, y, 0, tap)

    def shoot_and_watch(self, x, y, tap, every, *option):
        return self.truths(struct.pack(f">B{5 + len(option)}i", 38, x, y, 0, tap, every, *option))

    def watch(self, every, frames):
        return self.truths(struct.pack(">Bii", 70, every, frames))

    def report(self, novel, normal, ids=(), level=0, text=""):
        data = text.encode()
        request = struct.pack(f">Bffi{len(ids)}iii", 66, novel, normal, len(ids), *ids, level, len(data)) + data
        return self.ask(request, 1)[0]

    def describe(self, text):
        data = text.encode()
        return self.ask(struct.pack(">BI", 67, len(data)) + data, 1)[0]

    def hint(self, level=1):
        length = self.word(72, "I", level)
        return json.loads(self.exactly(length))

    def start(self):
        """From a new trial to the menu of its first set."""
        assert self.state() == TRIAL
        self.ready()
        assert self.state() in (TRAINING, TEST)
        self.ready()
        assert self.state() == MENU


def features(truth):
    assert len(truth) == 1
    assert truth[0]["type"] == "FeatureCollection"
    return truth[0]["features"]


def bounds(feature):
    xs, ys = zip(*feature["geometry"]["coordinates"][0], strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def release_points(truth):
    """Pixels to pull to that send a bird over a pig, the likeliest first: the planner of the public agents."""
    found = features(truth)
    sling = bounds(next(each for each in found if each["properties"]["label"] == "Slingshot"))
    pig = bounds(next(each for each in found if any(c["color"] == PIG for c in each["properties"]["colormap"])))
    height = sling[3] - sling[1]
    scale = (sling[2] - sling[0] + height) / 2.7
    x, y = sling[0] + 0.45 * height, sling[1] + 0.35 * height
    dx, dy = ((pig[0] + pig[2]) / 2 - x) / scale, (y - (pig[1] + pig[3]) / 2) / scale
    speed, gravity = 9.5, 0.48 * 9.81
    root = speed**4 - gravity * (gravity * dx * dx + 2 * dy * speed**2)
    best = math.atan2(speed**2 - math.sqrt(max(root, 0.0)), gravity * dx)
    for step in range(40):
        angle = best + (-1) ** step * 0.02 * (step // 2)
        yield round(x - 10 * height * math.cos(angle)), round(y + 10 * height * math.sin(angle))


def go_to(agent, state):
    """Plays until the agent is in a state."""
    if state == TRIAL:
        return
    agent.ready()
    if state == TRAINING:
        return
    agent.ready()
    if state == MENU:
        return
    assert agent.word(53) == 1
    if state == PLAYING:
        return
    if state == WON:
        win(agent)
        return
    assert agent.shoot(*AWAY) == 1, "the shot that ends a level counts"
    if state in (LOST, LIKELIHOOD):
        return
    assert agent.word(53) == 1, "attempts have no limit: the next level is the same again"
    assert agent.shoot(*AWAY) == 1
    if state == TEST:
        return
    agent.ready()
    assert agent.word(53) == 1
    assert agent.shoot(*AWAY) == 1
    if state == RESUME:
        return
    agent.ready()
    assert agent.word(53) == 2, "training goes on after the level played last"
    agent.shoot(*AWAY)
    agent.ready()
    assert agent.word(53) == 1, "the final test"
    agent.shoot(*AWAY)


def win(agent):
    """Tries shots on the first level until one wins; each is another attempt, and none may be the last interaction."""
    agent.shoot(*next(release_points(agent.truth())))
