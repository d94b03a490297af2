#!/usr/bin/env python3
"""The page of --emit=html in a browser: what it shows, its keys, in light and dark, wide and narrow, and that nothing is asked of a
network, told to the console, or taken for markup.

    inspector.py GNNC TOP DATA [PICTURES]      in an empty directory; PICTURES: a folder for what was seen
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find  # noqa: E402

GNNC, TOP, DATA = sys.argv[1:4]
PICTURES = sys.argv[4] if len(sys.argv) > 4 else None
READY = "document.documentElement.dataset.ready"
LARGEST = "relational_transformer"


def compiled(out, *args):
    subprocess.run([GNNC, *args, "--emit=html", "-o", out], check=True)
    return out


def clean(page):
    faults = list(page.faults())
    assert not faults, faults


def opened(page, path, seconds=None):
    page.open(path)
    page.until(READY)
    took = float(page.eval(READY))
    assert seconds is None or took < 1000 * seconds, f"{path} took {took} ms"
    return took


def picture(page, name):
    if PICTURES:
        page.picture(f"{PICTURES}/{name}.png")


def text(page, selector):
    return page.eval(f"[...document.querySelectorAll({selector!r})].map((e) => e.textContent)")


def stages_highlight_together(page, stages):
    """A line that is chosen in the source is found in each stage, and a line of a stage in the source."""
    page.key("1")
    page.key("j")
    assert page.eval("document.querySelector('.src.sel').dataset.line") == "13"
    names = text(page, "section[aria-label=stages] [role=tab]")
    assert names == stages, names
    for name in stages:
        page.until("document.querySelector('.row.hit') !== null")
        many, all_lines = page.eval("document.querySelector('section[aria-label=stages] .bar .dim').textContent.match(/\\d+/g).map(Number)")
        assert 0 < many < all_lines, (name, many, all_lines)
        assert name != "loops" or many > 300, f"places of {many} lines are read"
        page.eval("document.querySelector('section[aria-label=stages] .bar .dim').textContent = ''")
        page.key("]")
        page.until("document.querySelector('section[aria-label=stages] .bar .dim').textContent !== ''")
    page.key("Escape")
    page.until("document.querySelector('.src.sel') === null")
    page.eval("document.querySelectorAll('section[aria-label=stages] [role=tab]')[2].click()")  # loops
    page.until("document.querySelector('.row .at') !== null && document.querySelector('.row').textContent.includes('kernel')")
    page.eval("document.querySelector('.row .at').parentElement.click()")
    page.until("document.querySelector('.src.sel') !== null")


def every_view(page, what, width):
    for i, name in enumerate(("Source", "Passes", "Missed", "Memory", "Roofline", "Kernels", "Data", "Compare")):
        page.key(str(i + 1))
        page.until(f"document.querySelector('[role=tab][aria-selected=true]').textContent === {name!r}")
        page.until("document.getElementById('main').textContent.length > 20")
        assert page.eval("document.documentElement.scrollWidth") <= width, f"{what}: {name} is wider than the window"
        picture(page, f"{what}-{name.lower()}")


def passes_step(page):
    page.key("2")
    page.until("document.querySelectorAll('.item').length > 5 && document.querySelector('.row.add, .row.del') !== null")
    first = page.eval("document.querySelector('.item[aria-current=true] b').textContent")
    page.key("j")
    assert page.eval("document.querySelector('.item[aria-current=true] b').textContent") != first


def keys_are_told(page):
    page.key("?")
    page.until("document.getElementById('help').open")
    assert "Esc" in " ".join(text(page, "dt"))
    page.key("Escape")
    page.until("!document.getElementById('help').open")
    page.key("Tab")
    outline = page.eval("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", f"who has the focus is not seen: {outline}"
    roles = page.eval("['tablist', 'tab', 'tabpanel'].map((r) => document.querySelectorAll(`[role=${r}]`).length > 0)")
    assert all(roles), roles


def two_beside(page, other):
    page.key("8")
    page.until("document.getElementById('other') !== null")
    page.choose_file("#other", other)
    page.until("document.getElementById('main').textContent.includes('Beside it')")
    assert len(text(page, "tbody tr")) > 10
    picture(page, "beside")


def usual(browser):
    cpu = compiled("cpu.html", f"{TOP}/models/gat.gnn", "--target=cpu", "--march=x86-64-v3")
    cuda = compiled("cuda.html", f"{TOP}/models/gat.gnn", "--target=cuda", f"--specialize={DATA}")
    page = browser.page()
    looks = {cpu: ((1280, 800, False), (390, 844, True)), cuda: ((1280, 800, True), (390, 844, False))}
    for path, stages in ((cpu, ["graph IR", "step plan", "loops", "LLVM IR", "assembly"]), (cuda, ["graph IR", "step plan", "loops", "CUDA C", "PTX"])):
        for width, height, dark in looks[path]:
            page.look(width, height, dark)
            opened(page, path)
            shade = page.eval("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
            assert (shade < 100) == dark, shade
            every_view(page, f"{path.split('.')[0]}-{width}-{'dark' if dark else 'light'}", width)
            clean(page)
        page.look(1280, 800, False)
        opened(page, path)
        has_ptx = page.eval("JSON.parse(document.getElementById('report').textContent).kernels.not_built") is None
        if path == cpu or has_ptx:
            stages_highlight_together(page, stages)
        passes_step(page)
        keys_are_told(page)
        clean(page)
    two_beside(page, cpu)
    clean(page)
    page.close()


def largest(browser):
    path = compiled("large.html", f"{TOP}/models/{LARGEST}.gnn", "--target=cpu", "--march=x86-64-v3")
    page = browser.page()
    page.look(1280, 800, False)
    took = min(opened(page, path) for _ in range(3))
    assert took < 1000, f"the largest model's page took {took} ms"
    print(f"{LARGEST}: {os.path.getsize(path) / 1e6:.1f} MB, drawn after {took:.0f} ms")
    every_view(page, "large", 1280)
    clean(page)
    page.close()


def measured(browser):
    """A trainer puts what it measures into the page of its program, again and again, and into no other."""
    model = f"{TOP}/models/sage_sampled.gnn"
    path = compiled("measured.html", model, "--target=cpu", f"--specialize={DATA}")
    subprocess.run([GNNC, model, "--target=cpu", "--no-rows", f"--specialize={DATA}", "-o", "sage"], check=True)
    bench = ["./sage", "bench", "--data", DATA, "--epochs", "3", "--html"]
    os.chmod(path, 0o600)
    os.symlink(os.path.basename(path), path + ".link")
    for to in (path, path + ".link"):
        subprocess.run([*bench, to], check=True, stdout=subprocess.DEVNULL)
    assert os.path.islink(path + ".link") and os.stat(path).st_mode & 0o777 == 0o600, "the page is another file now"
    with open(path, encoding="utf-8") as f:
        assert f.read().count('id="measured"') == 1
    page = browser.page()
    page.look(1280, 800, False)
    opened(page, path)
    tiles = text(page, ".tile")
    assert "measured step of @train" in tiles[0] and "s" in tiles[0], tiles
    page.key("6")
    page.until("[...document.querySelectorAll('th')].some((h) => h.textContent.startsWith('measured'))")
    rows = page.eval("[...document.querySelectorAll('tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
    head = [h.strip(" ↓↑") for h in text(page, "thead th")]
    assert sum(1 for r in rows if r[head.index("measured")]) > len(rows) / 2, rows
    page.key("5")
    page.until("document.querySelector('polyline.roof') !== null")
    page.key("7")
    said = page.eval("document.getElementById('main').textContent")
    assert "10,556 edges into 2,708 rows of paper" in said and "draws at most 10 each" in said, said
    picture(page, "measured-data")
    clean(page)
    page.close()
    for bad, why in (("cpu.html", "is the page of another program"), ("sage", "is no page of gnnc --emit=html"), ("absent.html", "cannot be read")):
        r = subprocess.run([*bench, bad], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert r.returncode == 1 and f"--html: {bad}" in r.stderr and why in r.stderr, r.stderr


HOSTILE = "</script><script>alert(1)<!--"


def hostile(browser):
    """Names that would end a script, or are no UTF-8, are text."""
    os.makedirs(b'x"\xff<b>', exist_ok=True)
    path = b'x"\xff<b>/m & <i>.gnn'
    with open(path, "wb") as f:
        f.write(b'# ' + HOSTILE.encode() + b' &lt; "\n' + b"graph G { node n { x: f32[F]; y: class[C]; split } edge e: n -> n }\n"
                b"model M(g: G) -> f32[n, C] {\n  h = linear(16)(g.n.x)\n  print(\"" + HOSTILE.encode() + b"\", sum(h))\n  return linear(C)(h)\n}\n"
                b"train M { target n.y   loss cross_entropy   optimizer adam }\n")
    subprocess.run([GNNC, path, "--target=cpu", "--emit=html", "-o", "hostile.html"], check=True)
    page = browser.page()
    page.look(1280, 800, False)
    opened(page, "hostile.html")
    every_view(page, "hostile", 1280)
    page.key("1")
    assert HOSTILE in "".join(text(page, ".src pre")), text(page, ".src pre")
    assert page.eval("document.querySelectorAll('script').length") == 4 and page.eval("document.querySelectorAll('main b, main i i').length") < 100
    clean(page)
    page.close()


if __name__ == "__main__":
    program = find()
    if not program:
        print("LEFT OUT: there is no chromium, which looks at the page of --emit=html")
        sys.exit(0)
    home = tempfile.mkdtemp()
    chrome = Browser(program, home)
    try:
        usual(chrome)
        largest(chrome)
        measured(chrome)
        hostile(chrome)
    finally:
        chrome.close()
        shutil.rmtree(home, ignore_errors=True)
    print("the page is as it should be")
