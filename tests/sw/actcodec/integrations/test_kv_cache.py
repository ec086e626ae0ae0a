"""The compressed KV cache: transformers' own cache where the codec loses nothing, the codec's own values where it does."""

import pytest
import torch
from actcodec import codec
from actcodec.golden import mx
from cdu_spec.mx import MX_FORMATS, ScaleRule
from cdu_tools.errors import UserError
from torch.nn import functional as F


@pytest.fixture
def compressed(transformers):
    """The class."""
    from actcodec.integrations.kv_cache import CompressedCache

    return CompressedCache


@pytest.fixture(scope="module")
def model(transformers):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=256, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=None, pad_token_id=0
    )
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture
def tokens():
    return torch.randint(0, 64, (3, 50), generator=torch.Generator().manual_seed(1))


def states(tokens, seed, heads=2, channels=32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, heads, tokens, channels, generator=generator)


def filled(cache, keys, values, step):
    """Feed tokens to the cache, ``step`` at a time, and return its last result."""
    for start in range(0, keys.shape[-2], step):
        given = cache.update(keys[..., start : start + step, :], values[..., start : start + step, :], 0)
    return given


@pytest.mark.parametrize("beams", [1, 3])
def test_without_loss_a_model_writes_what_it_writes_without_compression(compressed, model, tokens, beams):
    options = {"max_new_tokens": 40, "num_beams": beams, "do_sample": False}
    cache = compressed("bypass", group=8, recent=4)
    assert torch.equal(model.generate(tokens, past_key_values=cache, **options), model.generate(tokens, **options))
    assert cache.get_seq_length() == tokens.shape[1] + 39


def test_training_is_refused(compressed, model, tokens):
    with pytest.raises(UserError, match=r"no gradient passes through a compressed cache: use torch\.no_grad\(\)"):
        model(tokens, past_key_values=compressed("mxint8"))
    cache = compressed("mxint8")
    keys = states(40, 0).requires_grad_()
    with pytest.raises(UserError, match="no gradient passes"):
        cache.update(keys.detach(), keys, 0)
    with torch.no_grad():
        assert torch.equal(cache.update(keys, keys, 0)[0], keys)


def test_what_is_no_codec_is_refused_at_once(compressed):
    for given in ((None,), (5,), ("mxint8", 5)):
        with pytest.raises(UserError, match="is no codec: use a name, such as mxint8, or a codec object"):
            compressed(*given)


@pytest.mark.parametrize("name", ["mxint8", "mxfp4"])
def test_keys_share_scales_along_tokens_and_values_along_channels(compressed, name):
    """The golden model on slices by hand: 32 tokens of one channel, 32 channels of one token."""
    keys, values = states(96, 0), states(96, 1)
    cache = compressed(name, recent=0)
    filled(cache, keys, values, 32)
    got_keys, got_values = cache.update(states(1, 2), states(1, 3), 0)
    kind = MX_FORMATS[name]

    def coded(block):
        return mx.decode(mx.encode(block[None].contiguous(), kind, ScaleRule.FLOOR), kind)[0]

    for start in (0, 32, 64):
        for channel in (0, 17, 31):
            block = keys[1, 1, start : start + 32, channel]
            assert torch.equal(got_keys[1, 1, start : start + 32, channel], coded(block))
    for token in (0, 50, 95):
        assert torch.equal(got_values[0, 1, token], coded(values[0, 1, token]))


def test_steps_of_any_length_keep_the_same(compressed):
    keys, values = states(100, 4), states(100, 5)
    caches = [compressed("mxfp6-e2m3", recent=10) for _ in range(2)]
    for cache, step in zip(caches, (1, 7), strict=True):
        filled(cache, keys, values, step)
    one, other = (cache.update(states(1, 6), states(1, 7), 0) for cache in caches)
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])


def test_the_newest_tokens_are_exact_and_so_are_those_of_a_call(compressed):
    keys, values = states(90, 8), states(90, 9)
    cache = compressed("mxfp4", recent=20)
    first = cache.update(keys, values, 0)
    assert torch.equal(first[0], keys)
    given, _ = cache.update(states(1, 10), states(1, 11), 0)
    exact = (given[..., :90, :] == keys).all(-1).all(0).all(0)
    assert exact.tolist() == [False] * 64 + [True] * 26


