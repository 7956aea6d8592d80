"""A command of jaxgeodp, and where its seconds went: importing, tracing, lowering, loading, compiling, the rest.

    python -m benchmarks.tools.profiled SECONDS.json info

Calls ``jaxgeodp info`` and writes SECONDS.json; `latency.py --profile` calls it. Nothing may be imported here that a
command could import: it would cost the command nothing.

Events nest: one function is traced within another, an import happens within tracing. A second belongs to the first of
`KINDS` that covers it.
"""

import builtins
import json
import sys
import time

# Durations that JAX reports when they end (`jax.monitoring`).
EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    "/jax/compilation_cache/cache_retrieval_time_sec": "loading",
    "/jax/core/compile/backend_compile_duration": "compiling",
}
KINDS = ("importing", *EVENTS.values())


def covered(spans):
    """Seconds that lie in any of the spans, pairs of start and end."""
    total, reached = 0.0, -float("inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def watch(spans):
    """Put the span of every import and of every event of JAX into ``spans``, by kind."""
    load, depth, listening = builtins.__import__, 0, False

    def note(event, duration, **_):
        if event in EVENTS:
            end = time.perf_counter()
            spans[EVENTS[event]].append((end - duration, end))

    def timed_import(*arguments, **keywords):
        nonlocal depth, listening
        depth += 1
        start = time.perf_counter()
        try:
            return load(*arguments, **keywords)
        finally:
            depth -= 1
            if depth == 0:
                spans["importing"].append((start, time.perf_counter()))
                monitoring = sys.modules.get("jax.monitoring")
                if monitoring is not None and not listening:
                    listening = True
                    monitoring.register_event_duration_secs_listener(note)

    builtins.__import__ = timed_import


def main():
    """Run the command, then write the seconds of each kind, their sum, and the number of programs."""
    out = sys.argv.pop(1)
    spans = {kind: [] for kind in KINDS}
    begun = time.perf_counter()
    watch(spans)
    try:
        from jaxgeodp.cli import main as command

        command()
    finally:
        seconds, so_far = {"all": time.perf_counter() - begun}, []
        for kind in KINDS:
            before = covered(so_far)
            so_far += spans[kind]
            seconds[kind] = covered(so_far) - before
        seconds["the rest"] = seconds["all"] - covered(so_far)
        counts = {"traced": len(spans["tracing"]), "programs": len(spans["compiling"]), "loaded": len(spans["loading"])}
        with open(out, "w") as file:
            json.dump(seconds | counts, file)


if __name__ == "__main__":
    main()
