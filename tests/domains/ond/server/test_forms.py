"""Forms that a reader chokes on are read after all."""

from __future__ import annotations

import pytest

from openfield.domains.ond.server.app import read_multipart

FORM = b'--%b\r\nContent-Disposition: form-data; name="a"\r\n\r\nhello\r\n--%b--\r\n'


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


def test_what_comes_before_and_after_a_form_is_passed_over() -> None:
    around = b"for old readers\r\n" + FORM.replace(b"%b", b"xx") + b"the end"
    assert read_multipart(around, "multipart/form-data; boundary=xx") == {"a": "hello"}
