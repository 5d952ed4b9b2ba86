#!/usr/bin/env python3
"""Drives the explorer's page in headless Chromium, and makes the screenshots of docs/explorer.md.

    explorer.py EQUICAPS CHROMIUM [--screenshots DIR] [--run RUN ...] [--only-screenshots]

Only the standard library: Chromium's DevTools protocol is JSON over a WebSocket, of which a client needs little. Every view
must load without errors on the console and without a request to anywhere else; dragging changes the picture, steering shows
the asked angle, the map answers a click, curves move while a run trains.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request


class Page:
    """A page of a browser by the DevTools protocol."""

    def __init__(self, address):
        host, path = address.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self.bytes += self.socket.recv(4096)
        head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head
        self.count = 0
        self.complaints = []
        self.requests = []
        self.posted = []

    def take(self, count):
        while len(self.bytes) < count:
            more = self.socket.recv(1 << 16)
            assert more, "the browser closed the connection"
            self.bytes += more
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def receive(self):
        message = b""
        while True:
            first, second = self.take(2)
            length = second & 127
            if length == 126:
                (length,) = struct.unpack(">H", self.take(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.take(8))
            message += self.take(length)
            if first & 128:
                return json.loads(message)

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        if len(data) < 126:
            head = struct.pack(">BB", 129, 128 | len(data))
        elif len(data) < 1 << 16:
            head = struct.pack(">BBH", 129, 128 | 126, len(data))
        else:
            head = struct.pack(">BBQ", 129, 128 | 127, len(data))
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def call(self, method, **parameters):
        self.count += 1
        self.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = self.receive()
            if message.get("id") == self.count:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.note(message)

    def note(self, message):
        parameters = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"].get("exception", {}).get("description", str(parameters)))
        elif message["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.complaints.append(str([argument.get("value") for argument in parameters["args"]]))
        elif message["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            entry = parameters["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
        elif message["method"] == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
            if "postData" in parameters["request"]:
                self.posted.append(parameters["request"]["postData"])

    def ask(self, expression):
        """The value of an expression, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, expression, seconds=120):
        """Until an expression is true; its value."""
        end = time.time() + seconds
        while time.time() < end:
            value = self.ask(expression)
            if value:
                return value
            time.sleep(0.1)
        state = self.ask("document.getElementById('status').textContent + ' | ' + JSON.stringify(document.getElementById('view').dataset)")
        raise AssertionError(f"not within {seconds} s: {expression} (the page says: {state})")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, **more)

    def drag(self, start, end, steps=12, **more):
        self.mouse("mousePressed", *start, **more)
        for step in range(1, steps + 1):
            at = [a + (b - a) * step / steps for a, b in zip(start, end)]
            self.mouse("mouseMoved", *at, buttons=1, **more)
            time.sleep(0.02)
        self.mouse("mouseReleased", *end, **more)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            more = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def middle(self, selector):
        box = self.ask(f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2, b.width, b.height]; }})()")
        return box

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def save(self, path):
        picture = self.call("Page.captureScreenshot", format="jpeg", quality=88)
        path.write_bytes(base64.b64decode(picture["data"]))

    def colours(self, x, y, height):
        """The colours of a column of pixels, from the top, as styles have them: rgb(1, 2, 3)."""
        clip = {"x": x, "y": y, "width": 1, "height": height, "scale": 1}
        picture = self.call("Page.captureScreenshot", format="png", clip=clip)["data"]
        return self.ask(f"""(async () => {{
          const image = new Image();
          image.src = "data:image/png;base64,{picture}";
          await image.decode();
          const context = new OffscreenCanvas(1, {height}).getContext("2d");
          context.drawImage(image, 0, 0);
          const {{ data }} = context.getImageData(0, 0, 1, {height});
          return [...Array({height}).keys()].map((i) => `rgb(${{data[4 * i]}}, ${{data[4 * i + 1]}}, ${{data[4 * i + 2]}})`);
        }})()""")

    def quiet(self):
        """Nothing was complained about, and nobody else was asked."""
        self.ask("1")
        assert not self.complaints, self.complaints


def first_line(process, seconds=180):
    """The first line that a process prints."""
    line = process.stdout.readline().decode().strip()
    assert line, f"it printed no address: {process.stderr.read().decode() if process.stderr else ''}"
    return line


