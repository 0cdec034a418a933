"""Networks of Transformers, timm and Diffusers with random weights, trained within a budget in a process whose heap is
counted.

    python test/torch/networks.py [MEMORY [NAME...]]    a table in Markdown; a network whose package is absent is left out
"""

import importlib.util
import json
import sys

import step

SEARCH = {"time_limit": 10.0, "threads": 2}
LENGTH, VOCABULARY = 64, 1000


def _language(model):
    import torch

    tokens = torch.randint(0, VOCABULARY, (4, LENGTH))
    return model, lambda run: run(input_ids=tokens, labels=tokens).loss


def _sizes(**more):
    return {"vocab_size": VOCABULARY, "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, **more}


def _bert():
    from transformers import BertConfig, BertForMaskedLM

    return _language(BertForMaskedLM(BertConfig(**_sizes(intermediate_size=512))))


def _gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": 128, "n_layer": 4, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0}
    return _language(GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **sizes)))


def _llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return _language(LlamaForCausalLM(LlamaConfig(**_sizes(intermediate_size=256))))


def _t5():
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 128, "d_ff": 256, "d_kv": 32, "num_layers": 2, "num_heads": 4}
    return _language(T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, decoder_start_token_id=0, **sizes)))


def _mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM

    more = {"num_key_value_heads": 2, "intermediate_size": 128, "num_local_experts": 4, "num_hidden_layers": 2}
    return _language(MixtralForCausalLM(MixtralConfig(**_sizes(**more))))


def _whisper():
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    sizes = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_source_positions": 100, "num_mel_bins": 20}
    model = WhisperForConditionalGeneration(WhisperConfig(vocab_size=VOCABULARY, **ends, **sizes, **heads))
    sound, words = torch.randn(2, 20, 200), torch.randint(0, VOCABULARY, (2, 30))
    return model, lambda run: run(input_features=sound, labels=words).loss


def _vit():
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256}
    model = ViTForImageClassification(ViTConfig(image_size=64, patch_size=8, **sizes))
    images, labels = torch.randn(4, 3, 64, 64), torch.randint(0, 2, (4,))
    return model, lambda run: run(pixel_values=images, labels=labels).loss


def _timm(name, size, **more):
    def make():
        import timm
        import torch

        model = timm.create_model(name, pretrained=False, num_classes=10, **more)
        images, labels = torch.randn(4, 3, size, size), torch.randint(0, 10, (4,))
        return model, lambda run: torch.nn.functional.cross_entropy(run(images), labels)

    return make


def _diffusion(make):
    def made():
        import torch

        model, inputs = make()
        times = {"timestep": torch.tensor([3, 10])} if "timestep" not in inputs else {}
        return model, lambda run: run(**inputs, **times).sample.square().mean()

    return made


def _unet():
    import torch
    from diffusers import UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    model = UNet2DModel(sample_size=32, block_out_channels=(32, 64), norm_num_groups=8, **blocks)
    return model, {"sample": torch.randn(2, 3, 32, 32)}


def _conditional_unet():
    import torch
    from diffusers import UNet2DConditionModel

    down, up = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
    sizes = {"block_out_channels": (32, 64), "cross_attention_dim": 32, "norm_num_groups": 8, "attention_head_dim": 8}
    model = UNet2DConditionModel(sample_size=16, down_block_types=down, up_block_types=up, **sizes)
    return model, {"sample": torch.randn(2, 4, 16, 16), "encoder_hidden_states": torch.randn(2, 7, 32)}


def _autoencoder():
    import torch
    from diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    model = AutoencoderKL(block_out_channels=(32, 64), norm_num_groups=8, latent_channels=4, **blocks)
    images = torch.randn(2, 3, 64, 64)
    return model, lambda run: run(images).sample.square().mean()


def _dit():
    import torch
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=16, num_layers=3, sample_size=16, num_embeds_ada_norm=100
    )
    return model, {"hidden_states": torch.randn(2, 4, 16, 16), "class_labels": torch.tensor([1, 2])}


