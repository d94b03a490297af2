"""Pairs with columns of theirs, as gnnc.h has them, and the best destinations by their definition."""
import ctypes

I64, F32 = ctypes.c_int64, ctypes.c_float


class Values(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("column", ctypes.c_char_p), ("values", ctypes.c_void_p), ("ptr", ctypes.c_void_p),
                ("idx", ctypes.c_void_p), ("names", ctypes.c_void_p), ("n_categories", I64)]


class Pairs(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("n", I64), ("src", ctypes.c_void_p), ("dst", ctypes.c_void_p), ("kind", ctypes.c_void_p),
                ("columns", ctypes.c_void_p), ("n_columns", ctypes.c_int32)]


def pairs(src, dst, columns, host, kind=None):
    """columns: {name: ([a row's values], .npy type, names)}, or a list of these items."""
    keep, values = [], []
    for name, (rows, descr, *names) in columns.items() if isinstance(columns, dict) else columns:
        wide = rows and isinstance(rows[0], (list, tuple))
        flat = [x for row in rows for x in row] if wide else list(rows)
        a = host.array(flat, descr, (len(rows), len(rows[0])) if wide else (len(rows),))
        texts = (ctypes.c_char_p * len(names[0]))(*[x.encode() for x in names[0]]) if names else None
        keep += [a, texts]
        values.append(Values(ctypes.sizeof(Values), name.encode(), ctypes.cast(a, ctypes.c_void_p), None, None,
                             ctypes.cast(texts, ctypes.c_void_p) if names else None, len(names[0]) if names else 0))
    n, all_values = len(src), (Values * max(1, len(values)))(*values)
    ends = [(I64 * max(1, n))(*x) if x is not None else None for x in (src, dst, kind)]
    p = Pairs(ctypes.sizeof(Pairs), n, *[ctypes.cast(x, ctypes.c_void_p) if x is not None else None for x in ends],
              ctypes.cast(all_values, ctypes.c_void_p), len(values))
    p.keep = (host, keep, all_values, ends)
    return p


def best(scores, left, k):
    """Of {destination: score}, the k best that are left: the lower row first where scores are equal."""
    order = sorted((d for d in scores if d in left), key=lambda d: (-scores[d], d))[:k]
    return [(d, scores[d]) for d in order] + [(-1, -float("inf"))] * (k - len(order))
