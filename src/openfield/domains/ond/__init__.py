"""Open World Novelty Detection: open-set recognition with a red light."""

from openfield.domains.ond.domain import DOMAIN, Ond

__all__ = ["DOMAIN", "Ond"]