NETWORKS = {
    "BERT": ("transformers", _bert),
    "GPT-2": ("transformers", _gpt2),
    "Llama": ("transformers", _llama),
    "T5": ("transformers", _t5),
    "Mixtral": ("transformers", _mixtral),
    "Whisper": ("transformers", _whisper),
    "ViT": ("transformers", _vit),
    "ResNet-50": ("timm", _timm("resnet50", 96)),
    "EfficientNet-B0": ("timm", _timm("efficientnet_b0", 96)),
    "ConvNeXt": ("timm", _timm("convnext_atto", 96)),
    "Swin": ("timm", _timm("swin_tiny_patch4_window7_224", 224, depths=(1, 1, 2, 1))),
    "MobileViT": ("timm", _timm("mobilevit_xxs", 128)),
    "U-Net": ("diffusers", _diffusion(_unet)),
    "conditional U-Net": ("diffusers", _diffusion(_conditional_unet)),
    "autoencoder": ("diffusers", _autoencoder),
    "DiT": ("diffusers", _diffusion(_dit)),
}
"""By name the package, and what makes the network and a function that gives the loss."""


def measure(name, memory):
    """Peaks in bytes, whether bits are the same, and the reports of a network."""
    return step.metered(__file__, {"name": name, "memory": memory})


def child(order):
    """Measures in this process."""
    import copy
    import logging

    import remat_opt.torch
    import torch

    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.manual_seed(0)
    model, loss = NETWORKS[order["name"]][1]()
    plain = copy.deepcopy(model)
    backend = remat_opt.torch.backend(order["memory"], "aot_eager", **SEARCH)
    run = torch.compile(model, backend=backend)
    stock = torch.compile(copy.deepcopy(model), backend="aot_eager")
    same = {"eager": True, "aot_eager": True}
    for number in range(4):
        found = []
        for one in (run, plain, stock):
            torch.manual_seed(number)
            one.zero_grad(set_to_none=True)
            loss(one).backward()
            found.append([parameter.grad for parameter in one.parameters()])
        for kind, theirs in zip(same, found[1:]):
            same[kind] = same[kind] and all(_equal(a, b) for a, b in zip(found[0], theirs))
    for one in (plain, stock):
        one.zero_grad(set_to_none=True)
    del found
    peaks = [step.peaks_of(lambda one=one: loss(one).backward(), of, 4)[0][1:] for one, of in ((run, model), (plain, plain))]
    result = {"same": same, "peak": max(peaks[0]), "eager": max(peaks[1])}
    print(json.dumps(result | {"reports": [one.as_dict() for one in backend.reports]}))


def _equal(one, other):
    import torch

    return one is other or (one is not None and other is not None and torch.equal(one, other))


def row(name, found):
    """A row of the table."""
    planned = [one for one in found["reports"] if one["fallback"] is None and one["promised_bytes"] is not None]
    bits = "eager" if found["same"]["eager"] else "`aot_eager`" if found["same"]["aot_eager"] else "**others**"
    if not planned:
        return f"| {name} | {found['eager'] / 1e6:.1f} | not planned | {found['peak'] / 1e6:.1f} | {bits} |"
    promised = max(one["promised_bytes"] - one["external_bytes"] for one in planned)
    return f"| {name} | {found['eager'] / 1e6:.1f} | {promised / 1e6:.2f} | {found['peak'] / 1e6:.2f} | {bits} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    else:
        memory, *names = sys.argv[1:] or ["60%"]
        print("| | eager, MB | promised | measured | bits of |\n|---|---|---|---|---|")
        for each in names or NETWORKS:
            if importlib.util.find_spec(NETWORKS[each][0]) is None:
                print(f"{each}: there is no {NETWORKS[each][0]}", file=sys.stderr)
            else:
                print(row(each, measure(each, memory)), flush=True)
