import pytest

from fleet.workbench.conformance.steering.transfer import read_form

FORM = 'multipart/form-data; boundary="x y"'


def test_a_form_is_read_with_all_its_bytes() -> None:
    file = b"RIFF\r\n--x\r\n\r\n\0\xff--x y\r\n"
    body = (
        b'--x y\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n'
        b'--x y\r\nContent-Disposition: form-data; filename="a.wav"; name="file"\r\nContent-Type: audio/wav\r\n\r\n'
        + file
        + b"\r\n--x y--\r\n"
    )
    assert read_form(body, FORM) == {"model": b"whisper-1", "file": file}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", FORM),
        (b"--x y", FORM),
        (b"--x y\r\nname=\r\n\r\nlost", FORM),
        (b'--x y\r\nfilename="file"\r\n\r\nlost', FORM),
        (b"--x y--\r\n", FORM),
        (b"anything", "application/json"),
        (b"anything", "multipart/form-data"),
        (b"anything", "multipart/form-data; boundary="),
        (b"anything", ""),
    ],
)
def test_what_is_no_form_has_no_fields(body: bytes, kind: str) -> None:
    assert read_form(body, kind) == {}
