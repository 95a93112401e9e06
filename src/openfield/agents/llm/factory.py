"""`llm:MODEL(temperature=0, history=20)`: the parameters of a language model, checked before anything is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from openfield.agents.llm.language_model import SYSTEM, LanguageModel, PromptOptions
from openfield.agents.llm.model_endpoint import KEY, ModelAnswer, ModelQuestion, find_endpoint, read_key
from openfield.agents.turn_writer import find_writer
from openfield.core import Spec
from openfield.domain import Domain
from openfield.errors import InvalidInput, UnknownName
from openfield.lazy import import_extra
from openfield.settings import describe_type

MAX_SYSTEM = 100_000
"""Bytes of a file with a system prompt."""
MAX_SEED = 1 << 31
SECRETS = ("key", "api_key", "token", "password", "authorization")
"""Parameters that would put a secret into the record."""
Price = Annotated[float, Meta(ge=0, le=1e9)]


class ModelParameters(msgspec.Struct, frozen=True, kw_only=True):
    """What may stand in the brackets of `llm:MODEL(...)`."""

    url: str | None = None
    """The address; by default that of OPENAI_BASE_URL, or of the `openai` client."""
    key_env: str = KEY
    """The environment variable with the key. The key itself is never a parameter, as these are recorded."""
    temperature: Annotated[float, Meta(ge=0, le=10)] | None = None
    """Sent as it is, like `top_p` and `max_tokens`; by default the endpoint's own."""
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """How much the model may write."""
    seed: bool | int = False
    """A number that is sent with every call; true sends the seed of the cell's agent."""
    history: Annotated[int, Meta(ge=0, le=10_000)] = 20
    """Questions and answers before the present one that the model is shown."""
    system: str | None = None
    """The beginning of the system message, as text or as a file (.txt, .md)."""
    notes: bool = False
    """Let it keep notes, which it is shown each turn."""
    images: bool = True
    """Send pictures where the domain has some."""
    structured: bool = True
    """Send a JSON schema of the answer. An endpoint that takes none is asked without it."""
    retries: Annotated[int, Meta(ge=0, le=100)] = 5
    """How often a call that fails is made again."""
    patience: Annotated[float, Meta(ge=0, le=1e6)] = 600.0
    """Seconds to wait in all for an endpoint that limits the rate."""
    rpm: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    """Requests a minute that all processes of this machine make at most."""
    price_in: Price | None = None
    """The price of a million input tokens."""
    price_out: Price | None = None
    """The price of a million output tokens."""
    body: dict[str, Any] = {}
    """Further fields of every request."""


class LanguageModelFactory:
    """Makes agents that ask one model."""

    def __init__(self, model: str, domain: Domain[Any], parameters: ModelParameters) -> None:
        self.model, self.domain, self.parameters = model, domain, parameters
        sampling = {name: getattr(parameters, name) for name in ("temperature", "top_p", "max_tokens")}
        self._options: dict[str, Any] = {name: value for name, value in sampling.items() if value is not None}
        self._options |= {"extra_body": parameters.body} if parameters.body else {}
        paid = parameters.price_in is not None or parameters.price_out is not None
        self.prompt = PromptOptions(
            history=parameters.history,
            system=_read_system(parameters.system),
            notes=parameters.notes,
            images=parameters.images,
            prices=(parameters.price_in or 0.0, parameters.price_out or 0.0) if paid else None,
        )

    def check_spec(self, spec: Spec) -> None:
        """Check that the turns of a trial can be said in words, before a run starts."""
        find_writer(self.domain, spec)

    def __call__(self, spec: Spec, seed: int) -> LanguageModel:
        """Make the agent of a cell."""
        own = self.parameters
        endpoint = find_endpoint(self.model, own.url, own.key_env, own.rpm)
        chosen = {} if own.seed is False else {"seed": (seed if own.seed is True else own.seed) % MAX_SEED}
        options = {**self._options, **chosen}
        agent = LanguageModel(find_writer(self.domain, spec), lambda question: ask(question), self.prompt)

        def ask(question: ModelQuestion) -> ModelAnswer:
            schema = question.schema if own.structured else None
            asked = question._replace(schema=schema, options=options, seconds=spec.reply_seconds)
            return endpoint.ask(asked, own.retries, own.patience, agent.on_wait)

        return agent


def llm_agent(model: str, domain: Domain[Any], **parameters: Any) -> LanguageModelFactory:
    """Return a factory of agents that ask a language model over an OpenAI-compatible endpoint.

    Args:
        model: The name of the model at the endpoint.
        domain: The domain to play. It may have words of its own for its turns.
        **parameters: See `ModelParameters`.

    Raises:
        InvalidInput: A parameter has a value it cannot have, or would put a secret into the record; or there is neither
            a key nor an address on this machine.
        MissingExtra: There is nothing to ask with.
        UnknownName: There is no such parameter.
    """
    if not model:
        raise InvalidInput("Which model? Write llm:MODEL, with the name it has at the endpoint.")
    made = ModelParameters(**{name: _convert(name, value) for name, value in parameters.items()})
    _check_url(made.url)
    import_extra("openai", "llm", "An agent llm:MODEL")
    read_key(made.url, made.key_env)
    return LanguageModelFactory(model, domain, made)


def _convert(name: str, value: Any) -> Any:
    """Return the value of a parameter in the form it has there."""
    if name.casefold() in SECRETS:
        raise InvalidInput(
            f"llm: '{name}' would be kept in the record. Put the key in the environment variable {KEY}, or in another "
            "one that key_env=NAME names."
        )
    known = {field.name: field.type for field in msgspec.structs.fields(ModelParameters)}
    if name not in known:
        raise UnknownName("parameter", name, known, label="llm:MODEL takes")
    try:
        return msgspec.convert(value, known[name])
    except msgspec.ValidationError:
        raise InvalidInput(f"llm: '{name}' cannot be {value!r}. Allowed: {describe_type(known[name])}.") from None


def _check_url(url: str | None) -> None:
    """Refuse a malformed address, and one with a secret in it: parameters are recorded."""
    if url is None:
        return
    try:
        parts = urlsplit(str(url))
        wrong = parts.scheme not in ("http", "https") or not parts.hostname
        secret = parts.username or parts.password or parts.query
    except ValueError:
        wrong, secret = True, None
    if wrong:
        raise InvalidInput(f"llm: '{url}' is not the address of an endpoint, such as http://127.0.0.1:8000/v1.")
    if secret:
        raise InvalidInput("llm: an address is recorded, so it may hold no name, password or key.")


def _read_system(system: str | None) -> str:
    """Return a system prompt, from a file if the text names one."""
    if system is None:
        return SYSTEM
    if not str(system).endswith((".txt", ".md")):
        return str(system)
    path = Path(system)
    try:
        with path.open("rb") as file:
            text = file.read(MAX_SYSTEM + 1)
        if len(text) > MAX_SYSTEM:
            raise InvalidInput(f"llm: {path} has more than {MAX_SYSTEM:,} bytes; a system prompt is shorter.")
        return text.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"llm: the system prompt {path} cannot be read: {error}.") from None
