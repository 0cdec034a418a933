"""A server whose requests have many lengths, under load: its memory over time with a plan, beside stock settings.

    python server.py MODEL [--requests 400] [--largest 8192] [--clients 4] [--memory 256MiB] [--chart memory.svg]

MODEL has an open first dimension. The program plans its memory, starts two servers one after the other, one with an
`onnxruntime.InferenceSession` as it comes and one with `remat_opt.session`, sends both the same requests, and draws the
resident memory of both (Linux). The second one keeps a limit: requests that do not fit beside others wait, and those
that do not fit at all are run in parts.
"""

import argparse
import http.client
import http.server
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import numpy


class Served(http.server.BaseHTTPRequestHandler):
    """`POST /LENGTH`: the inputs, one after the other, whose open dimension has this length; the outputs come back so.
    `GET /inputs`, `GET /memory`."""

    session = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        feed, at = {}, 0
        for name, kind, shape in inputs_of(self.session):
            feed[name] = numpy.frombuffer(body, TYPES[kind], numpy.prod(sized(shape, int(self.path[1:]))), at)
            at += feed[name].nbytes
            feed[name] = feed[name].reshape(sized(shape, int(self.path[1:])))
        self.answer([memoryview(output).cast("B") for output in self.session.run(None, feed)])

    def do_GET(self):
        if self.path == "/inputs":
            found = inputs_of(self.session)
        else:
            counted = self.session.memory() if hasattr(self.session, "memory") else None
            found = None if counted is None else vars(counted)
        self.answer([json.dumps(found).encode()])

    def answer(self, parts):
        self.send_response(200)
        self.send_header("Content-Length", str(sum(map(len, parts))))
        self.end_headers()
        for part in parts:
            self.wfile.write(part)

    def log_message(self, *words):
        pass


TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(int64)": "int64", "tensor(int32)": "int32"}


def inputs_of(session):
    return [[one.name, one.type, one.shape] for one in session.get_inputs()]


def sized(shape, length):
    """A shape whose first open dimension has this length; others have 16."""
    first = next((axis for axis, dim in enumerate(shape) if not isinstance(dim, int)), None)
    return [dim if isinstance(dim, int) else length if axis == first else 16 for axis, dim in enumerate(shape)]


def serve(model, kind, memory):
    """Serves until the process is ended. The first line of its output is the port."""
    if kind == "planned":
        import remat_opt

        Served.session = remat_opt.session(model, memory=memory)
    else:
        import onnxruntime

        Served.session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
    print(server.server_port, flush=True)
    server.serve_forever()


def asked(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, path, body)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"the server answered {response.status}")
    return content


def request(inputs, length, chance):
    """Inputs whose open dimension has this length."""
    arrays = [(chance.random(sized(shape, length)) * 2).astype(TYPES[kind]) for _, kind, shape in inputs]
    return b"".join(array.tobytes() for array in arrays)


def resident(process):
    """Bytes of memory that a process has."""
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def under_load(kind, model, args):
    """Starts a server and sends it all requests: seconds and bytes while it served, and what it says of its memory."""
    line = [sys.executable, __file__, str(model), "--serve", kind]
    line += ["--memory", args.memory] if args.memory else []
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            inputs = json.loads(asked(port, "GET", "/inputs"))
            # Most requests are short and a few are very long; both servers get the same ones.
            lengths = [int(args.largest ** random.Random(at).random()) for at in range(args.requests)]
            start, seen, left, lock = time.monotonic(), [], iter(enumerate(lengths)), threading.Lock()
            failed = []

            def client():
                try:
                    while True:
                        with lock:
                            at, length = next(left)
                        asked(port, "POST", f"/{length}", request(inputs, length, numpy.random.default_rng(at)))
                except StopIteration:
                    pass
                except Exception as error:  # A thread's error would be lost.
                    failed.append(error)

            clients = [threading.Thread(target=client) for _ in range(args.clients)]
            for one in clients:
                one.start()
            while any(one.is_alive() for one in clients):
                seen.append((time.monotonic() - start, resident(process.pid)))
                time.sleep(0.02)
            seen.append((time.monotonic() - start, resident(process.pid)))
            if failed:
                raise failed[0]
            return seen, json.loads(asked(port, "GET", "/memory"))
        finally:
            process.terminate()


COLORS = {"stock": "#b3434a", "planned": "#2a6f97"}


def chart(curves):
    """Lines of memory over time as an SVG file."""
    width, height, left, low = 720, 360, 70, 40
    seconds = max(time for curve in curves.values() for time, _ in curve) or 1
    top = 1.1 * max(bytes_ for curve in curves.values() for _, bytes_ in curve)

    def place(second, bytes_):
        across = left + (width - left - 20) * second / seconds
        return f"{across:.1f},{height - low - (height - low - 20) * bytes_ / top:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for step in range(5):
        bytes_ = top * step / 4
        across, down = place(0, bytes_).split(",")
        parts.append(f'<path d="M{across} {down}H{width - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{down}" text-anchor="end" dy="4">{bytes_ / (1 << 20):.0f} MiB</text>')
        parts.append(f'<text x="{place(seconds * step / 4, 0).split(",")[0]}" y="{height - 18}">{seconds * step / 4:.1f} s</text>')
    for at, (kind, curve) in enumerate(curves.items()):
        line = " ".join(place(second, bytes_) for second, bytes_ in curve)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLORS[kind]}" stroke-width="1.5"/>')
        parts.append(f'<text x="{left + 12 + 90 * at}" y="16" fill="{COLORS[kind]}">{kind}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--largest", type=int, default=8192, help="the largest size of the open dimension")
    parser.add_argument("--clients", type=int, default=4, help="requests at one time")
    parser.add_argument("--memory", help="a limit of what runs take, such as 256MiB")
    parser.add_argument("--chart", type=pathlib.Path, default=pathlib.Path("memory.svg"))
    parser.add_argument("--serve", choices=["stock", "planned"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.model, args.serve, args.memory)
    import onnxruntime
    import remat_opt

    inputs = onnxruntime.InferenceSession(args.model, providers=["CPUExecutionProvider"]).get_inputs()
    dims = dict.fromkeys(dim for one in inputs for dim in one.shape if isinstance(dim, str))
    if not dims:
        parser.error(f"no input of {args.model} has an open dimension with a name")
    ranges = ",".join(f"{dim}=1..{args.largest if at == 0 else 16}" for at, dim in enumerate(dims))
    with tempfile.TemporaryDirectory() as folder:
        planned = pathlib.Path(folder) / "planned.onnx"
        made = remat_opt.optimize(args.model, "none", output=planned, shapes=ranges)
        # Unless told otherwise, what the largest request takes: all of them fit, and run together where they do.
        args.memory = args.memory or str(made.report["range"]["peak_bound_bytes"])
        stock, _ = under_load("stock", args.model, args)
        seen, counted = under_load("planned", planned, args)
    curves = {"stock": stock, "planned": seen}
    args.chart.write_text(chart(curves), encoding="utf-8")
    for kind, curve in curves.items():
        most, last = max(bytes_ for _, bytes_ in curve), curve[-1][1]
        print(f"{kind:8} {most >> 20:6} MiB at most, {last >> 20:6} MiB at the end, {curve[-1][0]:6.1f} s")
    print(f"a limit of {args.memory} bytes for runs; {counted['most_used_bytes']} used at most, {counted['waits']} runs waited")
    print(f"{counted['runs']} runs followed the plan, {counted['missed']} buffers were unforeseen: {args.chart}")
    return None


if __name__ == "__main__":
    main()
