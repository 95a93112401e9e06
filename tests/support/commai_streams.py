"""Plays what a learner says against tasks of the original's kind, and shows the three streams."""

from openfield.domains.commai.original.core.environment import Environment
from openfield.domains.commai.original.core.scheduler import SequentialTaskScheduler
from openfield.domains.commai.original.core.serializer import StandardSerializer

SERIALIZER = StandardSerializer()
SIGNS = {-1: "-", 0: ".", 1: "+"}


def make(*tasks, bits=False, compat=""):
    return Environment(SERIALIZER, SequentialTaskScheduler([*tasks]), byte_mode=not bits, compat=compat)


def play(environment, said, heard=None):
    """Say characters (a low line is a space); return the teacher's characters and the rewards."""
    spoken, paid = "", ""
    for character in said.replace("_", " "):
        symbols, rewards = "", 0
        for symbol in character if environment.byte_mode else SERIALIZER.to_binary(character):
            answer, reward = environment.next(heard)
            symbols, rewards, heard = symbols + answer, rewards + reward, symbol
        spoken += symbols if environment.byte_mode else SERIALIZER.to_text(symbols)
        paid += SIGNS[rewards]
    return spoken.replace(" ", "_"), paid
