#!/usr/bin/env python3
"""Writes metrics_sklearn.json, which metrics.py compares the prelude's metrics with: random and degenerate inputs and what
scikit-learn says of them.  Not run by the tests, so they need no scikit-learn:

    python3 -m venv v && v/bin/pip install scikit-learn && v/bin/python tests/e2e/metrics_sklearn.py

A case is a list of rows, `s` scores and `y` labels.  Where scikit-learn's function does not take an input, the words beside
`undefined` below say what is compared instead; docs/language.md, "The prelude", tells users the same."""
import json
import os
import random
import warnings

import numpy as np
import sklearn
from sklearn import metrics as sk

NAN = float("nan")


def defined(f, *args):
    """null: undefined, as scikit-learn raises, warns that it is, or gives NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", sk._ranking.UndefinedMetricWarning)
        try:
            v = float(f(*args))
        except (ValueError, UserWarning):
            return None
    return None if np.isnan(v) else v


def mean(values):
    found = [v for v in values if v is not None]
    return float(np.mean(found)) if found else None


def ranked(f, y, p):
    """Of one task.  Undefined: rows of one kind, of which average_precision_score gives 0 or 1 all the same."""
    return defined(f, y, p) if len(set(y)) == 2 else None


def precisions(tasks):
    return {"average_precision": mean(ranked(sk.average_precision_score, y, p) for y, p in tasks)}


def of_classes(s, y):
    s, y = np.array(s, dtype=np.float64), np.array(y)
    guess, n = s.argmax(axis=1), s.shape[1]
    # log p / (1 - p): the order of softmax's p, which for large scores are 0 and 1
    odds = [s[:, k] - np.logaddexp.reduce(np.delete(s, k, axis=1), axis=1) for k in range(n)]
    tasks = [(y == k, odds[k]) for k in ([1] if n == 2 else range(n))]
    return {
        "accuracy": sk.accuracy_score(y, guess),
        "f1_micro": sk.f1_score(y, guess, average="micro"),
        "f1_macro": sk.f1_score(y, guess, average="macro"),
        # roc_auc_score(multi_class="ovr") raises where a class has no row; the others are compared
        "roc_auc": mean(ranked(sk.roc_auc_score, *t) for t in tasks),
        **precisions(tasks)}


def of_labels(s, y):
    """Undefined: NaN among labels; the known ones of each task are compared, or all known ones for f1_micro."""
    s, y = np.array(s, dtype=np.float64), np.array(y, dtype=np.float64)
    columns = [(y[k, t] > 0.5, s[k, t]) for t in range(y.shape[1]) for k in [~np.isnan(y[:, t])]]
    all_y, all_s = np.concatenate([c[0] for c in columns]), np.concatenate([c[1] for c in columns])
    return {
        "f1_micro": sk.f1_score(all_y, all_s > 0, zero_division=0) if len(all_y) else 0,
        "f1_macro": float(np.mean([sk.f1_score(a, b > 0, zero_division=0) if len(a) else 0 for a, b in columns])),
        "roc_auc": mean(ranked(sk.roc_auc_score, a, b) for a, b in columns),
        **precisions(columns)}


def of_numbers(s, y):
    """All known numbers as one column: scikit-learn's own mean of several columns' roots is another number."""
    s, y = np.array(s, dtype=np.float64).ravel(), np.array(y, dtype=np.float64).ravel()
    k = ~np.isnan(y)
    if not k.any():
        return {"mae": 0, "rmse": 0}
    return {"mae": sk.mean_absolute_error(y[k], s[k]), "rmse": sk.root_mean_squared_error(y[k], s[k])}


def scores(r, n, wide, values=None):
    """`values`: so few that many are equal."""
    return [[r.choice(values) if values else round(r.gauss(0, 2), 4) for _ in range(wide)] for _ in range(n)]


def class_cases(r, wide):
    def perfect(y):
        return [[4.0 if k == c else -0.25 * k for k in range(wide)] for c in y]
    three = scores(r, 3, wide)
    some = [r.randrange(wide) for _ in range(40)]
    based = [1 + r.randrange(wide - 1) for _ in range(30)]  # 1-based labels: class 0 is nobody's
    return {
        "random": (scores(r, 40, wide), some),
        "perfect": (perfect(some), some),
        "1-based, perfect": (perfect(based), based),
        "1-based, random": ([[-9.0, *row[1:]] for row in scores(r, 30, wide)], based),
        "1-based, guessed 0": (scores(r, 30, wide), based),
        "one class": (scores(r, 12, wide), [1] * 12),
        "one class, perfect": (perfect([1] * 12), [1] * 12),
        "one class, never guessed": (perfect([0] * 12), [1] * 12),
        "one row, right": (perfect([1]), [1]),
        "one row, wrong": (perfect([0]), [1]),
        "two rows": (scores(r, 2, wide), [0, 1]),
        "ties": ([r.choice(three) for _ in range(60)],
                 [r.randrange(wide) for _ in range(60)]),
        "all equal": ([[1.0] * wide] * 20, [r.randrange(wide) for _ in range(20)]),
        "rare class": (scores(r, 50, wide), [0] * 49 + [1]),
        "large": ([[60 * v for v in row] for row in scores(r, 30, wide)], [r.randrange(wide) for _ in range(30)])}


def label_cases(r, wide):
    def rows(n, values):
        return [[r.choice(values) for _ in range(wide)] for _ in range(n)]
    some = rows(30, [0.0, 1.0])
    return {
        "random": (scores(r, 30, wide), rows(30, [0.0, 1.0])),
        "perfect": ([[2.0 * v - 1 for v in row] for row in some], some),
        "gaps": (scores(r, 40, wide), rows(40, [0.0, 1.0, NAN])),
        "a task without labels": (scores(r, 20, wide), [[NAN, *row[1:]] for row in rows(20, [0.0, 1.0])]),
        "no labels": (scores(r, 6, wide), rows(6, [NAN])),
        "all 0": (scores(r, 9, wide), rows(9, [0.0])),
        "all 1": (scores(r, 9, wide), rows(9, [1.0])),
        "none there, none guessed": ([[-1.0] * wide] * 8, rows(8, [0.0])),
        "one row": (scores(r, 1, wide), rows(1, [0.0, 1.0])),
        "two rows": (scores(r, 2, wide), [[0.0] * wide, [1.0] * wide]),
        "ties": (scores(r, 50, wide, [-1.5, -0.5, 0.25]), rows(50, [0.0, 1.0])),
        "ties, gaps": (scores(r, 50, wide, [-0.5, 0.25]), rows(50, [0.0, 1.0, NAN])),
        "all equal": ([[0.5] * wide] * 11, rows(11, [0.0, 1.0])),
        "at 0": ([[0.0] * wide] * 5, rows(5, [0.0, 1.0])),
        "one against many": (scores(r, 45, wide), rows(44, [0.0]) + rows(1, [1.0]))}


def number_cases(r, wide):
    def gaps(n):
        return [[r.choice([round(r.gauss(0, 3), 4), NAN]) for _ in range(wide)] for _ in range(n)]
    y = scores(r, 20, wide)
    return {
        "random": (scores(r, 20, wide), scores(r, 20, wide)), "perfect": (y, y), "gaps": (scores(r, 25, wide), gaps(25)),
        "one row": (scores(r, 1, wide), scores(r, 1, wide)), "no labels": (scores(r, 4, wide), [[NAN] * wide] * 4),
        "all equal": ([[1.5] * wide] * 7, [[-2.0] * wide] * 7)}


def main():
    r = random.Random(7)
    suites = [("class", 2, class_cases, of_classes, "cross_entropy"), ("class", 4, class_cases, of_classes, "cross_entropy"),
              ("multilabel", 1, label_cases, of_labels, "bce_with_logits"),
              ("multilabel", 3, label_cases, of_labels, "bce_with_logits"), ("multilabel", 2, number_cases, of_numbers, "mse")]
    out = []
    for kind, wide, cases, judge, loss in suites:
        out.append({"kind": kind, "wide": wide, "loss": loss, "cases": [
            {"name": name, "s": s, "y": y, "want": judge(s, y)} for name, (s, y) in cases(r, wide).items()]})
    text = json.dumps({"scikit-learn": sklearn.__version__, "suites": out})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics_sklearn.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace('{"name"', '\n{"name"').replace('{"kind"', '\n{"kind"') + "\n")


main()
