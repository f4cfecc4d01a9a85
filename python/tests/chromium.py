"""A headless Chromium, driven by the DevTools protocol over two pipes: no port, no package.

The browser is the oracle: what it drew, said on its console, asked of the network, and prints.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
_PATIENCE_S = 40.0


class Chromium:
    """A browser with one empty page.

    ``console``: errors and warnings that pages caused, of scripts and of the security policy.
    ``requests``: every address that pages asked for.
    """

    def __init__(self, directory: Path) -> None:
        if PROGRAM is None:
            raise RuntimeError("no chromium in PATH")
        self.console: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._session: str | None = None
        self._read = b""
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        words = [
            PROGRAM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-extensions",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={directory}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        # The browser reads from 3 and writes to 4; bash can move descriptors of two digits.
        moved = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", moved, "bash", *words],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(directory)},
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self._from, False)
        self._attach()

    def _attach(self) -> None:
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in pages if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda m: m.get("id") == self._number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        found: dict[str, Any] = answer["result"]
        return found

    def _until(self, is_it: Any) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            message = self._next()
            if message is None:
                time.sleep(0.005)
                continue
            self._note(message)
            if is_it(message):
                return message
        raise TimeoutError(f"the browser did not answer within {_PATIENCE_S:g} s")

    def _next(self) -> dict[str, Any] | None:
        while b"\0" not in self._read:
            try:
                piece = os.read(self._from, 1 << 20)
            except BlockingIOError:
                return None
            if not piece:
                raise RuntimeError("the browser has ended")
            self._read += piece
        line, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, values = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(values["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(values["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(str(values["args"]))

    def open(self, path: Path) -> None:
        """Show a file, and wait until it is loaded."""
        self.console.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self._until(lambda m: m.get("method") == "Page.loadEventFired")
        self.evaluate("1")  # what was said while it loaded has arrived

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def sized(self, width: int, height: int, *, mobile: bool = False, zoom: float = 1) -> None:
        """Give the page a screen."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=zoom,
            mobile=mobile,
        )

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Show it as on a screen ("screen") or on paper ("print"), light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def scripts(self, *, allowed: bool) -> None:
        """Whether pages that are opened next run scripts."""
        self.call("Emulation.setScriptExecutionDisabled", value=not allowed)

    def move(self, x: float, y: float) -> None:
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path | None = None, *, whole: bool = False) -> bytes:
        """The window, or the whole page, as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        data = base64.b64decode(answer["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def pdf(self) -> bytes:
        """The page as it is printed."""
        answer = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        """End it, and every process that it made."""
        os.close(self._to)
        os.close(self._from)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
