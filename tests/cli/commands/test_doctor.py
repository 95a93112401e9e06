"""`openfield doctor`: every extra is named."""

from __future__ import annotations

import json
from typing import Any


def test_doctor_names_every_extra(openfield: Any) -> None:
    parts = json.loads(openfield("doctor", "--json").out)["extras"]
    assert {"data", "gym"} <= parts.keys()
    assert not {"all", "dev"} & parts.keys()
    assert {line.split()[0] for line in openfield("doctor").out.splitlines()[3:] if line.strip()} == parts.keys()
