"""A client of protocol 0.8 as the old family has them, written from the message tables alone.

A program of its own on another AMQP library (pika), blocking, that shares no line with the package: it registers, obeys
the server's states, holds every message against the tables, saves its model in the training gap and connects again, and
leaves a transcript. Call it as
`python legacy_agent.py --config=FILE [--no-testing] [--just-one-trial] [--ignore-secret] [--log FILE]`.
"""

from __future__ import annotations

import argparse
import configparser
import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pika

VERSION = "0.8"
Message = dict[str, Any]
STATES: dict[str, set[str]] = {
    "benchmark_request": {"benchmark_script"},
    "experiment_start": set(),
    "training_start": set(),
    "training_episode_start": {"episode_number", "total_episodes"},
    "training_episode_active": set(),
    "training_end": {"message"},
    "training_model_end": set(),
    "trial_start": {"trial_number", "total_trials", "message", "novelty_description"},
    "testing_start": set(),
    "testing_episode_start": {"episode_number", "total_episodes"},
    "testing_episode_active": set(),
    "testing_end": set(),
    "trial_end": set(),
    "experiment_end": set(),
}
REPLIES: dict[str, dict[str, set[str]]] = {
    "request_state": STATES,
    "benchmark_data": {"benchmark_ack": set()},
    "request_training_data": {
        "training_data": {
            "secret",
            "feature_vector",
            "feature_label",
            "utc_remote_epoch_received",
            "utc_remote_epoch_sent",
        }
    },
    "request_testing_data": {
        "testing_data": {
            "secret",
            "feature_vector",
            "utc_remote_epoch_received",
            "utc_remote_epoch_sent",
            "novelty_indicator",
        }
    },
    "training_data_prediction": {
        "training_data_ack": {"secret", "performance", "feedback"},
        "training_episode_end": {"performance", "feedback"},
    },
    "testing_data_prediction": {
        "testing_data_ack": {"secret", "performance", "feedback"},
        "testing_episode_end": {"performance", "feedback"},
    },
    "training_episode_novelty": {"training_episode_novelty_ack": set()},
    "testing_episode_novelty": {"testing_episode_novelty_ack": set()},
    "request_experiment": {
        "experiment_response": {"server_rpc_queue", "experiment_secret", "model_experiment_id", "experiment_timeout"}
    },
}
REPLIES["request_experiment_trials"] = REPLIES["request_experiment"]
NEXT = {
    "benchmark_request": {"experiment_start"},
    "experiment_start": {"training_start", "trial_start", "experiment_end"},
    "training_start": {"training_episode_start"},
    "training_episode_start": {"training_episode_active"},
    "training_episode_active": {"training_episode_start", "training_end"},
    "training_end": {"training_model_end"},
    "training_model_end": {"trial_start", "experiment_end"},
    "trial_start": {"testing_start"},
    "testing_start": {"testing_episode_start"},
    "testing_episode_start": {"testing_episode_active"},
    "testing_episode_active": {"testing_episode_start", "testing_end"},
    "testing_end": {"trial_end"},
    "trial_end": {"trial_start", "experiment_end"},
}
"""Which state may follow which."""


class Refused(Exception):
    """The server sent the envelope of an error."""


