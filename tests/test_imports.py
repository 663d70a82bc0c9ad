"""The layers: who may import whom, and what `import separatrix` loads."""

import ast
import os
import shutil
import subprocess
import sys

import pytest

# The compiled module is called by the data views, by the row solvers, and by nobody else.
MAY_CALL_HOT = ("data", "solvers", "kernels")

HEAVY = ("numpy", "scipy", "sklearn", "matplotlib", "pandas", "polars", "pyarrow", "typer", "rich")


def run_contracts(folder, config):
    """Run import-linter on the package in `folder`, in a process of its own."""
    code = (
        "import sys; from importlinter.cli import lint_imports; "
        f"sys.exit(lint_imports(config_filename={str(config)!r}, no_cache=True))"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def renamed_copy(root, folder):
    """Copy package and contracts under another name, which no installed package can stand in for."""
    shutil.copytree(root / "src" / "separatrix", folder / "layered", ignore=shutil.ignore_patterns("_hot*"))
    shutil.copy(root / "pyproject.toml", folder)
    for file in [folder / "pyproject.toml", *folder.rglob("*.py")]:
        file.write_text(file.read_text(encoding="utf-8").replace("separatrix", "layered"), encoding="utf-8")
    return folder / "layered"


def test_imports_follow_the_layers(root):
    done = run_contracts(root / "src", root / "pyproject.toml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("data/view.py", "from layered.problem import Problem"),
        ("losses.py", "import layered.solvers"),
        ("solvers/perceptron.py", "from layered.models import perceptron"),
        ("persistence/__init__.py", "from layered.solvers import perceptron"),
        ("plot/__init__.py", "import layered.solvers.perceptron"),
        ("models/perceptron.py", "from layered.traces import trace"),
    ],
)
def test_a_wrong_import_breaks_a_contract(root, tmp_path, file, line):
    package = renamed_copy(root, tmp_path)
    with (package / file).open("a") as source:
        source.write(f"\n{line}\n")
    done = run_contracts(tmp_path, tmp_path / "pyproject.toml")
    assert done.returncode != 0
    assert "BROKEN" in done.stdout


def imports_hot(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any("_hot" in alias.name.split(".") for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom):
            names = (node.module or "").split(".") + [alias.name for alias in node.names]
            if "_hot" in names:
                return True
    return False


def test_only_the_lower_layers_call_the_core(root):
    package = root / "src" / "separatrix"
    callers = {
        file.relative_to(package).parts[0].removesuffix(".py")
        for file in package.rglob("*.py")
        if imports_hot(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert "solvers" in callers, "nothing calls the core: does this test still look in the right place?"
    assert callers <= set(MAY_CALL_HOT)


def test_the_stub_names_what_the_core_holds(root):
    from separatrix import _hot

    stub = ast.parse((root / "src" / "separatrix" / "_hot.pyi").read_text(encoding="utf-8"))
    named = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    held = {name for name in vars(_hot) if not name.startswith("_")}
    assert {name for name in named if not name.startswith("_")} == held


def test_import_is_light():
    code = f"import sys, separatrix; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("from scipy import stats; print(stats.norm.cdf(0.0))", id="from the package"),
        pytest.param("import scipy.stats; print(scipy.stats.norm.cdf(0.0))", id="by its path"),
        pytest.param("import scipy.stats.distributions as d; print(d.norm.cdf(0.0))", id="a part of it"),
        pytest.param("from sklearn.utils import fixes; print(fixes._mode([0.5])[0][0])", id="scikit-learn"),
    ],
)
def test_a_fit_leaves_statistics_for_later(use):
    code = (
        "import sys, separatrix; separatrix.SVC().fit([[0.0], [1.0]], [0, 1]).predict([[0.0]]); "
        f"print('scipy.stats' in sys.modules); {use}; print(type(sys.modules['scipy.stats']).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "0.5", "module"]


def test_the_program_fits_without_what_it_does_not_need(root, tmp_path):
    """A fit with scaling and a saved model; what was held back is there when somebody asks."""
    code = (
        "import sys; from separatrix.cli import main; "
        f"main(['fit', {str(root / 'tests/data/iris.csv')!r}, '--quiet', '--save', 'm.sx']); "
        "print([name in sys.modules for name in ('scipy.stats', 'sklearn.model_selection')]); "
        "from sklearn.preprocessing import PowerTransformer; import scipy.stats; "
        "print(PowerTransformer('box-cox').fit([[1.0], [2.0], [4.0]]).lambdas_.shape, scipy.stats.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines() == ["[False, False]", "(1,) scipy.stats"]


def test_statistics_used_while_they_are_held_back():
    """Another thread may ask for them just then."""
    code = (
        "import sys; from separatrix.models._light_start import _Later; "
        "held = sys.modules['scipy.stats'] = _Later('scipy.stats'); "
        "from scipy.stats import norm; "
        "print(norm.cdf(0.0), sys.modules['scipy.stats'] is held, held.norm is norm)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.5", "False", "True"]


def test_names_are_complete_and_come_when_asked_for():
    import separatrix

    assert dir(separatrix) == sorted([*separatrix.__all__, "__version__"])
    for name in separatrix.__all__:
        assert getattr(separatrix, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        separatrix.no_such_name  # noqa: B018


def test_the_package_says_that_it_has_types(root):
    assert (root / "src" / "separatrix" / "py.typed").is_file()
