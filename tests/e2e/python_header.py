"""Is what a Python package declares of the C interface what gnnc.h says?"""
import ctypes
import glob
import re


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def header(top):
    return re.sub(r"/\*.*?\*/", "", read(top + "/runtime/include/gnnc.h"), flags=re.S)


def enum(text, name):
    body = re.search(r"typedef enum %s \{([^}]*)\} %s;" % (name, name), text).group(1)
    values, at = {}, 0
    for item in filter(None, (i.strip() for i in body.split(","))):
        word, _, value = item.partition("=")
        at = int(value) if value else at
        values[word.strip()] = at
        at += 1
    return values


def words(values, prefix):
    return {n[len(prefix):].lower(): v for n, v in values.items()}


class Types:
    """What ctypes has for the header's types."""
    PLAIN = {"void": None, "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
             "size_t": ctypes.c_size_t, "double": ctypes.c_double}

    def __init__(self, text, abi):
        self.text, self.abi = text, abi
        self.enums = set(re.findall(r"typedef enum (\w+)", text))
        self.handles = set(re.findall(r"typedef struct (gnnc_\w+) \1;", text))
        self.callbacks = {"gnnc_done_fn": abi.Done, "gnnc_message_fn": abi.Message, "gnnc_progress_fn": abi.Progress,
                          "gnnc_write_fn": abi.Write}

    def of(self, c):
        """c: a declaration without what it names, "const float **"."""
        base, stars = re.sub(r"\bconst\b|\s", "", c.replace("struct ", "")).rstrip("*"), c.count("*")
        if base in self.callbacks and stars == 1:
            return self.callbacks[base]
        if base in self.enums:
            base = "int"
        if stars == 0:
            return self.PLAIN[base]
        if base == "char":
            return ctypes.c_char_p if stars == 1 else ctypes.POINTER(ctypes.c_char_p)
        if base in self.handles:
            return ctypes.c_void_p if stars == 1 else ctypes.POINTER(ctypes.c_void_p)
        if base in self.abi.STRUCTS:
            return ctypes.POINTER(self.abi.STRUCTS[base])
        if base == "float" and stars == 2:
            return ctypes.POINTER(ctypes.POINTER(ctypes.c_float))
        if base in ("int", "int64_t") and not ("const" in c and base == "int64_t"):
            return ctypes.POINTER(self.PLAIN[base])
        return ctypes.c_void_p

    def parameters(self, text):
        """"gnnc_graph *g, const char *type" """
        if text.strip() == "void":
            return []
        return [self.of(self.unnamed(p)) for p in text.split(",")]

    @staticmethod
    def unnamed(declaration):
        d = " ".join(declaration.split())
        if d.endswith("]"):  # an array is a pointer
            d = re.sub(r"\w+ ?\[\w+\]$", "*", d)
        return re.sub(r"(?<=[\s*])\w+$", "", d)


def the_interface(abi, top):
    """Constants, structures and functions are those of gnnc.h; all that is declared is called, and all that is called declared."""
    text = header(top)
    types = Types(text, abi)
    statuses = dict(re.findall(r"X\((\w+), (-?\d+), \"", text))
    assert abi.STATUS == {n: int(v) for n, v in statuses.items()}
    elements = words(enum(text, "gnnc_element"), "GNNC_DT_")
    short = {"float": "f", "int": "i", "uint": "u", "bool": "bool", "bfloat": "bf"}
    assert {re.sub(r"^(float|int|uint|bfloat|bool)", lambda m: short[m.group(1)], n): v for n, v in abi.ELEMENTS.items()} == elements
    assert abi.KINDS == words(enum(text, "gnnc_kind"), "GNNC_COL_")
    assert abi.BY == words(enum(text, "gnnc_by"), "GNNC_BY_")
    assert abi.TABLES == words(enum(text, "gnnc_table"), "GNNC_")
    assert abi.OPTION_TYPES == words(enum(text, "gnnc_option_type"), "GNNC_OPTION_")
    assert abi.FORMATS == words(enum(text, "gnnc_format"), "GNNC_WRITE_")
    assert abi.MAX_RANK == int(re.search(r"GNNC_MAX_RANK = (\d+)", text).group(1))
    for name, struct in abi.STRUCTS.items():
        body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), text, re.S).group(1)
        fields = []
        for line in filter(None, (" ".join(s.split()) for s in body.split(";"))):
            base, rest = re.match(r"((?:const )?\w+)(.*)$", line).groups()
            for f in rest.split(","):
                field, size = re.search(r"(\w+)(?:\[(\w+)\])?$", f).groups()
                of = ctypes.c_char if base == "char" and size else types.of(base + "*" * f.count("*"))
                n = abi.MAX_RANK if size == "GNNC_MAX_RANK" else int(size or 0)
                fields.append((field, of * n if size else of))
        assert struct._fields_ == fields, (name, struct._fields_, fields)
    prototypes = {m.group(2): m for m in re.finditer(r"^((?:const )?[a-z]\w*[ *]+)(gnnc_\w+)\(([^()]*)\);", text, re.M)}
    for name, (returns, takes) in abi.FUNCTIONS.items():
        m = prototypes[name]
        assert (types.of(m.group(1)), types.parameters(m.group(3))) == (returns, takes), (name, m.group(0), takes)
    for name, kind in types.callbacks.items():
        returns, takes = re.search(r"typedef (\w+ \*?)%s\(([^()]*)\);" % name, text).groups()
        have = [ctypes.c_void_p if t is ctypes.py_object else t for t in kind._argtypes_]
        assert (kind._restype_, have) == (types.of(returns), types.parameters(takes)), (name, have)
    code = "".join(read(path) for path in glob.glob(top + "/runtime/python/*.py"))
    for name in abi.FUNCTIONS:
        short = re.sub("^gnnc_(graph|trainer|model|session|legend)_|_from$", "", name)
        assert code.count(name) > 1 or '"%s"' % short in code, (name, "is declared, and not called")


def the_options(package, top):
    text = header(top)
    listed = re.search(r"#define GNNC_OPTION_MAP\(INT, REAL, TEXT\)(.*?[^\\])\n", text, re.S).group(1)
    options = {n: k for k, n in re.findall(r"\b(INT|REAL|TEXT)\((\w+),", listed)}
    names = {"INT": "int", "REAL": "float", "TEXT": "str"}
    annotated = {n: getattr(t, "__forward_arg__", t) for n, t in package.Options.__annotations__.items()}
    assert annotated == {n: names[k] for n, k in options.items()}, annotated
