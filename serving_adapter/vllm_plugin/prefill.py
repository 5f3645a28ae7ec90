"""How vLLM prefills what has arrived: the mode, and what is known of the engine."""

import os

from s2l.serving_adapter.realtime.admission import Admission
from s2l.serving_adapter.realtime.early_gate import EarlyGate
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_VARIABLE
from s2l.serving_adapter.vllm_plugin.engine import VllmEngine


def admission_of(engine: VllmEngine) -> Admission:
    """The admission that all prompts of this engine share.

    Raises:
        ValueError: ``S2L_PREFILL`` names no mode.
    """
    return Admission(
        engine.info.kv_capacity,
        block_size=engine.info.block_size,
        max_sessions=engine.info.max_sessions,
        prefill=os.environ.get(PREFILL_VARIABLE, "auto"),
        prefix_cache=engine.info.settings["enable_prefix_caching"],
        gate=EarlyGate(engine.others_wait_s),
        others_wait_s=engine.others_wait_s,
    )