class Link:
    """Requests over the broker, one at a time."""

    def __init__(self, config: configparser.ConfigParser) -> None:
        amqp = config["amqp"]
        vhost = amqp.get("vhost", "/")
        self._parameters = pika.ConnectionParameters(
            host=amqp["host"],
            port=amqp.getint("port"),
            virtual_host=vhost if vhost == "/" else vhost.removeprefix("/"),
            credentials=pika.PlainCredentials(amqp["user"], amqp["pass"]),
        )
        self.queue = f"rpc.client.v{VERSION}.{uuid.uuid4().hex}"
        self.connect()

    def connect(self) -> None:
        """Connects and declares what a client declares."""
        self._connection = pika.BlockingConnection(self._parameters)
        self._channel = self._connection.channel()
        self._channel.basic_qos(prefetch_count=1)
        self._channel.queue_declare(f"experiment.request.v{VERSION}", durable=True, exclusive=False, auto_delete=False)
        self._channel.queue_declare(self.queue, exclusive=True, auto_delete=True)
        self._channel.basic_consume(self.queue, self._receive)

    def close(self) -> None:
        """Hangs up, whatever the server thinks of it."""
        self._connection.close()

    def call(self, queue: str, content: Message) -> Message:
        """The reply to a request."""
        self._wanted, self._body = str(uuid.uuid4()), b""
        properties = pika.BasicProperties(reply_to=self.queue, correlation_id=self._wanted, delivery_mode=1)
        self._channel.basic_publish("", queue, json.dumps([content]).encode(), properties)
        deadline = time.monotonic() + 60
        while not self._body:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no reply to {content['obj_type']}")
            self._connection.process_data_events(1)
        parsed = json.loads(self._body)
        assert isinstance(parsed, list)
        assert len(parsed) == 1, "a body is a list with one object"
        return dict(parsed[0])

    def _receive(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        channel.basic_ack(method.delivery_tag)
        if properties.correlation_id == self._wanted:
            self._body = body


class Client:
    """Walks through an experiment."""

    def __init__(self, path: Path, options: argparse.Namespace) -> None:
        self._path = path
        self._config = configparser.ConfigParser()
        self._config.read(path)
        self._options = options
        self._link = Link(self._config)
        self._server = ""
        self._log: list[Message] = []
        self._state = ""

    def run(self) -> None:
        """Registers and obeys until the experiment's end."""
        try:
            self._register()
            while self._state != "experiment_end":
                reply = self._ask({"obj_type": "request_state"})
                self._enter(reply)
        finally:
            self._link.close()
            if self._options.log:
                Path(self._options.log).write_text("".join(json.dumps(entry) + "\n" for entry in self._log))

    def _register(self) -> None:
        own, sail = self._config["aiq-sail-on"], self._config["sail-on"]
        model = {
            "obj_type": "model",
            "model_name": own["model_name"],
            "organization": own.get("organization", ""),
            "description": own.get("description", ""),
            "aiq_username": own.get("username", ""),
            "aiq_secret": own.get("secret", ""),
        }
        seed, forced = own.get("seed"), own.get("episode_seed")
        generator = {
            "episode_seed": int(forced) if forced else None,
            "start_zeroed_out": False,
            "start_world_state": None,
        }
        shared: Message = {
            "model": json.dumps(model),
            "client_rpc_queue": self._link.queue,
            "experiment_type": own.get("experiment_type", "SAIL-ON"),
            "domain_dict": {name: name == sail.get("domain") for name in ("cartpole", "vizdoom", "smartenv")},
            "epoch": time.time(),
            "generator_config": generator,
        }
        secret = None if self._options.ignore_secret else sail.get("experiment_secret")
        if secret:
            one = self._options.just_one_trial or sail.getboolean("just_one_trial", False)
            request = {"obj_type": "request_experiment_trials", "experiment_secret": secret, "just_one_trial": one}
        else:
            untested = self._options.no_testing or sail.getboolean("no_testing", False)
            request = {"obj_type": "request_experiment", "novelty": 0, "novelty_visibility": 0, "git_version": "x"}
            request |= {"seed": int(seed) if seed else None, "no_testing": untested, "description": "walk"}
        self._server = f"experiment.request.v{VERSION}"
        reply = self._ask(request | shared)
        self._server, self._secret = reply["server_rpc_queue"], reply["experiment_secret"]
        self._number = reply["model_experiment_id"]
        assert self._server.startswith(f"rpc.server.v{VERSION}.")
        assert isinstance(self._number, int)
        assert type(reply["experiment_timeout"]) is int
        assert reply["experiment_timeout"] > 0
        int(self._secret, 16)
        self._config["sail-on"]["experiment_secret"] = self._secret
        with self._path.open("w") as file:
            self._config.write(file)

    def _enter(self, reply: Message) -> None:
        """Does what a state asks for."""
        before, self._state = self._state, reply["obj_type"]
        assert not before or self._state in NEXT[before], f"{self._state} after {before}"
        if self._state == "benchmark_request":
            machine = {"num_physical_cpu": 1, "num_logical_cpu": 2, "cpu_max_speed": 3000.0, "physical_ram": 4.0}
            self._ask({"obj_type": "benchmark_data", "benchmark_data": machine})
        elif self._state.endswith("_episode_active"):
            self._play(self._state.partition("_")[0])
        elif self._state == "training_end":
            self._link.close()
            self._model_file().parent.mkdir(exist_ok=True)
            self._model_file().write_text("trained")
            self._link.connect()
        elif self._state == "trial_start":
            assert self._model_file().read_text() == "trained"
            assert isinstance(reply["novelty_description"], dict)

    def _model_file(self) -> Path:
        return Path("model") / f"model.TA2.vizdoom.{self._secret}.file"

    def _play(self, kind: str) -> None:
        """An episode: two requests per tick, then an opinion."""
        end = None
        while end is None:
            data = self._ask(
                {"obj_type": f"request_{kind}_data", "model_experiment_id": self._number, "secret": self._secret}
            )
            self._check_data(kind, data)
            answer = self._ask(
                {
                    "obj_type": f"{kind}_data_prediction",
                    "secret": data["secret"],
                    "utc_remote_epoch_received": time.time(),
                    "utc_remote_epoch_sent": time.time(),
                    "label_prediction": {"action": self._choose(data["feature_vector"])},
                    "end_early": False,
                }
            )
            assert 0 <= answer["performance"] <= 1
            assert answer["feedback"] is None
            end = answer if answer["obj_type"] == f"{kind}_episode_end" else None
        opinion = {"novelty_probability": 0.25, "novelty_threshold": 0.5, "novelty": 0}
        levels = [{"level_number": 1, "probability": 0.25}]
        words = {"level": levels, "entity": "enemy", "attribute": "speed", "change": "increase"}
        self._ask({"obj_type": f"{kind}_episode_novelty", **opinion, "novelty_characterization": words})

    def _check_data(self, kind: str, data: Message) -> None:
        assert isinstance(data["feature_vector"]["time_stamp"], float)
        if kind == "training":
            assert set(data["feature_label"]) == {"action"}
        else:
            assert data["novelty_indicator"] in (True, False, None)

    def _choose(self, vector: Message) -> str:
        """Steps beside the enemy and shoots; in the arena, turns and shoots."""
        if "enemy" not in vector:
            return "turn_left" if int(vector["time_stamp"] * 35) % 2 else "shoot"
        apart = vector["enemy"]["y_position"] - vector["player"]["y_position"]
        return "shoot" if abs(apart) < 14 else ("left" if apart > 0 else "right")

    def _ask(self, content: Message) -> Message:
        reply = self._link.call(self._server, content)
        self._log.append({"sent": content["obj_type"], **reply})
        if reply.get("status") == "error":
            assert reply["action"] == "casas_response"
            raise Refused(reply["error_message"])
        known = REPLIES[content["obj_type"]]
        assert reply["obj_type"] in known, f"{reply['obj_type']} answers {content['obj_type']}"
        assert set(reply) == {"obj_type", *known[reply["obj_type"]]}, reply["obj_type"]
        return reply


def main() -> int:
    """Play an experiment as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--log")
    for name in ("--no-testing", "--just-one-trial", "--ignore-secret"):
        parser.add_argument(name, action="store_true")
    options = parser.parse_args()
    try:
        Client(options.config, options).run()
    except Refused as error:
        sys.stdout.write(f"refused: {error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
