"""A Chromium without a window that is driven over a pipe: the DevTools protocol, of which nothing has to be installed."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none", "--remote-debugging-pipe"]
CODES = {"+": 187, "-": 189, "/": 191, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
"""Numbers that the protocol wants of keys beside letters."""
WINDOWS = {"light": (1280, 900, "light"), "dark": (1280, 900, "dark"), "phone": (375, 1000, "light")}
"""Width, height and colours in which pages have to look as they should."""
PICTURES = pathlib.Path(__file__).parent / "pictures"
"""What they look like; with `REMAT_UPDATE_PICTURES=1` they are made again."""
HANGS = 600.0
"""Seconds after which nothing more is to be expected of a page."""


class Browser:
    """One page in a browser of its own."""

    def __init__(self, folder: pathlib.Path):
        ours, theirs = os.pipe(), os.pipe()
        # The browser reads from 3 and writes to 4.
        start = f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        command = ["bash", "-c", start, "browser", CHROMIUM, *OPTIONS, f"--user-data-dir={folder}/profile", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(ours[0], theirs[1]), stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.commands, self.answers = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb")
        self.number, self.session, self.rest = 0, None, b""
        self.errors = []
        """What the page's scripts failed with, and what the console was told as an error."""
        self.downloads = folder / "downloads"
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.commands.close()
        self.answers.close()

    def receive(self):
        while b"\0" not in self.rest:
            more = self.answers.read1(1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        about = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        if message.get("method") == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, page: pathlib.Path | str, width=1280, height=900, theme="light"):
        """Loads a page, a file or an address, in a window of this size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=page.as_uri() if isinstance(page, pathlib.Path) else page)
        while self.receive().get("method") != "Page.loadEventFired":
            pass
        self.settle()

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", script))
        return found["result"].get("value")

    def settle(self):
        """Waits until everything that was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))")

    def key(self, *keys):
        for key in keys:
            code = CODES.get(key, ord(key[0].upper()))
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            about = {"key": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)
        self.settle()

    def write(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def mouse(self, kind, x, y, **about):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **about)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def drag(self, start, end):
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, **held)
        self.mouse("mouseMoved", *end, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)
        self.settle()

    def click(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        x, y = self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
            "return [box.left + box.width / 2, box.top + box.height / 2]; })()"
        )
        self.drag((x, y), (x, y))

    def saved(self, button):
        """What a button saves, named by a selector."""
        for old in self.downloads.glob("*"):
            old.unlink()
        self.click(button)
        ends = time.monotonic() + HANGS
        while time.monotonic() < ends:
            files = [file for file in self.downloads.glob("*") if file.suffix != ".crdownload" and file.stat().st_size]
            if files:
                return files[0]
            time.sleep(0.05)
        raise AssertionError(f"{button} saves nothing")

    def picture(self):
        """What is seen, as PNG of half the size."""
        width, height = self.run("[innerWidth, innerHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 0.5}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=clip)["data"])

    def looks_as_kept(self, name):
        """Holds what is seen against a picture that is kept; `REMAT_UPDATE_PICTURES` keeps a new one."""
        seen, kept = self.picture(), PICTURES / f"{name}.png"
        if "REMAT_UPDATE_PICTURES" in os.environ:
            kept.write_bytes(seen)
        mean, share = self.difference(seen, kept.read_bytes())
        assert mean < 4 and share < 0.03, f"{kept} is {mean:.1f} of 255 away, {share:.1%} of it by much"

    def difference(self, one: bytes, other: bytes):
        """How far two pictures are apart, each as means of squares of 8 by 8 pixels, so that fonts count little: the mean of the differences, and the
        share of squares that differ by more than 24 of 255. Pictures of other sizes are wholly apart."""
        pictures = json.dumps([base64.b64encode(picture).decode() for picture in (one, other)])
        return self.run(COMPARE.replace("GIVEN", pictures))


COMPARE = """(async () => {
  const [one, other] = await Promise.all(GIVEN.map(async (text) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const ctx = canvas.getContext("2d");
    ctx.drawImage(bitmap, 0, 0);
    return ctx.getImageData(0, 0, bitmap.width, bitmap.height);
  }));
  if (one.width !== other.width || one.height !== other.height) return [255, 1];
  const wide = Math.ceil(one.width / 8);
  const sums = new Float64Array(wide * Math.ceil(one.height / 8) * 3);
  for (let y = 0; y < one.height; y += 1) for (let x = 0; x < one.width; x += 1) for (let part = 0; part < 3; part += 1) {
    const place = (y * one.width + x) * 4 + part;
    sums[((y >> 3) * wide + (x >> 3)) * 3 + part] += (one.data[place] - other.data[place]) / 64;
  }
  const squares = Array.from({ length: sums.length / 3 }, (_, place) => Math.max(...[0, 1, 2].map((part) => Math.abs(sums[place * 3 + part]))));
  return [squares.reduce((a, b) => a + b, 0) / squares.length, squares.filter((square) => square > 24).length / squares.length];
})()"""
