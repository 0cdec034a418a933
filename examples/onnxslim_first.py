"""OnnxSlim, then a plan: what OnnxSlim removes needs no memory, and what is planned after it stays.

    python examples/onnxslim_first.py model.onnx -o small.onnx

The other way round undoes a plan: OnnxSlim removes what keeps the order of the planned file, which looks unused.
"""

import argparse
import pathlib

import onnx
import onnxslim
import remat_opt


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--budget", default="auto")
    arguments = parser.parse_args()
    slimmed = arguments.output.with_suffix(".slimmed.onnx")
    onnx.save(onnxslim.slim(str(arguments.model)), slimmed)
    nodes = [len(onnx.load(path, load_external_data=False).graph.node) for path in (arguments.model, slimmed)]
    print(f"OnnxSlim: {nodes[0]} -> {nodes[1]} nodes")
    print(remat_opt.optimize(slimmed, output=arguments.output, budget=arguments.budget))


if __name__ == "__main__":
    main()
