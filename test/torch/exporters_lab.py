"""What tests of exporters do in a process of its own, whose packages are those of `third_party/exporters`: models with
random weights are exported, and run as users run them. `python exporters_lab.py export FOLDER NAME...`, `.. run NAME FOLDER...`,
`.. save FOLDER NAME` for one as Transformers keeps it.
"""

import hashlib
import json
import pathlib
import sys

import torch


def bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(100, 32, 2, 2, 128, max_position_embeddings=256)
    return BertModel(config), "feature-extraction"


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(100, 256, 32, 2, 2, bos_token_id=1, eos_token_id=2)
    return GPT2LMHeadModel(config), "text-generation-with-past"


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(32, 2, 2, 64, image_size=32, patch_size=4, num_labels=4)
    return ViTForImageClassification(config), "image-classification"


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    width = {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_mel_bins": 16, "vocab_size": 100}
    layers = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = WhisperConfig(**width, **layers, **tokens, max_target_positions=32)
    config.suppress_tokens = config.begin_suppress_tokens = None
    return WhisperForConditionalGeneration(config), "automatic-speech-recognition"


def diffusion():
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    tokens = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
    text = CLIPTextConfig(100, 32, 64, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=16, **tokens)
    blocks = {"block_out_channels": (16,), "layers_per_block": 1, "norm_num_groups": 8}
    unet = UNet2DConditionModel(
        16,
        cross_attention_dim=32,
        attention_head_dim=8,
        down_block_types=("CrossAttnDownBlock2D",),
        up_block_types=("CrossAttnUpBlock2D",),
        **blocks,
    )
    vae = AutoencoderKL(block_out_channels=(16,), norm_num_groups=8, latent_channels=4)
    parts = {"tokenizer": None, "safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
    models = {"vae": vae, "text_encoder": CLIPTextModel(text), "unet": unet, "scheduler": DDIMScheduler()}
    return StableDiffusionPipeline(**models, **parts), "text-to-image"


def export(folder, names):
    from optimum.exporters.onnx import onnx_export_from_model

    for make in (one for one in (bert, gpt2, vit, whisper, diffusion) if one.__name__ in names):
        torch.manual_seed(0)
        model, task = make()
        if isinstance(model, torch.nn.Module):
            model.eval()
        onnx_export_from_model(model, folder / make.__name__, task=task, do_validation=False)


def save(folder, name):
    """A model as one that is downloaded."""
    model, _ = globals()[name]()
    model.save_pretrained(folder)


def run(folder, name):
    """Digests of the outputs as ORTModel gives them, and how many runs followed a plan of memory."""
    import remat_opt._counts
    from optimum import onnxruntime as ort

    torch.manual_seed(1)
    sessions = {}

    def session(path):
        sessions[path] = remat_opt.session(folder / path)
        return sessions[path]

    found = []
    if name == "bert":
        model = ort.ORTModelForFeatureExtraction.from_pretrained(
            folder, session_options=remat_opt.session_options(folder)
        )
        for batch, length in ((1, 64), (3, 17)):
            tokens = torch.randint(100, (batch, length))
            kinds = torch.randint(2, (batch, length))
            given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "token_type_ids": kinds}
            found.append(model(**given).last_hidden_state)
    elif name == "gpt2":
        model = ort.ORTModelForCausalLM.from_pretrained(folder, session_options=remat_opt.session_options(folder))
        prompt = torch.randint(3, 100, (2, 40))
        found = [model(input_ids=prompt, attention_mask=torch.ones_like(prompt)).logits]
        found.append(model.generate(prompt, max_new_tokens=4, do_sample=False, eos_token_id=None, pad_token_id=0))
    elif name == "vit":
        model = ort.ORTModelForImageClassification.from_pretrained(
            folder, session_options=remat_opt.session_options(folder)
        )
        found = [model(pixel_values=torch.randn(batch, 3, 32, 32)).logits for batch in (1, 5)]
    elif name == "whisper":
        plain = ort.ORTModelForSpeechSeq2Seq.from_pretrained(folder, use_cache=False)
        model = type(plain)(
            config=plain.config,
            encoder_session=session("encoder_model.onnx"),
            decoder_session=session("decoder_model.onnx"),
            generation_config=plain.generation_config,
        )
        sound = torch.randn(1, 16, 3000)
        found = [one.generate(sound, max_new_tokens=4, do_sample=False) for one in (plain, model)]
        found += [one(input_features=sound, decoder_input_ids=torch.tensor([[1, 5]])).logits for one in (plain, model)]
    else:
        parts = ("text_encoder", "unet", "vae_decoder")
        model = ort.ORTStableDiffusionPipeline.from_pretrained(
            folder, **{f"{part}_session": session(f"{part}/model.onnx") for part in parts}
        )
        text = torch.randn(1, 16, 32)
        found = [
            model(prompt_embeds=text, negative_prompt_embeds=-text, height=16, width=16, num_inference_steps=2, output_type="np",
                latents=torch.randn(1, 4, 16, 16)).images
        ]  # fmt: skip
    counts = [one.memory() for one in sessions.values()]
    if not sessions and (folder / "libremat_arena.so").exists():
        # What the library counted of the session that `ORTModel` made.
        counts = [remat_opt._counts.library(folder / "libremat_arena.so").read(0)]
    digests = [hashlib.sha256(torch.as_tensor(one).numpy().tobytes()).hexdigest() for one in found]
    print(json.dumps({"digests": digests, "followed": [one.runs for one in counts if one is not None]}))


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(pathlib.Path(sys.argv[2]), sys.argv[3:])
    elif sys.argv[1] == "save":
        save(pathlib.Path(sys.argv[2]), sys.argv[3])
    else:
        for folder in sys.argv[3:]:
            run(pathlib.Path(folder), sys.argv[2])
