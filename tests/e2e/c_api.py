#!/usr/bin/env python3
"""docs/c-api.md against runtime/include/gnnc.h, docs/compiler-api.md against frontend/include/gnncc.h: each function and type of the header is on the page, functions in the header's
order, with its declaration (of structures and enumerations with the comments of their members); none that the header lacks; and the
statuses named for a function are those of its comment there.

    c_api.py TOP        prints `N passed, N failed`
"""
import re
import sys

PART = re.compile(r"(/\*.*?\*/)|([^;{}/]+(?:\{.*?\})?[^;{}/]*;)", re.S)
FENCE = re.compile(r"(?<!`:\n)^```c\n(.*?)^```\n(.*?)(?=^```c\n|^#|\Z)", re.M | re.S)


def flat(text):
    """On one line, without what a formatter chooses."""
    return re.sub(r"\s*([()*,\[\]{};])\s*", r"\1", " ".join(text.split()))


def bare(text):
    """Without comments."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def codes(text):
    """The statuses that a text names: GNNC_E_SHAPE, E_SHAPE, and _SHAPE beside these."""
    text = re.sub(r"(?<=[\s,(`])_([A-Z]+)\b", r"E_\1", re.sub("GNNCC?_E_", "E_", text))
    return set(re.findall(r"\bE_[A-Z]+\b", text))


class Declared:
    """A declaration and what the comments above and behind it say.  One without has the comment of the one right before it."""
    def __init__(self, text, said):
        self.text, self.said = flat(text), said
        code = flat(bare(text))
        name = re.search(r"(gnncc?_\w+)\(", code) or re.search(r"(\w+);$", code)
        self.name = name.group(1) if name else re.findall(r"\w+", code)[1]  # enum { GNNC_MAX_RANK ..
        self.is_function = "(" in code and not code.startswith("typedef")
        self.gives_status = self.is_function and code.startswith(("gnnc_status ", "gnncc_status "))


def declared(header):
    body = header[header.index("/* A short text for a status"):header.index("#if defined(__GNUC__)\n#pragma GCC visibility pop")]
    body = re.sub(r"^#(?:.*\\\n)*.*\n", "", body, flags=re.M)
    said, at, found = "", 0, []
    for m in PART.finditer(body):
        text, between = m.group(0).strip(), body[at:m.start()] + m.group(0)[:len(m.group(0)) - len(m.group(0).lstrip())]
        if m.group(1) and "\n" not in between and found:
            found[-1].said += text
        elif m.group(1):
            said = "" if text.startswith("/* ----") else text
        else:
            if "\n\n" in between or (found and not found[-1].is_function and "{" in text):
                said = said if body[:m.start()].rstrip().endswith("*/") else ""
            found.append(Declared(text, said))
        at = m.end()
    return found


def described(page):
    """name -> (declaration, what is said of it)"""
    found = {}
    for code, said in FENCE.findall(page):
        for m in re.finditer(r"[^;{]+(?:\{[^}]*\}[^;]*)?;", code):
            d = Declared(m.group(0).strip(), said)
            found[d.name] = d
    return found


def held(header, page, at_least):
    """How many declarations and statuses are right, and what is wrong."""
    with open(sys.argv[1] + header, encoding="utf-8") as f:
        header = f.read()
    with open(sys.argv[1] + page, encoding="utf-8") as f:
        page = f.read()
    want, have, wrong = declared(header), described(page), []
    statuses = re.findall(r"^    X\((\w+), (-?\d+), \"(.*?)\"\)", header, re.M)
    for name, _, text in statuses:
        if not re.search(rf"^\| `{name}` \| .*{re.escape(text)}", page, re.M):
            wrong.append(f"{name}: not in the page's table of statuses")
    for d in want:
        own = have.get(d.name)
        if not own:
            wrong.append(f"{d.name}: not on the page")
        elif own.text != d.text:
            wrong.append(f"{d.name}: the page has\n    {own.text}\n  the header\n    {d.text}")
        elif d.gives_status and codes(own.said) != codes(d.said):
            wrong.append(f"{d.name}: the page names {sorted(codes(own.said))}, the header {sorted(codes(d.said))}")
    wrong += [f"{name}: not in the header" for name in have.keys() - {d.name for d in want}]
    order = [d.name for d in want if d.is_function]
    index = re.search(r"^## Functions\n(.*?)^## ", page, re.M | re.S)
    if index:
        listed = re.findall(r"`(\w+)`", index.group(1))
        wrong += [f"{name}: not in the page's list of functions" for name in order if name[len("gnnc_"):] not in listed]
    if [x for x in have if x in order] != order:
        wrong.append("the order is not the header's")
    assert len(want) > at_least and len(statuses) > 5, "the header was not read"
    return len(want) + len(statuses) - len(wrong), wrong


def main():
    parts = [held("/runtime/include/gnnc.h", "/docs/c-api.md", 100), held("/frontend/include/gnncc.h", "/docs/compiler-api.md", 25)]
    wrong = sum((w for _, w in parts), [])
    for w in wrong:
        print(w)
    print(f"{sum(n for n, _ in parts)} passed, {len(wrong)} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
