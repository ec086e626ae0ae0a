"""HuggingFace models of random weights, with both implementations of attention."""

import actcodec
import pytest
import torch
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.training import policy
from torch import nn
from training_step import assert_trains, codecs_of, compressed_step, eight_bits, gradient_error, plain_step

VOCABULARY = 99
attention = pytest.mark.parametrize("attention", ["eager", "sdpa"])


def bert(transformers, attention):
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, num_labels=5, attn_implementation=attention,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def bert_loss(model):
    tokens, padding = torch.randint(0, VOCABULARY, (4, 12)), torch.arange(12).expand(4, -1) < 9
    return model(tokens, attention_mask=padding.long(), labels=torch.tensor([0, 1, 2, 3])).loss


def gpt2(transformers, attention):
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=32, bos_token_id=0, eos_token_id=0,
        attn_implementation=attention,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def llama(transformers, attention):
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, attn_implementation=attention,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def language_loss(model):
    tokens = torch.randint(0, VOCABULARY, (4, 12))
    return model(tokens, labels=tokens).loss


MODELS = {"bert": (bert, bert_loss), "gpt2": (gpt2, language_loss), "llama": (llama, language_loss)}


@eight_bits
@attention
@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_close_and_bytes_are_counted(transformers, name, attention, which, options, bound):
    make, loss_of = MODELS[name]
    step = assert_trains(make(transformers, attention), loss_of, which, options, bound, least_ratio=2.5)
    exact = {row["op"] for row in step.stats.tensors if row["codec"] == "exact"}
    # Attention's probabilities, the loss; Llama's root mean squares and its rotary table.
    assert exact <= {"softmax", "linear", "rsqrt", "input"}
    if name == "llama":
        assert codecs_of(step.stats, op="rsqrt") == codecs_of(step.stats, shape=[1, 1, 12, 8]) == {"exact"}
    if name == "gpt2":  # its linear layers are addmm(bias, x, weight)
        assert {row["name"] for row in step.stats.tensors} >= {"transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_proj"}


@pytest.mark.filterwarnings("ignore:actnn-L4 swaps")
@pytest.mark.parametrize("which", [name for name in POLICY_NAMES if name != "actnn-L5" or torch.cuda.is_available()])
def test_every_policy_trains_gpt2(transformers, which):
    """Two steps: the policy's knowledge from the first one serves the second."""
    model, chosen = gpt2(transformers, "sdpa"), policy(which)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        with actcodec.compress_activations(model, chosen) as stats:
            loss = language_loss(model)
        loss.backward()
        optimizer.step()
        assert all(p.isfinite().all() for p in model.parameters())
    assert stats.ratio >= 1
    assert {record.name for record in stats.records} >= {"transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_proj"}


@attention
def test_bert_in_evaluation_with_frozen_embeddings(transformers, attention):
    """Fine-tuning: no gradient reaches the first layer, and nothing needs it to."""
    model = bert(transformers, attention).eval()
    model.bert.embeddings.requires_grad_(False)
    step = assert_trains(model, bert_loss, "sfpr", {"S": 1.0}, 0.04, least_ratio=2)
    assert not any("embeddings" in name for name in step.gradients)


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable`")
def test_gradient_checkpointing_of_the_library(transformers):
    model = gpt2(transformers, "sdpa")
    loss_of = language_loss
    reference = plain_step(model, loss_of)
    model.gradient_checkpointing_enable()
    step = compressed_step(model, loss_of, "sfpr", S=1.0)
    assert gradient_error(step, reference) < 0.04
    assert codecs_of(step.stats, shape=[4, 12, 32]) >= {"exact"}


def test_no_module_or_weight_is_replaced(transformers):
    model = bert(transformers, "sdpa")
    kinds = [type(module) for module in model.modules()]
    step = compressed_step(model, bert_loss, "jpeg-act")
    assert [type(module) for module in step.model.modules()] == kinds
    assert all(type(p) is nn.Parameter for p in step.model.parameters())
