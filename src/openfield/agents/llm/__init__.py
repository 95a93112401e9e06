"""Language models as agents: `llm:MODEL` plays any domain over an OpenAI-compatible endpoint.

`language_model.py` is the agent: it turns what `turn_writer.py` says of a turn into a question, and an answer into a
reply. `model_endpoint.py` asks, waits where the endpoint says so, and tries again. `factory.py` holds the parameters,
and `call_estimate.py` forecasts the tokens and cost of a run.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.agents.llm.call_estimate import CallEstimate, estimate_plan
    from openfield.agents.llm.factory import LanguageModelFactory, llm_agent
    from openfield.agents.llm.language_model import LanguageModel
    from openfield.agents.llm.model_endpoint import ModelAnswer, ModelEndpoint

__all__ = [
    "CallEstimate",
    "LanguageModel",
    "LanguageModelFactory",
    "ModelAnswer",
    "ModelEndpoint",
    "estimate_plan",
    "llm_agent",
]

__getattr__, __dir__ = attach(__name__)
