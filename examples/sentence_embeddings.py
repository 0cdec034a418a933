"""Embeddings of sentences by ONNX Runtime, in less memory: the same numbers.

    python examples/sentence_embeddings.py --folder embeddings

The network has random weights and words of its own, so that nothing is downloaded; a name such as
`sentence-transformers/all-MiniLM-L6-v2` instead of the first folder is one with weights.
"""

import argparse
import pathlib

import numpy as np
import remat_opt
import torch
from sentence_transformers import SentenceTransformer, models
from transformers import BertConfig, BertModel, BertTokenizer

TEXTS = ["a model in less memory", "the same numbers", "memory is what a model needs"]


def network(folder):
    """A sentence transformer with random weights, as Hugging Face keeps one."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({word for text in TEXTS for word in text.split()})]
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    BertModel(BertConfig(len(words), 32, 2, 2, 128, max_position_embeddings=256)).save_pretrained(folder / "bert")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    words = models.Transformer(str(folder / "bert"))
    SentenceTransformer(modules=[words, models.Pooling(words.get_word_embedding_dimension())]).save(str(folder / "sentences"))
    return folder / "sentences"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default="embeddings")
    folder = parser.parse_args().folder
    SentenceTransformer(str(network(folder)), backend="onnx").save(str(folder / "exported"))

    print(remat_opt.optimize_folder(folder / "exported", folder / "small"))

    options = remat_opt.session_options(folder / "small")
    before = SentenceTransformer(str(folder / "exported"), backend="onnx").encode(TEXTS)
    after = SentenceTransformer(str(folder / "small"), backend="onnx", model_kwargs={"session_options": options}).encode(TEXTS)
    print(f"{len(after)} embeddings, {'the same' if np.array_equal(before, after) else 'others'}")


if __name__ == "__main__":
    main()
