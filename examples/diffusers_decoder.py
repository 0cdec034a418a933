"""The decoder of a latent diffusion model of diffusers, in less memory.

    python examples/diffusers_decoder.py --size 64 --folder decoder

Decoding takes the most memory of a pipeline. Its normalizations sum over the image, so `--fission close`, which splits sums,
goes below what keeps every bit, for some time; the report says how far the image is from the original. Weights are random,
so that nothing is downloaded; `pipeline.vae` is one with weights.
"""

import argparse
import pathlib
import types

import numpy as np
import remat_opt
import torch
from diffusers import AutoencoderKL


class Decoder(torch.nn.Module):
    """What is exported: latents to an image."""

    def __init__(self, vae):
        super().__init__()
        self.vae = vae

    def forward(self, latents):
        return self.vae.decode(latents, return_dict=False)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="rows and columns of latents, an eighth of those of the image")
    parser.add_argument("--fission", choices=["exact", "close"], default="exact")
    parser.add_argument("--folder", type=pathlib.Path, default="decoder")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
    vae = AutoencoderKL(block_out_channels=(8, 16, 16, 16), norm_num_groups=4, latent_channels=4, **blocks).eval()

    latents = torch.randn(1, 4, arguments.size, arguments.size)
    exported, planned = arguments.folder / "decoder.onnx", arguments.folder / "planned.onnx"
    torch.onnx.export(Decoder(vae), (latents,), exported, input_names=["latents"], output_names=["image"], dynamo=True, external_data=False)
    print(remat_opt.optimize(exported, output=planned, fission=arguments.fission))

    # What a pipeline calls from now on: `pipeline.vae.decode = decode`.
    session = remat_opt.session(planned)

    def decode(latents, return_dict=True, generator=None):
        image = torch.from_numpy(session.run(None, {"latents": latents.numpy()})[0])
        return types.SimpleNamespace(sample=image) if return_dict else (image,)

    with torch.no_grad():
        before = vae.decode(latents).sample
    vae.decode = decode
    after = vae.decode(latents).sample
    print(f"image {tuple(after.shape)}, {np.abs((before - after).numpy()).max():.0e} from that of PyTorch")
    print(f"{session.memory().runs} run followed the plan")


if __name__ == "__main__":
    main()
