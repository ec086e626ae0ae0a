"""S33, S34: statistics of library models count the memory that autograd holds, value by value."""

import pytest
import torch
from actcodec.saved.statistics import WEIGHTS, integers_of
from torch import nn
from torch.nn import functional as F
from training_step import compressed_step, gradient_error, plain_step

VOCABULARY = 99


def vit(torchvision, transformers):
    model = torchvision.models.VisionTransformer(32, 8, 2, 4, 48, 96, num_classes=10)
    nn.init.normal_(model.heads.head.weight)  # torchvision begins with zeros
    return model, lambda m: F.cross_entropy(m(torch.randn(4, 3, 32, 32)), torch.arange(4))


def swin(torchvision, transformers):
    model = torchvision.models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10)
    return model, lambda m: F.cross_entropy(m(torch.randn(2, 3, 32, 32)), torch.arange(2))


def llama(torchvision, transformers):
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, attn_implementation="sdpa",
    )  # fmt: skip

    def loss_of(model):
        tokens = torch.randint(0, VOCABULARY, (4, 12))
        return model(tokens, labels=tokens).loss

    return transformers.LlamaForCausalLM(config), loss_of


def lstm(torchvision, transformers):
    return nn.LSTM(32, 32, 2), lambda m: m(torch.randn(20, 4, 32, requires_grad=True))[0].square().mean()


MODELS = {"vit": vit, "swin": swin, "llama": llama, "lstm": lstm}


def held_by_autograd(model, loss_of):
    """Bytes of distinct values that plain hooks see, by kind: every value is looked up by its address."""
    fixed = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    held, addresses = [], {"all": set(), "activations": set()}

    def pack(x):
        held.append(x.detach())
        if x.untyped_storage().data_ptr() in fixed:
            return held[-1]
        values = torch.arange(x.untyped_storage().nbytes() // x.element_size()).as_strided(
            x.shape, x.stride(), x.storage_offset()
        )
        start, size = x.untyped_storage().data_ptr(), x.element_size()
        found = {(start + size * place, size) for place in values.flatten().tolist()}
        addresses["all"] |= found
        # Operations keep for themselves means and deviations of rows, and sums of an attention's rows.
        if x.is_floating_point() and x.ndim > 1 and x.shape[-1] > 1 and (x.requires_grad or x.ndim != 3):
            addresses["activations"] |= found
        return held[-1]

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        torch.manual_seed(1)
        loss_of(model)
    return {kind: sum(size for _, size in found) for kind, found in addresses.items()}


@pytest.mark.parametrize("name", MODELS)
def test_every_value_is_counted_once(torchvision, transformers, name):
    model, loss_of = MODELS[name](torchvision, transformers)
    held = held_by_autograd(model, loss_of)
    step = compressed_step(model, loss_of, "none")
    stats = step.stats
    others = sum(count for what, count in stats.not_counted.items() if what != WEIGHTS)
    assert stats.bytes_original + others == held["all"]
    assert stats.bytes_original == pytest.approx(held["activations"], rel=0.02)
    reference = plain_step(model, loss_of)
    assert gradient_error(step, reference) == 0
    close = compressed_step(model, loss_of, "sfpr", S=1.0)
    assert close.stats.bytes_original == stats.bytes_original
    assert gradient_error(close, reference) < 0.05


def test_an_lstms_ratio_is_not_what_its_activations_say():
    """The work space that oneDNN keeps for the backward pass is most of the bytes; it is not compressed, and that is said."""
    model, loss_of = lstm(None, None)
    held = held_by_autograd(model, loss_of)["all"]
    stats = compressed_step(model, loss_of, "actnn", compress_loss=True).stats
    (workspace, count), *_ = stats.not_counted.items()
    assert workspace == integers_of("recurrent")
    assert count > 0.7 * held
    kept = stats.bytes_compressed + sum(bytes_of for what, bytes_of in stats.not_counted.items() if what != WEIGHTS)
    assert stats.ratio > 10
    assert stats.ratio_of_everything == pytest.approx(held / kept)
    assert stats.ratio_of_everything < 1.4
    table = stats.table()
    assert f"{workspace} {count}" in table
    assert table.splitlines()[0].endswith(f"ratio of everything {stats.ratio_of_everything:.2f}")
    share = stats.uncoded[workspace] / held
    assert table.endswith(f"{workspace} {share:.0%}; the ratio of everything is {stats.ratio_of_everything:.2f}")
