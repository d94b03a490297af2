"""Data directories as tests write them (docs/data.md): a file for each column and relation, and what the schema says of it."""
import array
import json
import struct

FORMS = {"float": ("f", "<f4"), "multilabel": ("f", "<f4"), "time": ("d", "<f8"), "class": ("i", "<i4"), "cat": ("i", "<i4"),
         "split": ("b", "|i1")}


def save(path, code, descr, shape, values):
    """An .npy file."""
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(array.array(code, values).tobytes())


def load(path):
    """The values of such a file."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<H", data[8:10])[0]
    code = next(code for code, descr in FORMS.values() if descr.encode() in data[:10 + size])
    return array.array(code, data[10 + size:]).tolist()


def column(path, name, kind, values, **more):
    """A value a row, or with width=k so many; of classes and categories with categories=n."""
    width = more.pop("width", 0)
    shape = (len(values) // width, width) if width else (len(values),)
    save("%s/%s.npy" % (path, name), *FORMS[kind], shape, values)
    if width:
        more["shape"] = list(shape)
    return {"kind": kind, "file": name + ".npy", **more}


def csr(path, name, rows, width):
    """A sparse column: of each row its columns, ascending, and values."""
    ptr = [0]
    for row in rows:
        ptr.append(ptr[-1] + len(row))
    entries = [e for row in rows for e in row]
    save("%s/%s.ptr.npy" % (path, name), "q", "<i8", (len(ptr),), ptr)
    save("%s/%s.col.npy" % (path, name), "i", "<i4", (len(entries),), [c for c, _ in entries])
    save("%s/%s.val.npy" % (path, name), "f", "<f4", (len(entries),), [v for _, v in entries])
    return {"kind": "csr", "shape": [len(rows), width], **{key: "%s.%s.npy" % (name, key) for key in ("ptr", "col", "val")}}


def relation(path, name, src, dst, pairs, **columns):
    save("%s/%s.npy" % (path, name), "i", "<i4", (2, len(pairs)), [p[0] for p in pairs] + [p[1] for p in pairs])
    return {"src": src, "dst": dst, "count": len(pairs), "file": name + ".npy", "columns": columns}


def write(path, nodes, edges, graphs=None):
    with open(path + "/schema.json", "w", encoding="utf-8") as f:
        json.dump({"format": 1, "nodes": nodes, "edges": edges, "graphs": graphs or {}}, f)
