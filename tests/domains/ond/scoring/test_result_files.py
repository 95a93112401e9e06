"""Result files are read part by part, and every part is checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openfield.domains.ond.scoring import result_files
from openfield.domains.ond.scoring.result_files import read_files
from openfield.domains.ond.testset import results as rows
from openfield.errors import InvalidInput
from support.ond.protocol import TEST, Client, answers, known


def write_results(folder: Path, client: Client) -> dict[str, Path]:
    test = known(client)
    paths = {kind: folder / f"{TEST}_{kind}.csv" for kind in ("detection", "classification")}
    for kind, text in answers(test, test.ids).items():
        paths[kind].write_text(text)
    return paths


def test_files_are_read_part_by_part(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_results(tmp_path, client)
    whole, sizes, read = read_files(known(client), files), list[int](), rows.read_posted_rows

    def noted(kind: str, content: str, *rest: object, compat: bool) -> rows.ResultTable:
        sizes.append(len(content))
        return read(kind, content, *rest, compat=compat)  # type: ignore[arg-type]

    monkeypatch.setattr(result_files, "PART", 200)
    monkeypatch.setattr(result_files, "read_posted_rows", noted)
    parts = read_files(known(client), files)
    assert len(sizes) > 8
    assert max(sizes) < 300
    for name in ("p_world", "p_unknown", "confidence", "ranks", "predicted", "best_known"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [*lines[:-1], f"{lines[-1]},0.1"], "differ in their number of columns"),
        (lambda lines: [*lines[:-9], *(line.partition(",")[0] for line in lines[-9:])], "differ in their number"),
        (lambda _: ["", ""], "There are no rows"),
        (lambda lines: [*lines[:-1], "stranger,1,0,0,0,0"], "is not a sample of this test"),
    ],
)
def test_parts_of_a_file_are_held_against_each_other(
    client: Client, tmp_path: Path, monkeypatch, change, said: str
) -> None:
    files = write_results(tmp_path, client)
    path = files["classification"]
    path.write_text("\n".join(change(path.read_text().splitlines())))
    for part in (100, 8 << 20):
        monkeypatch.setattr(result_files, "PART", part)
        with pytest.raises(InvalidInput, match=said):
            read_files(known(client), files)
