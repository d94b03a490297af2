"""The compiler gnnc: models of graph neural networks to modules that train and predict.

    import gnnc

    gnnc.import_data("nodes.csv", "edges.csv", out="data")
    churn = gnnc.compile("churn.gnn")
    t = churn.Trainer("data", epochs=20)
    t.train()
"""
from ._library import CompileError, DataError, Diagnostic, OptionError
from ._models import cache_dir, check, compile, emit, import_data, options, version as __version__

__all__ = ["CompileError", "DataError", "Diagnostic", "OptionError", "cache_dir", "check", "compile", "emit", "import_data",
           "options"]

for _public in (CompileError, DataError, Diagnostic, OptionError, cache_dir, check, compile, emit, import_data, options):
    _public.__module__ = __name__
del _public
