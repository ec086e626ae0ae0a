"""A transformer writes with a KV cache in few bits, and the program says what that changes and what it saves.

The model is a small GPT-2 with random weights, so that nothing is downloaded: `from_pretrained` gives a real one. The same is
written without compression beside it.   python examples/kv_generate.py --codec mxfp4 --new 96
"""

import argparse

import torch
from actcodec.integrations.kv_cache import CompressedCache
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--codec", default="mxint8")
parser.add_argument("--prompt", type=int, default=160, help="tokens")
parser.add_argument("--new", type=int, default=96, help="tokens")
arguments = parser.parse_args()

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_layer=2, n_head=2, n_embd=64, bos_token_id=None, eos_token_id=None)).eval()
prompt = torch.randint(0, 128, (1, arguments.prompt))
options = {"max_new_tokens": arguments.new, "do_sample": False, "pad_token_id": 0}

cache = CompressedCache(arguments.codec)
written = model.generate(prompt, past_key_values=cache, **options)
same = (written == model.generate(prompt, **options))[0, arguments.prompt :]
print(f"{written.shape[1]} tokens; {int(same.sum())} of {arguments.new} new ones as without compression")
print(f"{cache.nbytes} bytes of keys and values, {cache.ratio:.2f} times fewer than in {model.dtype}")
