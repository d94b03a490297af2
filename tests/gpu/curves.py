"""Numbers of epochs, as a trainer's --log=json tells them, beside those that were recorded."""
import json


def epochs(text):
    """[{name: number}] of a log: the loss, and what is known of each split."""
    found = []
    for row in (json.loads(line) for line in text.splitlines() if line.startswith("{")):
        if "epoch" not in row:
            continue
        numbers = {f"{split}.{name}": v for split in ("train", "val", "test") for name, v in row.get(split, {}).items()}
        found.append({"loss": row["loss"], **numbers})
    return found


def limit(bars, name, want):
    """How far the number may be from `want`; None: it is not compared."""
    is_loss = name.split(".")[-1] in ("loss", "rmse", "mae")
    evaluated = bars.loss if bars.evaluated is None else bars.evaluated
    bar = bars.loss if name == "loss" else evaluated if is_loss else bars.other
    return None if bar is None else bar * (abs(want) if bars.relative else max(1.0, abs(want)))


def compare(got, want, n, bars):
    """(why they differ, "" if they do not; the largest distance of a loss) of two logs of n epochs."""
    got, want = epochs(got), epochs(want)
    if len(got) != n or len(want) != n:
        return f"{len(got)} and {len(want)} epochs, not {n}", None
    far = 0.0
    for epoch, (g, w) in enumerate(zip(got, want), 1):
        for name, number in w.items():
            if not isinstance(number, (int, float)):
                continue
            bar, value = limit(bars, name, number), g.get(name)
            if bar is None:
                continue
            if not isinstance(value, (int, float)) or not abs(value - number) <= bar:
                return f"epoch {epoch}: {name} is {value}, not {number} (within {bar:.2g})", None
            if name == "loss":
                far = max(far, abs(value - number))
    return "", far
