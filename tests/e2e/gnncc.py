"""The compiler as a library: a process for each of hundreds of compilations would take as long again to start."""
import ctypes
import os


def opened(gnnc):
    """The library beside gnnc, or beside the compiler that GNNC names."""
    lib = ctypes.CDLL(os.path.join(os.path.dirname(os.environ.get("GNNC", gnnc)), "libgnncc.so"))
    lib.gnncc_result_data.restype = ctypes.c_void_p
    for name in ("gnncc_error", "gnncc_result_text"):
        getattr(lib, name).restype = ctypes.c_char_p
    return lib


def made(lib, path, *options, text=None):
    """What is made of a file, or of a text that stands for it.  ValueError: nothing, and why."""
    c, r, n, options = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(), ["--no-rows", *options]
    if lib.gnncc_create(ctypes.byref(c)):
        raise MemoryError
    try:
        while options:
            name, has, value = options.pop(0).partition("=")
            if name in ("-o", "-I"):
                has, value = True, options.pop(0)
            if lib.gnncc_set(c, name.encode(), value.encode() if has else None):
                raise ValueError(f"{path}: {lib.gnncc_error(c).decode()}")
        if text is not None and lib.gnncc_add_file(c, path.encode(), text, ctypes.c_size_t(len(text))):
            raise MemoryError
        if lib.gnncc_compile(c, path.encode(), ctypes.byref(r)):
            raise ValueError(f"{path}: {(lib.gnncc_result_text(r) or lib.gnncc_error(c)).decode()}")
        data = lib.gnncc_result_data(r, ctypes.byref(n))
        return ctypes.string_at(data, n.value) if data else b""
    finally:
        lib.gnncc_result_destroy(r)
        lib.gnncc_destroy(c)
