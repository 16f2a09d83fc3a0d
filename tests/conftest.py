"""Settings shared by all tests."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), max_examples=100, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# The suite runs in parallel processes: more threads would only fight over the cores.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[..., BaseHTTPRequestHandler]], str]]:
    """A function that answers requests on this machine until the test ends, and gives the address."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(BaseHTTPRequestHandler, "log_message", lambda *_: None)
    with ExitStack() as at_the_end:

        def begin(handler: Callable[..., BaseHTTPRequestHandler]) -> str:
            httpd = at_the_end.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
            thread.start()
            at_the_end.callback(thread.join)
            at_the_end.callback(httpd.shutdown)
            return f"http://127.0.0.1:{httpd.server_address[1]}"

        yield begin


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets that EVIDENTIA_DATA names, or skip the test."""
    given = os.environ.get("EVIDENTIA_DATA")
    if not given:
        pytest.skip("needs real data sets; set EVIDENTIA_DATA to their folder")
    folder = Path(given)
    if not (folder / "Planetoid").is_dir() or not (folder / "MNIST").is_dir():
        pytest.skip(f"EVIDENTIA_DATA is {given}, which has no folders Planetoid and MNIST")
    return folder


@pytest.fixture(scope="session")
def made_up_ava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with AVA's files of two videos to train on and four held out; features tell who stands and who sits."""
    root = tmp_path_factory.mktemp("data")
    folder = root / "AVA"
    (folder / "features").mkdir(parents=True)
    for part, videos in (("train", ("a", "b")), ("val", ("c", "d", "e", "f"))):
        rows = []
        for number, video in enumerate(videos):
            draw = np.random.default_rng([number, len(videos)])
            features = draw.normal(size=(4500, 6)).astype(np.float32)
            for second in range(902, 1799):
                # Action 79 is none of those that count.
                for action, active in ((12, second % 9 < 4), (11, second % 7 == number), (79, second % 50 == 0)):
                    if active:
                        rows.append(f"{video},{second:04d},0.1,0.1,0.9,0.9,{action},0")
                        first = round(5 * (second - 900.5))
                        features[first : first + 5, action % 6] += 4
            np.save(folder / "features" / f"{video}.npy", features)
        (folder / f"ava_{part}_v2.2.csv").write_text("\n".join(rows))
    actions = "".join(f'item {{\n  name: "{name}"\n  id: {n}\n}}\n' for name, n in (("sit", 11), ("stand", 12)))
    (folder / "ava_action_list_v2.2_for_activitynet_2019.pbtxt").write_text(actions)
    return root