def test_bytes_are_those_of_the_codec_and_of_the_newest_tokens(compressed):
    keys, values = states(80, 12), states(80, 13)
    cache = compressed("mxint8", "mxfp4", recent=8)
    filled(cache, keys, values, 80)
    whole = keys[..., :64, :]
    packed = codec("mxint8").compress(whole).nbytes + codec("mxfp4").compress(whole).nbytes
    newest = 2 * keys[..., 64:, :].nbytes
    header = codec("mxint8").compress(whole.unflatten(-2, (-1, 32))).nbytes - codec("mxint8").compress(whole).nbytes
    assert cache.nbytes == packed + newest + header
    assert cache.ratio == pytest.approx(2 * keys.nbytes / cache.nbytes)
    assert cache.packed_ratio == pytest.approx(2 * whole.nbytes / (packed + header))
    cache.reset()
    assert (cache.nbytes, cache.get_seq_length(), cache.ratio, cache.packed_ratio) == (0, 0, 1.0, 1.0)


def test_a_channel_of_great_keys_costs_the_others_nothing(compressed):
    """Why keys go by channel (KIVI, section 3.2): with blocks by token one channel takes the precision of all."""
    keys, values = states(64, 14), states(64, 15)
    keys[..., 5] *= 50
    errors = {}
    for blocks in ("channel", "token"):
        cache = compressed("mxfp4", key_blocks=blocks, recent=0)
        filled(cache, keys, values, 64)
        given, _ = cache.update(states(1, 16), states(1, 17), 0)
        others = torch.arange(32) != 5
        errors[blocks] = (given[..., :64, :] - keys)[..., others].square().mean()
    assert errors["token"] > 10 * errors["channel"]


def test_another_order_of_sequences_keeps_what_the_codec_can_hold(compressed, model, tokens):
    """Codes that are decoded and coded again are the same, so that a choice among beams changes nothing by itself."""
    cache = compressed("mxint8", recent=0)
    with torch.no_grad():
        model(tokens, past_key_values=cache)
    before = [layer._states() for layer in cache.layers]
    cache.reorder_cache(torch.tensor([2, 0, 1]))
    for layer, (keys, values) in zip(cache.layers, before, strict=True):
        again = layer._states()
        assert torch.equal(again[0], keys[[2, 0, 1]])
        assert torch.equal(again[1], values[[2, 0, 1]])


def test_ratios_are_those_of_the_sequences_that_are_there(compressed):
    keys, values = states(80, 20), states(80, 21)
    cache = compressed("mxfp4", recent=0)
    filled(cache, keys, values, 80)
    before = (cache.ratio, cache.packed_ratio)
    cache.batch_repeat_interleave(4)
    assert (cache.ratio, cache.packed_ratio) == pytest.approx(before, rel=0.01)
    cache.batch_select_indices(torch.tensor([3]))
    assert (cache.ratio, cache.packed_ratio) == pytest.approx(before, rel=0.02)  # headers weigh more
    assert cache.get_seq_length() == 80


@pytest.mark.parametrize("name", ["mxint8", "mxfp6-e2m3", "mxfp4"])
def test_attention_is_off_by_no_more_than_its_keys_and_values_allow(compressed, name):
    """An error of d in all logits changes each probability by a factor of at most exp(2 d)."""
    keys, values, queries = states(64, 22), states(64, 23), states(8, 24)
    cache = compressed(name, recent=0)
    filled(cache, keys, values, 64)
    given = [part[..., :64, :] for part in cache.update(states(1, 25), states(1, 26), 0)]
    exact, found = (F.scaled_dot_product_attention(queries, *pair) for pair in ((keys, values), given))
    logits = queries.abs().sum(-1).amax() * (given[0] - keys).abs().amax() / keys.shape[-1] ** 0.5
    bound = (2 * logits).expm1() * values.abs().amax() + (given[1] - values).abs().amax()
    assert 0 < (found - exact).abs().amax() <= bound


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codec": "nosuch"}, "nosuch"),
        ({"key_blocks": "row"}, "key_blocks = 'row' is not allowed: use channel or token"),
        ({"group": 0}, "group = 0 is not allowed: use a whole number, 1 or more"),
        ({"recent": -1}, "recent = -1 is not allowed: use a whole number, 0 or more"),
        ({"group": 2.5}, "group = 2.5 is not allowed"),
        ({"nosuch": 1}, "codec 'mxint8' has no option 'nosuch'"),
    ],
)
def test_what_cannot_be(compressed, options, message):
    with pytest.raises(UserError, match=message):
        compressed(**options)


def test_tokens_are_not_given_up(compressed):
    with pytest.raises(UserError, match="generate without an assistant model"):
        compressed().layer_class_to_replicate().crop(-1)
