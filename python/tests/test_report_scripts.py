"""The scripts of a page are kept in a cache."""

import pytest

from narrows.report import bundle


@pytest.mark.parametrize("damage", [
    lambda kept: kept[: len(kept) // 2], lambda kept: b"", lambda kept: kept.replace(b"embed", b"embad"),
    lambda kept: b"\xff\xfe", lambda kept: kept.partition(b"\n")[2],
], ids=["cut", "empty", "changed", "no text", "no digest"])  # fmt: skip
def test_a_damaged_cache_of_scripts_is_made_anew(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: made.append(1) or "// embed\nembed();")
    whole = bundle.library.__wrapped__()
    (kept,) = (tmp_path / "narrows").iterdir()
    assert bundle.library.__wrapped__() == whole
    assert len(made) == 1, "the second time it is read"
    before = kept.read_bytes()
    kept.write_bytes(damage(before))
    assert bundle.library.__wrapped__() == whole
    assert (len(made), kept.read_bytes()) == (2, before)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: "embed();")
    assert bundle.library.__wrapped__() == "embed();"
