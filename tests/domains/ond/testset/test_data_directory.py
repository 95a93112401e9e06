"""Files and texts that cannot be read are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from openfield.domains.ond.testset.data_directory import TABLE_SUFFIX, DataDirectory
from openfield.errors import InvalidInput
from support.ond.protocol import TEST, Client, known, refused, write_test


@pytest.mark.parametrize("text", ["two\rlines", "x" * 200_000])
def test_a_text_that_cannot_be_cut_into_fields_is_refused(client: Client, text: str) -> None:
    session = client.open()
    rows = "".join(f"{key},{text}\n" for key in known(client).ids[:10])
    answer = client.post(session, 0, x_words=rows)
    refused(answer, 400, "InvalidResults")
    assert len(answer.text) < 300
    assert client.post(session, 0, x_words=rows.replace(text, "words")).text == "OK"


@pytest.mark.parametrize(
    "change", [(b"\n", b"\r"), (b",0,1\n", b",0," + b"1" * 200_000 + b"\n"), (b",0,1\n", b",\xff\n")]
)
def test_a_sheet_that_cannot_be_read_is_named(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    write_test(tmp_path)
    sheet = tmp_path / "OND" / "image_classification" / f"{TEST}{TABLE_SUFFIX}"
    sheet.write_bytes(sheet.read_bytes().replace(*change))
    with pytest.raises(InvalidInput, match=f"Test {TEST}: its rows cannot be read"):
        DataDirectory(tmp_path).load("OND", "image_classification", TEST)
