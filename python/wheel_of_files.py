"""The build backend: writes a wheel of the files in coterie/ with the standard library.

Neither setuptools nor wheel nor a network is needed, whatever this machine has:

    pip install --no-build-isolation ./python
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME, VERSION = "coterie_fl", "0.1.0"
TAG = "py3-none-any"
DETAILS = f"{NAME}-{VERSION}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: coterie-fl
Version: {VERSION}
Summary: Models of Coterie, private personalised federated learning, in Python
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy>=1.20
"""
WHEEL = f"""Wheel-Version: 1.0
Generator: coterie
Root-Is-Purelib: true
Tag: {TAG}
"""


def _package() -> dict[str, bytes]:
    """The package's files by their name in the wheel."""
    return {p.relative_to(HERE).as_posix(): p.read_bytes() for p in sorted(HERE.glob("coterie/*")) if p.suffix in (".py", ".typed")}


def _write(folder: str, files: dict[str, bytes]) -> str:
    files = {**files, f"{DETAILS}/METADATA": METADATA.encode(), f"{DETAILS}/WHEEL": WHEEL.encode()}
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{DETAILS}/RECORD"] = (record + f"{DETAILS}/RECORD,,\n").encode()
    wheel = f"{NAME}-{VERSION}-{TAG}.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            out.writestr(name, content)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Called by pip to install."""
    return _write(wheel_directory, _package())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Called by pip install -e: the wheel only says where the files lie."""
    return _write(wheel_directory, {"coterie_fl.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    """The sources as one archive."""
    base = f"{NAME}-{VERSION}"
    with tarfile.open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as out:
        for name in ["pyproject.toml", "wheel_of_files.py", "README.md", *_package()]:
            out.add(HERE / name, f"{base}/{name}")
    return f"{base}.tar.gz"
