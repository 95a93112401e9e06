"""Texts and forms that a reader chokes on are refused in a sentence, or read after all."""

from __future__ import annotations

from pathlib import Path

import pytest

from openfield.domains.ond.server.forms import read_multipart
from openfield.domains.ond.testset.data_directory import TABLE_SUFFIX, DataDirectory
from openfield.errors import InvalidInput
from support.ond.protocol import TEST, Client, known, refused, write_test

FORM = b'--%b\r\nContent-Disposition: form-data; name="a"\r\n\r\nhello\r\n--%b--\r\n'


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


@pytest.mark.parametrize(
    ("said", "border"),
    [
        ("boundary=xx", b"xx"),
        ('Boundary="x,x"', b"x,x"),
        ('title="boundary=yy"; boundary=xx; charset=utf-8', b"xx"),
        ('boundary="x:=?()/x"', b"x:=?()/x"),
    ],
)
def test_the_border_of_a_form_is_found_however_it_is_said(said: str, border: bytes) -> None:
    assert read_multipart(FORM.replace(b"%b", border), f"multipart/form-data; {said}") == {"a": "hello"}


def test_the_name_of_a_part_is_that_of_its_disposition() -> None:
    other = FORM.replace(b"%b", b"xx").replace(b"Content-D", b'Content-Type: text/csv; name="b"\r\nContent-D')
    assert read_multipart(other, "multipart/form-data; boundary=xx") == {"a": "hello"}
