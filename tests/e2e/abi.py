#!/usr/bin/env python3
"""What programs that were compiled with gnnc.h have of libgnnrt.so is what tests/abi/gnnc.xml says, and of libgnncc.so with gnncc.h what
gnncc.xml says (libabigail): nothing of it has gone or has changed.  Functions may be added.

    abi.py TOP BUILD
"""
import os
import re
import shutil
import subprocess
import sys

TOP, BUILD = sys.argv[1:3]
KEPT = TOP + "/tests/abi/"
RENEW = "docs/c-api.md, \"The binary interface\", says what may change; `make abi` renews tests/abi"


def differs(old, new):
    """What abidiff says of it; "" where a program that knows the old one runs with the new one."""
    r = subprocess.run(["abidiff", "--no-added-syms", old, new], capture_output=True, text=True)
    assert r.returncode in (0, 4, 8, 12), (r.returncode, r.stderr)
    assert not r.returncode or r.stdout, r
    return r.stdout if r.returncode else ""


def altered(pattern, replacement):
    """The library's, of which one thing is another."""
    with open("gnnc.xml", encoding="utf-8") as f:
        text, n = re.subn(pattern, replacement, f.read(), flags=re.S)
    assert n, pattern
    with open("altered.xml", "w", encoding="utf-8") as f:
        f.write(text)
    return "altered.xml"


def main():
    if not shutil.which("abidiff"):
        assert "GNNC_CI" not in os.environ, "abigail-tools are missing"
        print("skipped: no abidiff")
        return
    r = subprocess.run(["make", "-s", "-C", TOP, "BUILD=" + BUILD, "ABI=" + os.getcwd(), "abi"], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    for name in ("gnnc.xml", "gnncc.xml"):
        said = differs(KEPT + name, name)
        assert not said, said + RENEW
    with open("gnncc.xml", encoding="utf-8") as f:
        assert len(re.findall("<function-decl", f.read())) > 25
    one = r"\s*<elf-symbol name='gnnc_version'[^>]*>|\s*<function-decl name='gnnc_version'.*?</function-decl>"
    assert "Removed function" in differs("gnnc.xml", altered(one, "")) and not differs(altered(one, ""), "gnnc.xml")
    for what, pattern, other in (
            ("gnnc_memory", r"(class-decl name='gnnc_memory' size-in-bits=)'\d+'", r"\1'64'"),
            ("data_bytes", r"(layout-offset-in-bits=)'64'(>\s*<var-decl name='data_bytes')", r"\1'96'\2"),
            ("GNNC_E_NOMEM", r"(enumerator name='GNNC_E_NOMEM' value=)'-1'", r"\1'-2'"),
            ("soname", r"libgnnrt\.so\.\d+", "libgnnrt.so.99")):
        said = differs("gnnc.xml", altered(pattern, other)).lower()
        assert what.lower() in said, (what, said)
    print("ok abi")


main()
