"""The script of a user, which the type checker reads too (pyproject.toml), runs."""

from __future__ import annotations

import user_script


def test_a_script_over_the_public_names_runs(tmp_path, capsys):
    assert set(user_script.main(tmp_path)) == {"healthy", "ill"}
    assert "PanelClassifier" in capsys.readouterr().out
