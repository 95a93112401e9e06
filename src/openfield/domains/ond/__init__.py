"""Open World Novelty Detection: open-set recognition with a red light."""

from openfield.domains.ond.domain import DOMAIN, OndDomain

__all__ = ["DOMAIN", "OndDomain"]
