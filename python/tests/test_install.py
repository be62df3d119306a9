"""pip install --no-build-isolation ./python works without a network, setuptools and wheel."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import coterie

HERE = pathlib.Path(__file__).resolve().parent.parent


class InstallTest(unittest.TestCase):
    def test_wheel(self):
        sys.path.insert(0, str(HERE))
        self.addCleanup(sys.path.remove, str(HERE))
        import wheel_of_files as backend

        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(pathlib.Path(folder) / backend.build_wheel(folder)) as wheel:
                self.assertIsNone(wheel.testzip())
                names = wheel.namelist()
                record = wheel.read(f"{backend.DETAILS}/RECORD").decode()
            self.assertIn("coterie/torch_trainer.py", names)
            self.assertIn("coterie/py.typed", names)
            self.assertEqual(sorted(names), sorted(line.split(",")[0] for line in record.splitlines()))
            self.assertFalse([n for n in names if "test" in n or "__pycache__" in n])
        project = (HERE / "pyproject.toml").read_text()
        self.assertEqual({coterie.__version__, backend.VERSION}, set(re.findall(r'^version = "(.*)"', project, re.M)))

    def test_pip(self):
        """Into an environment of its own, which sees this Python's numpy and nothing else of ours."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            shutil.copytree(HERE, place / "python", ignore=shutil.ignore_patterns("tests", "__pycache__"))
            self.command(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", str(place / "env"))
            python = str(place / "env" / "bin" / "python")
            self.command(python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--disable-pip-version-check", str(place / "python"))
            where = self.command(python, "-I", "-c", "import coterie.trainer, coterie; print(coterie.__file__)")
            self.assertTrue(where.startswith(str(place / "env")), where)

    def command(self, *args):
        done = subprocess.run(args, capture_output=True, text=True, cwd="/", check=False)
        self.assertEqual(done.returncode, 0, f"{args}\n{done.stdout}{done.stderr}")
        return done.stdout
