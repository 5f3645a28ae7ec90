"""Turns the packaged GGUF file into safetensors; run as a child process with one JSON argument."""

import json
import sys


def main() -> None:
    """Convert as the argument says: ``folder`` and ``file`` of the GGUF, ``target`` folder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    job = json.loads(sys.argv[1])
    logging.set_verbosity_error()
    if job["quiet"]:
        logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(job["folder"], gguf_file=job["file"])
    model = AutoModelForCausalLM.from_pretrained(
        job["folder"], gguf_file=job["file"], quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(job["target"])
    tokenizer.save_pretrained(job["target"])


if __name__ == "__main__":
    main()
