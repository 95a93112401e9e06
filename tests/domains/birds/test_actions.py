"""Actions are read from values, plain data and numbers."""

import msgspec
import pytest

from openfield.core import Reply
from openfield.domains.birds.actions import Load, Shot, SlingshotLaunch, read_action
from openfield.errors import AgentProtocol
from support.birds.worlds import begin, world


@pytest.mark.parametrize(
    "action", ["north", {"do": "fly"}, {"x": 1}, [1, 2], [1, 2, 3], [0, 0, "x"], {"x": 1, "y": 1e99}]
)
def test_what_is_no_action_is_refused(action):
    opened = world()
    begin(opened)
    with pytest.raises(AgentProtocol, match="is not an action"):
        opened.step(Reply(action))


def test_actions_come_as_values_plain_data_or_numbers():
    assert read_action({"x": 3, "y": 4}) == Shot(3, 4)
    assert read_action({"do": "load", "level": 2}) == Load(2)
    assert read_action([0.5, 0.5, -1]) == SlingshotLaunch(0.5, 0.5, 0.0)
    assert read_action([0.5, 0.5, 0.5]) == SlingshotLaunch(0.5, 0.5, 2500.0)
    for action in (Shot(1, 2, 3), Load(4)):
        assert read_action(msgspec.json.decode(msgspec.json.encode(action))) == action
