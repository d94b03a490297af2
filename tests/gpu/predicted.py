"""What gnnc predicted (--report=times) beside what a profile measured, step by step.

A program's predictions are written before it has run anywhere; a step confirms them if it takes between 1 / NEAR and NEAR
times as long.  Steps below SHORT_US are not judged: a profile launches each step by itself, and that alone takes so long.
"""
NEAR, SHORT_US = 1.5, 10.0
COLUMNS = ("phase", "step", "name", "predicted_us", "measured_us", "ratio", "by", "verdict")


def machine_of(times, device):
    """Which of the machines that times are predicted for the device is; None: none of them."""
    return next((i for i, name in enumerate(times["machines"]) if name.lower() in device.lower()), None)


def verdict(predicted_us, measured_us):
    if predicted_us < SHORT_US:
        return "short"
    return "confirmed" if 1 / NEAR <= measured_us / predicted_us <= NEAR else "refuted"


def step_us(step, machine):
    return sum(launch["on"][machine]["ns"] for launch in step["launches"]) / 1e3


def compare(times, profile, machine):
    """Rows of COLUMNS, the slowest first: of each step that ran and is predicted."""
    steps = {(p["phase"], s["step"]): s for p in times["phases"] for s in p["steps"]}
    rows = []
    for s in profile["steps"]:
        step = steps.get((s["phase"], s["index"]))
        if not step or not step["launches"] or not s["calls"]:
            continue
        assert step["name"] == s["name"], (step["name"], s["name"])
        slowest = max(step["launches"], key=lambda launch: launch["on"][machine]["ns"])
        predicted, measured = step_us(step, machine), 1e3 * s["ms"] / s["calls"]
        rows.append(dict(zip(COLUMNS, (s["phase"], s["index"], s["name"], predicted, measured, measured / predicted,
                                       slowest["on"][machine]["by"], verdict(predicted, measured)))))
    return sorted(rows, key=lambda r: -r["measured_us"])


def phase_us(times, phase, machine):
    """A run of the phase; None: its sizes were not known."""
    return next((p["on_ns"][machine] / 1e3 for p in times["phases"] if p["phase"] == phase), None)


def in_words(times, rows, machine, took_ms):
    """How the predictions did: the step as a whole, as often as it was timed, and those of its parts that are long enough."""
    judged = [r for r in rows if r["verdict"] != "short"]
    wrong = sorted((r for r in judged if r["verdict"] == "refuted"), key=lambda r: -abs(r["measured_us"] - r["predicted_us"]))
    text = f"a step was predicted to take {phase_us(times, 'train', machine) / 1e3:.4g} ms"
    text += "".join(f" and took {ms:.4g}" for ms in took_ms)
    text += f"; {len(judged) - len(wrong)} of {len(judged)} parts of {SHORT_US:.0f} us or more took what was predicted, within a factor of {NEAR}"
    return text + "".join(f"; {r['phase']} {r['name']} took {r['measured_us']:.0f} us, not {r['predicted_us']:.0f} ({r['by']})" for r in wrong[:3])
