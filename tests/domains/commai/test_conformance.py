"""The domain keeps the promises every domain makes."""

import pytest

from openfield.domains.commai import DOMAIN
from openfield.testing import Conformance


@pytest.mark.slow
class TestCommai(Conformance):
    domain = DOMAIN