def browse(chromium, folder):
    """Chromium without a window, and a page of it."""
    process = subprocess.Popen(
        [
            chromium, "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--remote-debugging-port=0", "--no-first-run",
            "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking", "--disable-component-update",
            "--hide-scrollbars", f"--user-data-dir={folder}", "about:blank",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    note = pathlib.Path(folder) / "DevToolsActivePort"
    end = time.time() + 60
    while not note.exists() or not note.read_text().strip():
        assert time.time() < end and process.poll() is None, "Chromium does not start"
        time.sleep(0.1)
    port = note.read_text().split()[0]
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        if pages:
            return process, Page(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)


VIEW = "document.getElementById('view').dataset"


def check_turn(page):
    page.wait(f"{VIEW}.looked")
    page.wait("document.querySelector('.stage img').naturalWidth >= 256")
    assert page.ask("document.querySelectorAll('.near figure').length") >= 12
    # Pictures of the neighbours arrive.
    page.wait("[...document.querySelectorAll('.near img')].slice(0, 6).every((image) => image.complete && image.naturalWidth > 0)")
    angle = "document.querySelectorAll('.controls input[type=number]')[3].value"
    before, before_angle = page.ask("document.querySelector('.stage img').src"), page.ask(angle)
    x, y, width, _ = page.middle(".stage")
    page.drag((x - width / 4, y), (x + width / 4, y))
    page.wait(f"document.querySelector('.stage img').src !== {json.dumps(before)}")
    after_angle = page.ask(angle)
    assert before_angle != after_angle, "dragging does not turn the object"
    looked = page.ask(f"{VIEW}.looked")
    page.wait(f"{VIEW}.looked > {looked} || {VIEW}.looked !== '{looked}'")
    page.key("ArrowRight")
    page.wait(f"{angle} !== '{after_angle}'")
    page.wait("document.querySelector('.stage img').naturalWidth > 256")
    bars = "(() => { const c = document.querySelector('.bars'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v > 0); })()"
    assert page.ask(bars), "no bars are drawn"


def check_steer(page):
    page.ask("location.hash = 'steer'")
    page.wait(f"{VIEW}.steered")
    assert page.ask("document.getElementById('asked-angle').textContent") == "45.0°"
    assert page.ask("document.getElementById('steer-error').textContent").endswith("°")
    steered = page.ask(f"{VIEW}.steered")
    page.ask("[...document.querySelectorAll('.panel button')].find((button) => button.textContent === '0, 0, 90').click()")
    page.wait(f"{VIEW}.steered !== '{steered}'")
    assert page.ask("document.getElementById('asked-angle').textContent") == "90.0°"
    # A matrix that is none is refused in a sentence; one that is a rotation is taken.
    page.ask("(() => { const cell = document.querySelector('.matrix input'); cell.value = '7'; cell.dispatchEvent(new Event('change')); })()")
    page.wait("[...document.querySelectorAll('.bad')].some((note) => note.textContent.includes('no rotation'))")
    page.complaints = [text for text in page.complaints if "400" not in text]
    values = ["1", "0", "0", "0", "0", "-1", "0", "1", "0"]
    page.ask(f"(() => {{ const values = {json.dumps(values)}; document.querySelectorAll('.matrix input').forEach((cell, i) => {{ cell.value = values[i]; }}); document.querySelector('.matrix input').dispatchEvent(new Event('change')); }})()")
    page.wait("document.getElementById('asked-angle')?.textContent === '90.0°' && document.querySelectorAll('.steer-grid .pair figure').length >= 3")


def check_map(page):
    page.ask("location.hash = 'map'")
    count = int(page.wait(f"{VIEW}.points"))
    assert count > 100, count
    page.wait("window.mapForTests.points.drawn > 0")
    x, y = page.ask("(() => { const p = window.mapForTests.points; const b = p.canvas.getBoundingClientRect(); const [x, y] = p.place_of(7); return [b.left + x, b.top + y]; })()")
    page.mouse("mousePressed", x, y)
    page.mouse("mouseReleased", x, y)
    page.wait(f"Number({VIEW}.picked) >= 1")
    assert page.ask("document.querySelectorAll('.near figure').length") >= 1
    x, y, width, height = page.middle(".map canvas")
    page.ask("[...document.querySelectorAll('button')].find((button) => button.textContent === 'Lasso').click()")
    w, h = 0.45 * width, 0.45 * height
    corners = [(x - w, y - h), (x + w, y - h), (x + w, y + h), (x - w, y + h)]
    page.mouse("mousePressed", *corners[0])
    for corner in corners:
        page.mouse("mouseMoved", *corner, buttons=1)
    page.mouse("mouseReleased", *corners[-1])
    page.wait(f"Number({VIEW}.picked) > {count // 3}")
    # Other colours repaint the canvas.
    x, y, width, height = page.middle(".map canvas")
    clip = {"x": x - width / 2, "y": y - height / 2, "width": width, "height": height, "scale": 0.5}
    before = page.call("Page.captureScreenshot", format="png", clip=clip)["data"]
    page.ask("(() => { const s = document.querySelector('select[aria-label=colour]'); s.value = 'angle'; s.dispatchEvent(new Event('change')); })()")
    end = time.time() + 30
    while page.call("Page.captureScreenshot", format="png", clip=clip)["data"] == before:
        assert time.time() < end, "other colours do not show"
        time.sleep(0.2)
    measure_map(page)


# 100,000 points that are moved with every frame for some seconds.
MANY = """(async () => {
  const { points } = window.mapForTests;
  const count = 100000;
  const place = () => Float32Array.from({ length: count }, () => Math.random() + Math.random() + Math.random());
  points.set(place(), place());
  points.colours(Float32Array.from({ length: 3 * count }, Math.random));
  await new Promise((done) => setTimeout(done, 500));
  const [drawn, began] = [points.drawn, performance.now()];
  let shown = 0;
  await new Promise((done) => {
    const step = (now) => {
      points.centre = [0.2 * Math.sin(now / 200), 0.2 * Math.cos(now / 300)];
      points.move();
      shown = points.shown;
      if (now - began > 4000) done(); else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  return [(points.drawn - drawn) / (performance.now() - began) * 1000, shown];
})()"""


def measure_map(page):
    """How fast many points move; at rest all are drawn, and a click finds one."""
    rate, shown = page.ask(MANY)
    page.wait("!window.mapForTests.points.moving && window.mapForTests.points.shown === 100000")
    found = page.ask("(() => { const p = window.mapForTests.points; return [3, 77777].every((i) => { const near = p.nearest([p.x[i], p.y[i]]); return p.x[near] === p.x[i] && p.y[near] === p.y[i]; }); })()")
    assert found, "a point is not found where it is"
    print(f"map of 100,000 points: {rate:.0f} frames/s while they move ({shown} of them drawn), all at rest", flush=True)


def check_errors(page):
    page.ask("location.hash = 'errors'")
    count = int(page.wait(f"{VIEW}.errors"))
    page.wait("document.querySelectorAll('.errors-grid tbody tr').length > 1")
    check_headings(page)
    page.ask("document.querySelector('.errors-grid tbody tr').click()")
    page.wait(f"Number({VIEW}.errors) < {count}")


def check_headings(page):
    """The headings of a table that is scrolled stay, and so does the line under them."""
    # Half a row is scrolled away, so that no line of a row is near.
    left, bottom, colour = page.ask("""(() => {
      const box = [...document.querySelectorAll('.errors-grid .scroll')].at(-1);
      const [heading, row] = [box.querySelector('th'), box.querySelector('tbody tr')];
      box.style.maxHeight = '6rem';
      box.scrollTop = 1.5 * row.getBoundingClientRect().height;
      if (box.scrollTop === 0) throw new Error('the table does not scroll');
      box.scrollIntoView({ block: 'center' });
      const place = heading.getBoundingClientRect();
      return [Math.round(place.left + scrollX), Math.round(place.bottom + scrollY), getComputedStyle(heading).borderBottomColor];
    })()""")
    found = page.colours(left + 2, bottom - 4, 7)
    assert colour in found, f"no line of {colour} under the headings: {found}"


def check_narrow_tables(page):
    """On a phone, tables scroll inside their panel, and names stay legible."""
    page.size(390, 844)
    page.ask("location.hash = 'runs'")
    page.wait("document.querySelectorAll('.scroll tbody tr').length > 0")
    width, height = page.ask("(() => { const b = document.querySelector('.scroll tbody td').getBoundingClientRect(); return [b.width, b.height]; })()")
    assert width > 90 and height < 90, f"a run's name has {width:.0f} x {height:.0f} pixels"
    page.size(1440, 900)


def check_runs(page, is_training):
    page.ask("location.hash = 'runs'")
    page.wait("document.querySelectorAll('.chart').length > 0")
    first = int(page.wait(f"{VIEW}.drawn"))
    if is_training:
        page.wait(f"Number({VIEW}.drawn) > {first}")
        assert "running" in page.ask("document.querySelector('table').textContent")


def check_other_steps(page):
    """Runs whose epochs have different numbers of steps: their curves are over steps."""
    page.ask("location.hash = 'runs'")
    page.wait("document.querySelectorAll('.chart path.line').length >= 2")
    page.wait("document.querySelector('.runs-grid h2 small').textContent.includes('over steps')")
    # Both have a checkpoint at their end, so the mark is at the end of the chosen run's curve, whichever that is.
    page.wait("document.querySelectorAll('.chart .mark').length > 0")


def set_number(page, label, value):
    """Types a number beside a slider, of the motion where there is one."""
    page.ask(f"(() => {{ const all = [...document.querySelectorAll('input[type=number]')].filter((field) => field.getAttribute('aria-label').trim() === {json.dumps(label)}); const field = all.at(-1); field.value = {value}; field.dispatchEvent(new Event('change')); }})()")


GROUPS = "[...document.querySelectorAll('%s .group')].map((title) => title.textContent).join()"


def check_affine(page):
    """A run of an affine group: sliders for scale and shear, in Turn and in Steer."""
    page.wait(f"{VIEW}.looked")
    assert page.ask(GROUPS % ".controls") == "Rotation, degrees,Translation,Scale,Shear,Light"
    before = page.ask("document.querySelector('.stage img').src")
    set_number(page, "xy", 0.5)
    page.wait(f"document.querySelector('.stage img').src !== {json.dumps(before)}")
    page.ask("location.hash = 'steer'")
    page.wait(f"{VIEW}.steered")
    assert page.ask(GROUPS % ".motion") == "Rotation, degrees,Translation,Scale,Shear"
    steered = page.ask(f"{VIEW}.steered")
    set_number(page, "yz", 0.25)
    page.wait(f"{VIEW}.steered !== '{steered}'")
    assert page.ask("['translation', 'scale', 'shear'].every((part) => document.querySelector(`[data-off=${part}]`))")
    # A matrix that no rotation is; the sliders follow it.
    values = ["1.5", "0", "0", "0", "1", "0", "0", "0", "1"]
    page.ask(f"(() => {{ const values = {json.dumps(values)}; document.querySelectorAll('.matrix input').forEach((cell, i) => {{ cell.value = values[i]; }}); document.querySelector('.matrix input').dispatchEvent(new Event('change')); }})()")
    page.wait("document.getElementById('asked-angle').textContent === '0.0°' && [...document.querySelectorAll('.motion input[type=number]')].some((field) => Number(field.value) === 1.5)")
    page.wait("[...document.querySelectorAll('.pair img')].length >= 3 && [...document.querySelectorAll('.pair img')].every((image) => image.complete && image.naturalWidth > 0)")


def check_photographs(page):
    """A run on photographs: its stored views, one sentence on why there are no others, and all views without a complaint."""
    page.wait(f"{VIEW}.looked")
    assert "photographs" in page.ask("document.querySelector('.not-live').textContent")
    assert page.ask(GROUPS % ".controls") == ""
    x, y, width, _ = page.middle(".stage")
    page.drag((x - width / 4, y), (x + width / 4, y))
    page.key("ArrowRight")
    page.key(".")
    page.wait("document.querySelector('.stage img').naturalWidth > 0")
    page.ask("location.hash = 'steer'")
    page.wait(f"{VIEW}.steered")
    assert page.ask("document.querySelectorAll('.matrix input').length") == 4
    assert page.ask(GROUPS % ".motion") == "Rotation, degrees,Translation,Scale,Shear,Perspective"
    assert page.ask("document.getElementById('asked-angle').textContent") == "45.0°"
    # Perspective is asked for, stays where the sliders have it, and is on the command line.
    asked, steered = len(page.posted), page.ask(f"{VIEW}.steered")
    set_number(page, "y", 0.12)
    page.wait(f"{VIEW}.steered !== '{steered}'")
    moved = [json.loads(body) for body in page.posted[asked:]]
    assert [body["perspective"] for body in moved][-1] == [0, 0.12], moved
    assert page.ask("[...document.querySelectorAll('.motion input[type=number]')].at(-1).value") == "0.12"
    assert page.ask("Number(document.querySelector('[data-off=perspective]').textContent) >= 0")
    assert "--perspective 0,0.12 " in page.ask("import('./steer.js').then((steer) => steer.command())")
    for name, ready in [("map", "points"), ("errors", "errors"), ("runs", "drawn")]:
        page.ask(f"location.hash = '{name}'")
        page.wait(f"{VIEW}.{ready}")


def check_ticks(page):
    """No label of an axis is cut off, however many epochs there are."""
    for end in (1000, 9000, 15000, 100000):
        cut = page.ask(f"""(async () => {{
          const {{ chart }} = await import("./chart.js");
          const drawn = chart([{{ name: "a", colour: "#000", points: [[0, 0.5], [{end}, 1]] }}]);
          document.body.append(drawn);
          const box = drawn.getBoundingClientRect();
          const ticks = [...drawn.querySelectorAll("text")].filter((text) => text.textContent);
          const cut = ticks.filter((text) => {{ const own = text.getBoundingClientRect(); return own.left < box.left || own.right > box.right; }});
          drawn.remove();
          return [ticks.length, cut.map((text) => text.textContent), new Set(ticks.map((text) => text.textContent)).size];
        }})()""")
        assert cut[0] > 5 and cut[1] == [] and cut[2] == cut[0], f"{end}: {cut}"


def check_no_poses(page):
    """VICReg on pictures without poses: no angles, no word of motions, and one sentence on why."""
    page.wait(f"{VIEW}.looked")
    text = page.ask("document.getElementById('view').textContent")
    assert "Nearest by embedding" in text and "these data have no poses" in text, text
    assert "away" not in text and "the part that follows" not in text and "–" not in text, text
    page.ask("location.hash = 'errors'")
    page.wait(f"{VIEW}.errors")
    text = page.ask("document.getElementById('view').textContent")
    assert "There are no errors of rotation: these data have no poses. Classes are those of" in text, text
    assert "is moved to" not in text and "–" not in text and "over 60" not in text, text
    assert page.ask("document.querySelectorAll('.errors-grid .near figure').length") > 0
    page.ask("location.hash = 'map'")
    page.wait(f"{VIEW}.points")
    assert "error" not in page.ask("[...document.querySelector('select[aria-label=colour]').options].map((option) => option.value).join()").split(",")
    page.ask("location.hash = 'steer'")
    page.wait("[...document.querySelectorAll('.bad')].some((note) => note.textContent.includes('do not follow motions'))")
    page.complaints = [text for text in page.complaints if "400" not in text]


def check_no_motions(page):
    """VICReg on data with poses: angles of neighbours, but no errors of rotation."""
    page.wait(f"{VIEW}.looked")
    text = page.ask("document.getElementById('view').textContent")
    assert "Nearest by embedding" in text and "° away" in text and "the part that follows" not in text, text
    page.ask("location.hash = 'errors'")
    page.wait(f"{VIEW}.errors")
    text = page.ask("document.getElementById('view').textContent")
    assert "There are no errors of rotation: this network's embeddings do not follow motions" in text, text
    assert "is moved to" not in text and "–" not in text, text


def check_other_groups(equicaps, page, work, started):
    """Runs whose views are deformed, or are photographs; returns the addresses of their pages."""
    def run(*words):
        subprocess.run([equicaps, *words, "--quiet"], check=True, cwd=work, stdout=subprocess.DEVNULL)

    run("render", "--procedural", "3x6", "--preset", "3diebench", "--views", "1", "--size", "64", "--quality", "fast", "--out", "pictures")
    # The same pictures without poses, two in a row as views of one object.
    pictures = sorted((work / "pictures").glob("*/*/image_*.jpg"))
    rows = [f"{path.relative_to(work)},{path.parts[-3]},{index // 2}" for index, path in enumerate(pictures)]
    (work / "table.csv").write_text("file,class,object\n" + "\n".join(rows) + "\n")
    run("dataset", "import", "table.csv", "--size", "64", "--out", "no-poses")
    addresses = []
    for name, data, transform, more, check in [
        ("affine", "procedural:2x4", "affine", [], check_affine),
        ("photographs", "pictures", "image-homography", [], check_photographs),
        ("small batches", "procedural:2x4", "rotation", ["epochs=3", "batch=2"], check_other_steps),
        ("no poses", "no-poses", "rotation", [], check_no_poses),
        ("no motions", "procedural:2x4", "rotation", [], check_no_motions),
    ]:
        settings = ["epochs=1", "batch=8", "network.width=8", "procedural.views=8", *more]
        method = "vicreg" if check in (check_no_poses, check_no_motions) else "equicaps"
        run("train", "--data", data, "--method", method, "--transform", transform, "--preset", "demo", "--device", "cpu", "--run", name, *(word for setting in settings for word in ("--set", setting)))
        # Features cannot be kept where this file is; they are in memory then.
        (work / name / "evaluation").write_text("")
        server, address = explore(equicaps, [name, "run"] if check is check_other_steps else [name], started, work)
        addresses.append(address)
        page.call("Page.navigate", url=address)
        page.wait("document.querySelectorAll('.tabs a').length === 5")
        check(page)
        page.quiet()
        page.call("Page.navigate", url="about:blank")
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) == 0, "the explorer does not end as it should"
        print(f"{name}: ok", flush=True)
    return addresses


def explore(equicaps, runs, started, folder=None):
    """An explorer of some runs, and its address."""
    command = [equicaps, "explore", *runs, "--port", "0", "--no-open", "--device", "cpu", "--quiet"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, cwd=folder)
    started.append(server)
    return server, first_line(server)


def check_widths(page):
    for width in (390, 768, 1280, 2560):
        page.size(width, 900)
        for name in ("turn", "steer", "map", "runs", "errors"):
            page.ask(f"location.hash = '{name}'")
            page.wait(f"document.body.dataset.view === '{name}'")
            time.sleep(0.3)
            wide = page.ask("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} pixels wide on a screen of {width}"


def check_help(page):
    page.ask("document.activeElement.blur()")
    page.key("?")
    page.wait("document.getElementById('keys').open")
    page.ask("(() => { document.getElementById('keys').close(); document.activeElement?.blur(); })()")
    page.wait("!document.querySelector('dialog[open]')")
    theme = page.ask("document.documentElement.dataset.theme")
    page.key("t")
    page.wait(f"document.documentElement.dataset.theme !== '{theme}'")
    page.key("3")
    page.wait("document.body.dataset.view === 'map'")


def screenshots(page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    page.ask("(() => { localStorage.setItem('theme', 'light'); document.documentElement.dataset.theme = 'light'; })()")

    def shot(name, width=1440, height=900, wait=1.5):
        page.size(width, height)
        page.wait("document.getElementById('status').hidden")
        page.wait("[...document.images].filter((image) => image.loading !== 'lazy').every((image) => image.complete)")
        time.sleep(wait)
        page.save(folder / f"explorer-{name}.jpg")

    def pose(*angles):
        before = page.ask(f"JSON.stringify({VIEW})")
        fields = "document.querySelectorAll('.controls')[0].querySelectorAll('input[type=number]')"
        page.ask(f"[{','.join(map(str, angles))}].forEach((angle, i) => {{ const field = {fields}[i + 1]; field.value = angle; field.dispatchEvent(new Event('change')); }})")
        page.wait(f"JSON.stringify({VIEW}) !== {json.dumps(before)}")

    page.size(1440, 900)
    page.ask("location.hash = 'turn'")
    page.wait(f"{VIEW}.looked")
    page.ask("(() => { const s = document.querySelector('select[aria-label=Object]'); s.value = [...s.options].find((o) => o.textContent.startsWith('airplane')).value; s.dispatchEvent(new Event('change')); })()")
    page.ask("(() => { const box = document.querySelector('input[type=checkbox]'); box.click(); })()")
    pose(-20, 10, 35)
    shot("turn", wait=3)
    page.ask("location.hash = 'steer'")
    page.wait(f"{VIEW}.steered")
    page.ask("[...document.querySelectorAll('.panel button')].find((button) => button.textContent === '0, 0, 45').click()")
    pose(-30, 20, -20)
    shot("steer", wait=3)
    page.ask("location.hash = 'map'")
    page.wait(f"{VIEW}.points")
    page.ask("(() => { const s = document.querySelector('select[aria-label=how]'); s.value = 'tsne'; s.dispatchEvent(new Event('change')); const c = document.querySelector('select[aria-label=colour]'); c.value = 'class'; c.dispatchEvent(new Event('change')); const b = document.querySelector('select[aria-label=by]'); b.value = 'representation'; })()")
    time.sleep(1)
    page.wait("document.getElementById('status').hidden && !document.querySelector('.map-grid').textContent.includes('computing')", 300)
    time.sleep(1)
    page.ask("window.mapForTests.points.picked(40)")
    shot("map")
    page.ask("location.hash = 'runs'")
    page.wait("document.querySelectorAll('.runs-grid .panel').length > 0 || document.querySelectorAll('table').length > 0")
    shot("runs")
    page.ask("(() => { document.documentElement.dataset.theme = 'dark'; location.hash = 'errors'; })()")
    page.wait(f"{VIEW}.errors")
    page.ask("[...document.querySelectorAll('button')].find((button) => button.textContent === 'all objects').click()")
    shot("errors", wait=3)
    page.ask("location.hash = 'turn'")
    page.wait(f"{VIEW}.looked")
    shot("phone", 390, 844)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("equicaps")
    parser.add_argument("chromium")
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--only-screenshots", action="store_true")
    parser.add_argument("--run", action="append", default=[])
    parser.add_argument("--address", help="a page that is there already")
    arguments = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="explorer-"))
    started = []
    try:
        runs = arguments.run
        is_training = not runs and not arguments.address
        if is_training:
            # A run that trains while it is looked at.
            runs = ["builtin", str(work / "run")]
            train = [arguments.equicaps, "train", "--data", "procedural:2x4", "--preset", "demo", "--device", "cpu", "--threads", "1", "--quiet", "--run", runs[1]]
            settings = ["epochs=99999", "batch=8", "network.width=8", "logging.every_steps=2", "checkpoints.every_epochs=50", "probes.held_out_every=5", "procedural.views=8"]
            train += [word for setting in settings for word in ("--set", setting)]
            started.append(subprocess.Popen(train, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            end = time.time() + 120
            while not (work / "run" / "metrics.jsonl").exists():
                assert time.time() < end and started[0].poll() is None, "the run does not start"
                time.sleep(0.1)
        server, address = None, arguments.address
        if not address:
            server, address = explore(arguments.equicaps, runs, started)
        assert address.startswith("http://127.0.0.1:"), address
        browser, page = browse(arguments.chromium, work / "browser")
        started.append(browser)
        for domain in ("Runtime", "Log", "Page", "Network"):
            page.call(f"{domain}.enable")
        page.size(1440, 900)
        page.call("Page.navigate", url=address)
        page.wait("document.querySelectorAll('.tabs a').length === 5")
        if not arguments.only_screenshots:
            for name, check in [("turn", check_turn), ("steer", check_steer), ("map", check_map), ("errors", check_errors)]:
                check(page)
                page.quiet()
                print(f"{name}: ok", flush=True)
            check_runs(page, is_training)
            check_narrow_tables(page)
            check_ticks(page)
            page.quiet()
            print("runs: ok", flush=True)
            check_help(page)
            check_widths(page)
            page.quiet()
            print("keys and widths: ok", flush=True)
        if arguments.screenshots:
            screenshots(page, arguments.screenshots)
            page.quiet()
            print(f"screenshots in {arguments.screenshots}", flush=True)
        own = [address]
        if is_training and not arguments.only_screenshots:
            own += check_other_groups(os.path.abspath(arguments.equicaps), page, work, started)
        known = tuple(prefix + one for one in own for prefix in ("", "blob:"))
        elsewhere = [url for url in page.requests if not url.startswith((*known, "data:", "about:"))]
        assert not elsewhere, elsewhere
        if server:
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 0, "the explorer does not end as it should"
            print("ended by Ctrl-C: ok")
    finally:
        for process in reversed(started):
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(work, ignore_errors=True)


main()
