"""Models of and for other programs: LIBSVM's and LIBLINEAR's model files, and ONNX."""

from __future__ import annotations

from separatrix.persistence._liblinear import export_liblinear, import_liblinear
from separatrix.persistence._libsvm import export_libsvm, import_libsvm
from separatrix.persistence._onnx import export_onnx

__all__ = ["export_liblinear", "export_libsvm", "export_onnx", "import_liblinear", "import_libsvm"]
