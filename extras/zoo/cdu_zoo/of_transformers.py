"""Models of transformers."""

from __future__ import annotations

from typing import Any

import torch
from actcodec.study.data.batches import CLASSES, SHADES, SUBJECTS, VOCABULARY, images, texts
from actcodec.study.foreign import Foreign, Loss
from actcodec.study.models.library import transformers
from torch import Tensor, nn
from torch.nn import functional

from cdu_zoo.losses import of_hidden_letters, of_images, of_next_letters, of_pixels, of_subjects

_SIDE = 64
#: Options common to several configurations.
_GPT2: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
_LLAMA: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
_BERT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 66,
}


def _model(name: str, kind: str, loss: Loss, family: str = "GPT/BERT", **options: Any) -> Foreign:
    """Return a model of class ``kind`` with the options of its configuration."""

    def build() -> nn.Module:
        made = getattr(transformers(), kind)
        model: nn.Module = made(made.config_class(**options)).train()
        return model

    return Foreign(f"transformers.{name}", family, build, loss)


def _of_sounds(count: int = 4) -> Loss:
    """Return the loss of predicting a text from the brightness of an image as spectrogram; only the operations matter here."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        spectrograms = images(number, count, _SIDE)[0].mean(1)
        letters, _ = texts(number, count, 17)
        logits = model(input_features=spectrograms, decoder_input_ids=letters[:, :-1]).logits
        return functional.cross_entropy(logits.flatten(0, 1), letters[:, 1:].flatten())

    return Loss(loss, count)


def _of_pairs(count: int = 4, length: int = 32) -> Loss:
    """Return the loss of predicting the second half of a text from the first, for models with encoder and decoder."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        letters, _ = texts(number, count, 2 * length)
        found: Tensor = model(input_ids=letters[:, :length], labels=letters[:, length:].contiguous()).loss
        return found

    return Loss(loss, count)


def _of_contrasts(count: int = 8, length: int = 24) -> Loss:
    """Return the loss of matching texts with images: each text belongs to the image at its own index in the batch."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        letters, _ = texts(number, count, length)
        logits = model(input_ids=letters, pixel_values=images(number, count, _SIDE)[0]).logits_per_text
        return functional.cross_entropy(logits, torch.arange(count))

    return Loss(loss, count)


_IMAGE: dict[str, Any] = {"image_size": _SIDE, "patch_size": 8, "num_channels": 3, "hidden_size": 64, "intermediate_size": 128}

MODELS = (
    _model("gpt2", "GPT2LMHeadModel", of_next_letters(), **_GPT2),
    _model("gpt2_eager", "GPT2LMHeadModel", of_next_letters(), attn_implementation="eager", **_GPT2),
    _model("gpt_neox", "GPTNeoXForCausalLM", of_next_letters(), **_BERT),
    _model(
        "opt",
        "OPTForCausalLM",
        of_next_letters(),
        vocab_size=VOCABULARY,
        hidden_size=64,
        ffn_dim=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        word_embed_proj_dim=64,
    ),
    _model("llama", "LlamaForCausalLM", of_next_letters(), **_LLAMA),
    _model("qwen3", "Qwen3ForCausalLM", of_next_letters(), head_dim=16, **_LLAMA),
    _model("gemma", "GemmaForCausalLM", of_next_letters(), head_dim=16, **(_LLAMA | {"pad_token_id": 0})),
    _model("mixtral", "MixtralForCausalLM", of_next_letters(), num_local_experts=4, **_LLAMA),
    _model(
        "mamba", "MambaForCausalLM", of_next_letters(), vocab_size=VOCABULARY, hidden_size=48, num_hidden_layers=2, state_size=8
    ),
    _model("bert", "BertForMaskedLM", of_hidden_letters(), **_BERT),
    _model(
        "distilbert",
        "DistilBertForSequenceClassification",
        of_subjects(),
        vocab_size=VOCABULARY,
        dim=64,
        hidden_dim=128,
        n_layers=2,
        n_heads=4,
        max_position_embeddings=64,
        num_labels=len(SUBJECTS),
    ),
    _model("albert", "AlbertForSequenceClassification", of_subjects(), embedding_size=32, num_labels=len(SUBJECTS), **_BERT),
    _model(
        "deberta_v2",
        "DebertaV2ForMaskedLM",
        of_hidden_letters(),
        relative_attention=True,
        position_buckets=16,
        pos_att_type=["p2c", "c2p"],
        **_BERT,
    ),
    _model(
        "t5",
        "T5ForConditionalGeneration",
        _of_pairs(),
        vocab_size=VOCABULARY,
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    ),
    _model(
        "whisper",
        "WhisperForConditionalGeneration",
        _of_sounds(),
        vocab_size=VOCABULARY,
        num_mel_bins=_SIDE,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_source_positions=_SIDE // 2,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=0,
    ),
    _model(
        "clip",
        "CLIPModel",
        _of_contrasts(),
        "ViT",
        text_config=_BERT | {"max_position_embeddings": 32, "bos_token_id": 0, "eos_token_id": 2},
        vision_config=_IMAGE | {"num_hidden_layers": 2, "num_attention_heads": 4},
        projection_dim=32,
    ),
    _model(
        "vit",
        "ViTForImageClassification",
        of_images(),
        "ViT",
        num_hidden_layers=2,
        num_attention_heads=4,
        num_labels=CLASSES,
        **_IMAGE,
    ),
    _model(
        "dinov2",
        "Dinov2ForImageClassification",
        of_images(),
        "ViT",
        image_size=_SIDE,
        patch_size=8,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_labels=CLASSES,
    ),
    _model(
        "convnextv2",
        "ConvNextV2ForImageClassification",
        of_images(),
        "ConvNeXt",
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 2, 1],
        num_labels=CLASSES,
    ),
    _model(
        "segformer",
        "SegformerForSemanticSegmentation",
        of_pixels(),
        "U-Net",
        num_labels=SHADES,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 3, 4],
        decoder_hidden_size=64,
    ),
)
