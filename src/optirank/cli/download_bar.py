"""The progress bar of a download."""

from __future__ import annotations


class DownloadBar:
    """A progress bar in the form pooch asks for, drawn by rich; silent where nobody looks."""

    def __init__(self) -> None:
        from rich.console import Console

        self.total = 0
        self._progress = None
        self._shown = Console(stderr=True).is_terminal

    def update(self, amount: int) -> None:
        """Count more bytes."""
        if not self._shown:
            return
        if self._progress is None:
            from rich.progress import DownloadColumn, Progress, TimeRemainingColumn

            self._progress = Progress(
                *Progress.get_default_columns()[:2], DownloadColumn(), TimeRemainingColumn()
            )
            self._task = self._progress.add_task("fetching", total=self.total or None)
            self._progress.start()
        self._progress.advance(self._task, amount)

    def reset(self) -> None:
        """Start over."""
        if self._progress is not None:
            self._progress.reset(self._task)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
