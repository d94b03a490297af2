"""What tests of many checks share: each check is told where it fails, and the end counts them."""
import subprocess

_failures, _done = [], []


def check(what, holds, told=""):
    _done.append(what)
    if not holds:
        _failures.append(what)
        print(f"FAILED {what}\n{told}")


def run(*command):
    """What a command printed, which is to end with status 0."""
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False)
    check(" ".join(command)[:200], r.returncode == 0, r.stdout)
    return r.stdout


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


def end():
    """The exit status, behind the line that counts."""
    print(f"{len(_done) - len(_failures)} passed, {len(_failures)} failed")
    return 1 if _failures or not _done else 0
