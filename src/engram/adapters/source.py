"""What a reader is given: the settings and tensors of a model, from files that anybody may have written.

Nothing of a folder is run: config.json is plain JSON, weights are safetensors. What is missing, has another shape, is
not a number, or is not known to the reader is refused by name: a model that is read is computed exactly.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load

from engram.errors import EngramError
from engram.models import Weights
from engram.models.network import Provenance
from engram.models.unread import Tensors, holds_finite_numbers, renamed, shape_of

CONFIG, WEIGHTS = "config.json", "model.safetensors"
HARMLESS = {  # settings of Hugging Face that do not change a forward pass
    "architectures", "attn_implementation", "bos_token_id", "chunk_size_feed_forward", "decoder_start_token_id",
    "diversity_penalty", "do_sample", "dtype", "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing", "id2label",
    "initializer_range", "label2id", "length_penalty", "max_length", "min_length", "model_type", "n_ctx",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences", "output_attentions",
    "output_hidden_states", "output_past", "output_scores", "pad_token_id", "prefix", "problem_type",
    "remove_invalid_values", "repetition_penalty", "return_dict", "return_dict_in_generate", "sep_token_id",
    "task_specific_params", "temperature", "tokenizer_class", "top_k", "top_p", "torch_dtype",
    "transformers_version", "typical_p", "use_cache",
}  # fmt: skip


class Settings(BaseModel):
    """The settings of a family that matter: a class with a field for each, which says what is supported."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


Known = TypeVar("Known", bound=Settings)


@dataclass(frozen=True)
class Source:
    """A model as its files have it: tensors under the names of its family.

    note     what a figure must say of the weights
    files    how the names of config and weights go on from that of the model; empty where both are in one file
    """

    name: str
    config: Mapping[str, Any]
    tensors: Tensors = field(repr=False)
    sha256: str
    note: str = ""
    files: tuple[str, str] = (f"/{CONFIG}", f"/{WEIGHTS}")

    @property
    def family(self) -> str:
        return str(self.config.get("model_type", "none"))

    @property
    def provenance(self) -> Provenance:
        return Provenance(self.name, self.family, self.sha256, self.note)

    def settings(self, kind: type[Known]) -> Known:
        """The settings that a family knows; others are refused unless they change nothing."""
        given = {name: v for name, v in self.config.items() if name in kind.model_fields or _matters(name, v)}
        try:
            return kind.model_validate(given)
        except ValidationError as error:
            raise EngramError(f"{self.name}{self.files[0]}: {_explained(error)}") from None

    def without_prefix(self, prefix: str) -> "Source":
        """The same with shorter names: a model saved inside another one has its names behind that one's."""
        shorter = {name.removeprefix(prefix): name for name in self.tensors}
        if len(shorter) < len(self.tensors):
            raise self.wrong(f"a tensor is there with and without {prefix!r}")
        return replace(self, tensors=renamed(self.tensors, shorter))

    def weights(self, shapes: Mapping[str, tuple[int, ...]], ignored: str) -> Tensors:
        """The tensors of these names, if each has its shape and there are no others but ignored ones (a pattern)."""
        for name, shape in shapes.items():
            if name not in self.tensors:
                raise self.wrong(f"the tensor {name} is missing")
            if (found := shape_of(self.tensors, name)) != shape:
                raise self.wrong(f"{name} must have the shape {shape}; got {found}")
            if not holds_finite_numbers(self.tensors, name):
                raise self.wrong(f"{name} holds something other than finite numbers")
        for name in sorted(set(self.tensors) - set(shapes)):
            if not re.fullmatch(ignored, name):
                raise self.wrong(f"the tensor {name!r:.80} is not one of this family")
        return renamed(self.tensors, {name: name for name in shapes})

    def wrong(self, why: str) -> EngramError:
        return EngramError(f"{self.name}{self.files[1]}: {why}")


def _matters(name: str, value: object) -> bool:
    """A setting that is off turns nothing on; those of summaries belong to heads that are not read."""
    return bool(value) and name not in HARMLESS and not name.startswith(("_", "summary_"))


def _explained(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return (
            f"{name:.80}: this reader does not know it, and it may change what is computed; got {first['input']!r:.60}"
        )
    if first["type"] == "missing":
        return f"{name}: is missing"
    what = first["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return f"{name}: {what}; got {first['input']!r:.60}" if name else what


def source_of(name: str, config: bytes, weights: bytes, dtype: torch.dtype = torch.float32) -> Source:
    """A model from the content of its two files; numbers are converted to `dtype`."""
    tensors = loaded(f"{name}/{WEIGHTS}", weights, dtype)
    return Source(name, parsed(f"{name}/{CONFIG}", config), tensors, hashlib.sha256(weights).hexdigest())


def parsed(file: str, content: bytes) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EngramError(f"{file}: it is not a JSON object")
    return found


def loaded(file: str, content: bytes, dtype: torch.dtype) -> Weights:
    """The tensors of a safetensors file; whole numbers stay what they are."""
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError):
        raise EngramError(f"{file}: it is cut off, or is no safetensors file") from None
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
