# SPDX-License-Identifier: Apache-2.0
"""TRL's SFTTrainer on a tiny model made from a configuration, with words made here: nothing is downloaded."""

from __future__ import annotations

import os
import random

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

import task

WORDS = [f"w{number}" for number in range(60)]
TEXTS, LENGTH, BATCH = 32, 12, 4  # BATCH: of all processes


def tokenizer() -> PreTrainedTokenizerFast:
    words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    model = Tokenizer(WordLevel(words, unk_token="<unk>"))
    model.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=model, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def texts() -> Dataset:
    """Sentences of the same length: each word is followed by the next one or the one after that."""
    chance = random.Random(1)
    rows = []
    for _ in range(TEXTS):
        at, row = chance.randrange(len(WORDS)), []
        for _ in range(LENGTH):
            at = (at + chance.choice((1, 2))) % len(WORDS)
            row.append(WORDS[at])
        rows.append(" ".join(row))
    return Dataset.from_dict({"text": rows})


def main() -> None:
    world = int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS) + 3, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
            max_position_embeddings=32, pad_token_id=0, bos_token_id=None, eos_token_id=1,
        )
    )  # fmt: skip
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            output_dir="tuned", per_device_train_batch_size=BATCH // world, num_train_epochs=2, learning_rate=1e-2,
            lr_scheduler_type="constant", report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
            use_cpu=True, bf16=False, max_length=32, packing=False, gradient_checkpointing=False, seed=3,
        ),
        train_dataset=texts(),
        processing_class=tokenizer(),
    )  # fmt: skip
    loss = trainer.train().training_loss
    task.say("tuned", trainer.accelerator.num_processes, trainer.state.global_step)
    if trainer.accelerator.is_main_process:
        task.report(f"{sum(values.sum().item() for values in model.state_dict().values()):.2f} {loss < 4.0}")
    if world > 1:
        task.leave()


if __name__ == "__main__":
    main()
