"""`byoc serve`: answer requests for a model over HTTP, on this machine."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path
from typing import Any

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.names import printable
from byoc_mlir.tools.commands import common
from byoc_mlir.tools.options import add_option_argument, at_least, options_of

_PATHS = ("v2/models/{name}", "v2/models/{name}/infer", "v2/health/ready", "metrics")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_argument(parser)
    parser.add_argument("--name", help="of the model, in paths (default: that of the file)")
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine alone")
    parser.add_argument("--port", type=at_least(1), default=8000)
    parser.add_argument("--replicas", type=at_least(1), default=1, help="processes that answer")
    add_option_argument(parser, "threads", default=1, help="of each of them")
    add_option_argument(parser, "targets")
    parser.add_argument(
        "--batch-rows",
        type=at_least(1),
        default=32,
        help="rows of requests that run together, if the first dimension is symbolic (1: none do)",
    )
    parser.add_argument(
        "--waiting", type=at_least(1), default=256, help="requests that may wait for a replica"
    )
    parser.add_argument(
        "--request-bytes", type=at_least(1), default=64 << 20, help="the longest body of a request"
    )
    parser.add_argument(
        "--json-elements",
        type=at_least(1),
        default=2_000_000,
        help="of a request or an answer in JSON; tensors as bytes do not count",
    )
    parser.add_argument(
        "--seconds", type=at_least(1), default=120, help="until a request is answered"
    )
    add_option_argument(parser, "limits")
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand until it is interrupted."""
    from byoc_mlir.ray import ServingLimits, application, serving
    from byoc_mlir.ray.deployment import prepare

    if args.port > 65535:
        raise InvalidInputError(f"--port is {args.port}, accepted are 1 to 65535")
    path = common.find_model(args.model)
    options = options_of(args)
    limits = ServingLimits(
        *(args.request_bytes, args.batch_rows, args.waiting, args.json_elements, args.seconds),
        options.pop("limits"),
    )
    name = args.name or Path(path).stem
    prepare()
    app = application(path, name=name, replicas=args.replicas, limits=limits, **options)
    _check(path, {**options, "limits": limits.model})
    cores = args.replicas * args.threads
    with serving(app, host=args.host, port=args.port, cores=cores, limits=limits) as address:
        paths = [f"{address}/{one.format(name=name)}" for one in _PATHS]
        if args.json:
            print(json.dumps({"model": name, "address": address, "paths": paths}), flush=True)
        else:
            lines = map(printable, [f"serves {name}:", *paths, "until Ctrl-C"])
            print("\n".join(lines), flush=True)
        _wait()
    return 0


def _check(path: Path, options: dict[str, Any]) -> None:
    """Compiles the model in this process first, to report errors early and to fill the cache.

    Raises:
        ByocError: it cannot be compiled, or cannot be served.
    """
    from byoc_mlir.ray.served import open_model, output_tensors, warm_up
    from byoc_mlir.ray.service import Service, ServingLimits

    model = open_model(path, **options)
    Service(path.stem, model, output_tensors(path, model), ServingLimits()).close()
    warm_up(model)


def _wait() -> None:
    """Returns when the process receives a signal to end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return
