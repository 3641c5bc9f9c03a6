"""Open a page in headless Chromium: what its console complained about, and a session in
which a test chooses files, presses keys and reads what the page shows.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_CONSOLE = re.compile(
    r':CONSOLE[:(]\d+\)?\] "(?P<text>.*)", source: (?P<source>.*?) \(\d+\)'
)


@dataclass(frozen=True)
class Opened:
    """A page as the browser saw it: its elements after loading, and the console's
    messages.
    """

    dom: str
    console: list[str]


def chromium() -> str:
    """The command of Chromium; skips the test where there is none."""
    command = next(filter(None, map(shutil.which, NAMES)), None)
    if command is None:
        pytest.skip("no Chromium here to open the page with: apt-get install chromium")
    return command


def open_page(page: Path, profile: Path) -> Opened:
    """Open a file in Chromium, with a fresh profile folder; skip where there is no
    Chromium.
    """
    command = chromium()
    done = subprocess.run(
        [
            command,
            *_OPTIONS,
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
            page.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "</html>" not in done.stdout:
        raise AssertionError(f"Chromium did not open {page}: {done.stderr[-2000:]}")
    return Opened(
        done.stdout, [match["text"] for match in _CONSOLE.finditer(done.stderr)]
    )


@dataclass
class Session:
    """A page that stays open, driven through the browser's own protocol (DevTools).

    ``console`` has warnings and errors, ``requests`` the addresses that the page asked for,
    apart from its own, ``downloads`` the state of each file that it saves.
    """

    process: subprocess.Popen[bytes]
    to_browser: BinaryIO
    from_browser: BinaryIO
    folder: Path
    target: str = ""
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    downloads: dict[str, str] = field(default_factory=dict)
    _number: int = 0
    _asked: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the browser answers to a command; its events are kept meanwhile."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self.target:
            message["sessionId"] = self.target
        self.to_browser.write(json.dumps(message).encode() + b"\0")
        self.to_browser.flush()
        while True:
            answer = self._receive()
            if answer.get("id") != self._number:
                self._keep(answer)
            elif "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def open(self, page: Path | str) -> None:
        """Open a file or an address, and wait until it is loaded."""
        address = page if isinstance(page, str) else page.resolve().as_uri()
        self.send("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page, a promise's when it is there."""
        result = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise AssertionError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression of the page is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise AssertionError(f"after {seconds} s it is not so: {condition}")
            time.sleep(0.02)

    def choose_file(self, selector: str, path: Path) -> None:
        """Choose a file as a user does with the dialog."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def drop_file(self, path: Path, x: int = 200, y: int = 300) -> None:
        """Drop a file onto a place of the page."""
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def press(self, key: str) -> None:
        """Press a key."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "End": 35}
        typed = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **typed, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **typed)

    def look(self, out: Path, width: int = 1100, height: int = 0, **media: str) -> None:
        """Take a picture of the whole page, ``prefers_color_scheme="dark"`` for one."""
        features = [
            {"name": name.replace("_", "-"), "value": value}
            for name, value in media.items()
        ]
        self.send("Emulation.setEmulatedMedia", features=features)
        size = {"width": width, "height": height or 900, "deviceScaleFactor": 1}
        self.send("Emulation.setDeviceMetricsOverride", mobile=width < 600, **size)
        if not height:
            tall = self.run("document.documentElement.scrollHeight")
            size["height"] = int(tall)
            self.send("Emulation.setDeviceMetricsOverride", mobile=width < 600, **size)
        picture = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        out.write_bytes(base64.b64decode(picture["data"]))

    def save_downloads(self, folder: Path) -> None:
        """Keep what the page lets the user save in a folder, without asking."""
        target, self.target = self.target, ""
        self.send(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(folder),
            eventsEnabled=True,
        )
        self.target = target

    def download(self, script: str, seconds: float = 60) -> None:
        """Run what makes the page save a file, and wait until it is written whole."""
        self.downloads.clear()
        self.run(script)
        end = time.monotonic() + seconds
        while "completed" not in self.downloads.values():
            if time.monotonic() > end or "canceled" in self.downloads.values():
                raise AssertionError(f"{script} saves no file: {self.downloads}")
            time.sleep(0.02)
            self.run("null")  # events come with the answer

    def _receive(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self.from_browser.read(1)) != b"\0":
            if not byte:
                raise AssertionError("Chromium ended")
            text += byte
        return json.loads(text)

    def _keep(self, event: dict[str, Any]) -> None:
        """Keep complaints, and requests that are not for the page itself."""
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(given["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled" and given["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.console.append(json.dumps(given["args"])[:2000])
        elif method == "Log.entryAdded" and given["entry"]["level"] != "info":
            self.console.append(given["entry"]["text"])
        elif method == "Browser.downloadProgress":
            self.downloads[given["guid"]] = given["state"]
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
            self._asked[given["requestId"]] = given["request"]["url"]
        elif method == "Network.loadingFailed" and given.get("blockedReason"):
            self.requests.remove(self._asked[given["requestId"]])  # it was never sent


@contextmanager
def open_session(folder: Path) -> Iterator[Session]:
    """A browser with an empty page; its profile and downloads are in a folder."""
    command = [chromium(), *_OPTIONS, f"--user-data-dir={folder / 'profile'}"]
    command += ["--remote-debugging-pipe", "--disable-breakpad", "about:blank"]
    read_end, to_browser = os.pipe()
    from_browser, write_end = os.pipe()
    # The browser reads commands from its descriptor 3, and writes answers to 4
    shell = (
        f"exec 5<&{read_end} 6>&{write_end}; exec 3<&5 4>&6 5<&- 6>&-; " + 'exec "$@"'
    )
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=(read_end, write_end),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_end)
    os.close(write_end)
    with open(to_browser, "wb") as writer, open(from_browser, "rb") as reader:
        session = Session(process, writer, reader, folder)
        try:
            targets = session.send("Target.getTargets")["targetInfos"]
            page = next(one for one in targets if one["type"] == "page")["targetId"]
            attached = session.send(
                "Target.attachToTarget", targetId=page, flatten=True
            )
            session.target = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
                session.send(f"{domain}.enable")
            yield session
        finally:
            process.terminate()
            process.wait(30)
