"""A browser without a window, over its DevTools protocol through a pipe: as much of it as tests of pages need."""
import base64
import json
import os
import shutil
import subprocess
import time


def find():
    """The browser's program; None: there is none."""
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    def __init__(self, program, home):
        mine, theirs = os.pipe(), os.pipe()
        self.out, self.back, self.n, self.rest, self.events = mine[1], theirs[0], 0, b"", []
        # the protocol is spoken on the descriptors 3 and 4
        line = f'exec 3<&{mine[0]} 4>&{theirs[1]}; exec "$0" "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", line, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", f"--user-data-dir={home}", "about:blank"],
            pass_fds=(mine[0], theirs[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(mine[0])
        os.close(theirs[1])

    def close(self):
        os.close(self.out)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            assert more, "the browser has ended"
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **params):
        self.n += 1
        ask = {"id": self.n, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.out, json.dumps(ask).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.n:
                assert "error" not in m, (method, m["error"])
                return m["result"]
            self.events.append(m)

    def page(self):
        return Page(self)


class Page:
    def __init__(self, browser):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def look(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        self.browser.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.until("document.readyState === 'complete'")

    def eval(self, code):
        r = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in r, (code, r["exceptionDetails"])
        return r["result"].get("value")

    def until(self, code, seconds=20):
        end = time.monotonic() + seconds
        while not self.eval(code):
            assert time.monotonic() < end, f"never: {code}"
            time.sleep(0.05)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        code = {"Escape": 27, "Tab": 9, "Enter": 13, "ArrowRight": 39}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **(text if kind == "keyDown" else {}))

    def choose_file(self, selector, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[os.path.abspath(path)])

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def faults(self):
        """Exceptions, errors told to the console, and what was asked of a network."""
        self.eval("0")  # what came before it is there
        for m in self.browser.events:
            p = m.get("params", {})
            if m.get("method") == "Runtime.exceptionThrown":
                yield json.dumps(p["exceptionDetails"])[:600]
            elif m.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning"):
                yield json.dumps(p["args"])[:600]
            elif m.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                yield p["entry"]["text"]
            elif m.get("method") == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:", "blob:")):
                yield "asked for " + p["request"]["url"]
