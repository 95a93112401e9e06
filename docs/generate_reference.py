"""Write docs/reference.md from the docstrings of the public names: `python docs/generate_reference.py`.

The source is read, not imported. A name is public if it stands in `__all__` of a package's `__init__`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src"
PAGE = DOCS / "reference.md"
THEMES = {
    "Run an evaluation": "run resume trials isolate with_parameters find_domain from_gymnasium env find_agent Result",
    "What agent and world exchange": "Turn Reply Belief Ask Ending Truth Spec",
    "Write an agent": "Agent AgentFactory Saves Remembers policy with_detector",
    "Write a domain": "Domain Settings Novelty Trial Phase Limits World EpisodicWorld Play Film",
    "Spaces": "Space Discrete Choice Box Fields Tuple Sequence Text",
    "Play and record": "Rollout drive Journal EpisodeEnd AttemptEnd Run CellRecord Episode",
    "Write a metric": "Metric Number",
    "Errors": (
        "OpenfieldError UnknownName InvalidInput MissingExtra JournalError NotARun DamagedRun RunBusy DiskFull "
        "AgentFault AgentCrashed AgentTimeout AgentProtocol AgentGone WorldFault ReplayMismatch AgentDiffers "
        "NothingScored Incomplete Cancelled AgentAway"
    ),
}
"""The public names of `openfield` in the order they are read in. A test holds that none is missing."""
HEAD = """# Reference

All public names, from their docstrings; what is not here is private and may change. `help(openfield.Turn)` shows the
same and more. This page is written by `make docs`: change the docstring, not the page.
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.stmt | ast.Module


def render_reference() -> str:
    """Return the page as text."""
    parts = [HEAD]
    for theme, names in THEMES.items():
        parts.append(f"## {theme}\n")
        parts += [render_name("openfield", name) for name in names.split()]
    for package in public_packages():
        rows = [f"| `{name}` | {first_sentence(package, name)} |" for name in public_names(package)]
        about = paragraphs(ast.get_docstring(parse(package)) or "")[0]
        parts.append("\n".join([f"## {package}\n", f"{about}\n", "| name | what it is |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def public_packages() -> list[str]:
    """Return the packages below `openfield` that export names, and the modules that do."""
    files = [*sorted(SOURCE.glob("openfield/*/**/__init__.py")), *sorted(SOURCE.glob("openfield/*.py"))]
    names = [".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for file in files]
    return [name for name in names if name != "openfield" and public_names(name)]


def public_names(module: str) -> list[str]:
    """Return the names in a module's `__all__`."""
    for node in parse(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def find_name(module: str, name: str) -> tuple[Node, str]:
    """Return where a name is defined, following imports, and the string that documents it."""
    tree = parse(module)
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        overloaded = isinstance(node, Function) and any("overload" in ast.unparse(each) for each in node.decorator_list)
        if isinstance(node, Function | ast.ClassDef) and node.name == name and not overloaded:
            return node, ast.get_docstring(node) or ""
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node, string_of(after)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == name for each in node.names):
            return find_name(str(node.module), name)
    raise LookupError(f"{module} has no {name}")


def render_name(module: str, name: str) -> str:
    """Return the entry of a name: its signature, what it is, its arguments, its members."""
    node, text = find_name(module, name)
    code, members = ast.unparse(node), list[str]()
    if isinstance(node, Function):
        code = f"{name}{signature(node)}"
    elif isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        code, members = f"class {name}({bases})" if bases else f"class {name}", list(render_members(node))
    return "\n".join([f"### {name}\n", f"    {code}\n", *describe(text), *members, *([""] if members else [])])


def render_members(node: ast.ClassDef) -> Iterator[str]:
    """Yield a line for each public field, property and method of a class."""
    for child, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(child, ast.Assign) and string_of(after):
            yield member(ast.unparse(child), string_of(after))
        elif isinstance(child, ast.AnnAssign) and not ast.unparse(child.target).startswith("_"):
            default = f" = {ast.unparse(child.value)}" if child.value is not None else ""
            yield member(f"{ast.unparse(child.target)}: {plain_type(child.annotation)}{default}", string_of(after))
        elif isinstance(child, Function) and child.name == "__init__" and len(child.args.args) > 1:
            yield member(f"{node.name}{signature(child)}".removesuffix(" -> None"), ast.get_docstring(child) or "")
        elif isinstance(child, Function) and (child.name == "__call__" or not child.name.startswith("_")):
            is_property = any(ast.unparse(each).endswith("property") for each in child.decorator_list)
            call = f": {ast.unparse(child.returns)}" if is_property and child.returns else signature(child)
            yield member(child.name + call, ast.get_docstring(child) or "")


def member(code: str, text: str) -> str:
    """Return the line of a member."""
    about = paragraphs(text)[0]
    return f"- `{code}`" + (f": {about}" if about else "")


def plain_type(annotation: ast.expr) -> str:
    """Return a type as text, without the bounds and descriptions that `Annotated` adds."""
    text = ast.unparse(annotation)
    return re.sub(r"Annotated\[([\w.]+), .*\)\]", r"\1", text)


def signature(node: Function) -> str:
    """Return the parameters and the result as they are written, without `self`."""
    given = re.sub(r"^(self|cls)(, /)?(, )?", "", ast.unparse(node.args))
    given = re.sub(r"(?<=[\w\]])=(?=[\w'\"(\[{-])", " = ", given)
    return f"({given})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def describe(text: str) -> Iterator[str]:
    """Yield the first paragraph of a docstring, and its arguments as a list."""
    yield from [paragraphs(text)[0] + "\n"] if text else []
    found = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    if found:
        entries = re.split(r"\n(?=    \S)", found[1].rstrip())
        for entry in entries:
            name, _, about = " ".join(entry.split()).partition(": ")
            yield f"- `{name}`: {about}"
        yield ""


def first_sentence(module: str, name: str) -> str:
    """Return the first line of what documents a name, or the value of one that needs no words."""
    node, text = find_name(module, name)
    shown = f"`{ast.unparse(node.value)}`" if isinstance(node, ast.Assign) and not text else text.split("\n")[0]
    return shown.replace("|", "\\|")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, each in one line."""
    return [" ".join(part.split()) for part in text.split("\n\n")]


def string_of(node: ast.stmt | None) -> str:
    """Return the string a statement is, such as one that documents the line before it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return ""


def parse(module: str) -> ast.Module:
    """Return the syntax tree of a module or package."""
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(render_reference(), encoding="utf-8")
