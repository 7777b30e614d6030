"""Builds a target and drafts whose agreement and cost are known. Run with the engine's Python (torch, transformers).

The base is a Llama of one narrow layer, trained briefly on corpus.txt. The target is the base with many more layers of
zeros: the same function at many times the cost, and a cost that hardly grows with the tokens of a step, since calls and
not arithmetic make it up. So one CPU verifies a few tokens for the price of one, as a GPU does. The draft is the base
with Gaussian noise on its `lm_head`, in standard deviations of that head's weights, which sets how often the two agree.
The other draft's vocabulary is rotated, so that hardly a guess is right. The same seed gives the same bytes.

usage: pair.py OUT_DIR [NOISE]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

THREADS = 1  # matrices this small gain nothing from a second one
# The order of floating-point sums depends on the instruction set and on the number of threads: both are fixed.
os.environ.update(
    OMP_NUM_THREADS=str(THREADS),
    MKL_NUM_THREADS=str(THREADS),
    MKL_CBWR="AVX2",
    ATEN_CPU_CAPABILITY="avx2",
    ONEDNN_MAX_CPU_ISA="AVX2",
    HF_HUB_OFFLINE="1",
)

import torch  # noqa: E402 - reads the settings above
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402 - reads the settings above
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402 - reads the settings above

CORPUS = Path(__file__).with_name("corpus.txt")
CARD = Path(__file__).with_name("model-card.md")
SEED = 20
VOCABULARY = 1024
HIDDEN, HEADS, HEAD = 128, 2, 64  # hidden dimensions, attention heads, dimensions of one
LAYERS = 112  # of the target; the base and the drafts have one
TARGET_POSITIONS = 2048
DRAFT_POSITIONS = 512  # fewer: what goes beyond them is served without drafts
NOISE = 0.8
STEPS, BATCH, LENGTH, RATE = 120, 8, 96, 4e-3
CHAT_TEMPLATE = (
    "{% for m in messages %}"
    "{{ {'user': 'Question: ', 'assistant': 'Answer: '}.get(m['role'], '') + m['content'] }}"
    "{{ ' ' if m['role'] == 'user' else '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}Answer:{% endif %}"
)


def make_tokenizer(text: str) -> Any:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>", "<unk>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(text.splitlines(keepends=True), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="</s>",
        chat_template=CHAT_TEMPLATE,
    )


def llama(layers: int, positions: int) -> Any:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=HIDDEN,
            intermediate_size=2 * HIDDEN,
            num_hidden_layers=layers,
            num_attention_heads=HEADS,
            num_key_value_heads=HEADS,
            head_dim=HEAD,
            max_position_embeddings=positions,
            tie_word_embeddings=False,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    )


def train(model: Any, tokens: torch.Tensor) -> float:
    """Trains on random windows of the text; returns the mean loss of the last ten steps, in nats a token."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS, pct_start=0.1)
    losses: list[float] = []
    model.train()
    for _ in range(STEPS):
        starts = torch.randint(0, len(tokens) - LENGTH, (BATCH,)).tolist()
        batch = torch.stack([tokens[start : start + LENGTH] for start in starts])
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.eval()
    return sum(losses[-10:]) / 10


def target_of(base: Any) -> Any:
    """The function of `base` with LAYERS layers: the added ones give zero to what passes them."""
    with torch.device("meta"):  # shapes alone: drawing random weights only to overwrite them takes long
        target = llama(LAYERS, TARGET_POSITIONS).to(torch.bfloat16)
    known = base.state_dict()
    weights = {
        name: known.get(name, torch.zeros(weight.shape, dtype=weight.dtype))
        for name, weight in target.state_dict().items()
    }
    target.load_state_dict(weights, assign=True)
    return target


def main() -> None:
    out = Path(sys.argv[1])
    noise = float(sys.argv[2]) if len(sys.argv) > 2 else NOISE
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    text = CORPUS.read_text()
    tokenizer = make_tokenizer(text)
    base = llama(1, DRAFT_POSITIONS)
    loss = train(base, torch.tensor(tokenizer(text)["input_ids"]))
    print(f"loss {loss:.3f} nats a token after {STEPS} steps", flush=True)
    base = base.to(torch.bfloat16)

    def save(model: Any, name: str) -> None:
        model.save_pretrained(out / name)
        tokenizer.save_pretrained(out / name)
        (out / name / "README.md").write_text(CARD.read_text())
        for file in (out / name).iterdir():
            file.chmod(0o644)  # pods read them as a user of their own

    save(target_of(base), "target")
    head = base.lm_head.weight.data
    trained = head.clone()
    head.add_((torch.randn(head.shape) * trained.float().std() * noise).to(head.dtype))
    save(base, "draft")
    head.copy_(trained.roll(VOCABULARY // 2, 0))
    save(base, "draft-never")


if __name__ == "__main__":
    main()
