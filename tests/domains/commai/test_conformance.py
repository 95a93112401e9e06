"""The domain keeps the promises every domain makes."""

from openfield.domains.commai import DOMAIN
from openfield.testing import Conformance


class TestCommai(Conformance):
    domain = DOMAIN
