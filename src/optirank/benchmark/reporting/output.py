"""The files of a report. Only files that an earlier report recorded are ever removed."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from optirank._util.files import write_bytes
from optirank.benchmark.reporting.style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RECORD = "files.json"


class Output:
    """A folder that a report is written into, with a record of its files in ``files.json``."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.written: list[str] = []
        try:
            before = json.loads((self.folder / _RECORD).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            before = []
        self._before = [str(name) for name in before]

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file in one step; folders in its name are made."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = content.encode("utf-8") if isinstance(content, str) else content
        write_bytes(path, content, temporary=self.folder / ".unfinished.tmp")
        self.written.append(name)
        return path

    def draw(self, name: str, figure: Figure) -> None:
        """Write a figure as PNG and as SVG, into ``figures``."""
        with style():
            for kind, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
                content = BytesIO()
                figure.savefig(content, format=kind, **options)
                self.write(f"figures/{name}.{kind}", content.getvalue())

    def finish(self) -> None:
        """Record the files, and remove those of an earlier report that this one does not have."""
        (self.folder / ".unfinished.tmp").unlink(missing_ok=True)  # of a report that was killed
        for name in set(self._before) - set(self.written):
            path = self.folder / name
            if path.resolve().is_relative_to(self.folder.resolve()):
                path.unlink(missing_ok=True)
        self.write(_RECORD, json.dumps(sorted(self.written), indent=1))
