"""The fenced blocks of a page of documentation, for docs.py and extending.py."""
import re

FENCE = re.compile(r"(?:^`(?P<name>[\w./-]+)`:\n)?^```(?P<kind>[\w-]+) *(?P<words>[^\n]*)\n(?P<body>.*?)^```", re.M | re.S)


def fences(text):
    """(kind, words, body, file, start) of each block: what stands behind its ```, its lines, the file that they are.
    What a reader must know is in the rendered text, so a line "`NAME`:" in front of a block names its file."""
    for m in FENCE.finditer(text):
        yield m["kind"], m["words"].strip(), m["body"], m["name"], m.start("kind")


def commands(body):
    """(command, output) of each `$ COMMAND` in a console block.  A command goes on after a line that ends in a backslash."""
    said = []
    for command, output in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", body, re.M):
        said.append((command.replace("\\\n", " "), output))
    return said
