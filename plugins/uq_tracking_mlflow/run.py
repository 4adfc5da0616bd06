"""An MLflow run open for writing: always by id, never started or ended, whatever its state."""

from __future__ import annotations

import json
import logging
import math
import os
import posixpath
import re
import shutil
import sys
import threading
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uq_tracking.errors import RunNotFoundError, TrackerUnreachableError
from uq_tracking.tracking.backend import (
    Run,
    called_at,
    finite,
    is_at_least,
    is_late,
    name_parts,
    picture_file,
    points_of,
)
from uq_tracking.tracking.deadline import Budget
from uq_tracking.tracking.places import scratch_folder
from uq_tracking_mlflow.connection import (
    IMAGE_GRID,
    Connection,
    StoredArtifacts,
    check_room,
    place_of,
    read_run,
    view_command,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mlflow import MlflowClient
    from mlflow.entities import Metric
    from mlflow.entities import Run as StoredEntity

    from uq_tracking.curves import Curve
    from uq_tracking.tracking.overview import Dataset, Description


_log = logging.getLogger("uq_tracking")
LONGEST = 250
REFUSED = re.compile(r"[^\w/.\- ]" if os.name == "nt" else r"[^\w/.\- :]")
"""Characters that MLflow refuses in names."""


@lru_cache(maxsize=1024)
def tag_key(name: str) -> str:
    """A tag name that MLflow accepts: a request with any other is refused with all its scores.

    >>> tag_key("augment(strong)"), tag_key("data/v1"), tag_key("../data")
    ('augment_strong_', 'data/v1', '___data')
    """
    key = REFUSED.sub("_", name)[:LONGEST] or "_"
    if posixpath.normpath(key) != key or key.startswith(("/", "..")) or key == ".":
        key = re.sub(r"[/.]", "_", key)
    if key != name:
        _log.warning("MLflow refuses the tag name %s; logged as %s", name, key)
    return key


Points = dict[int, float]
"""Value by step."""


@dataclass
class Batch:
    """Content of one request."""

    scalars: dict[tuple[int | None, str], float] = field(default_factory=dict)
    curves: dict[str, Points] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    earlier: set[tuple[int | None, str]] = field(default_factory=set)
    """Scalars that were sent before, and perhaps replaced since."""


MOST_POINTS = 20_000
"""Points of one series that are kept until they are read back: the newest ones."""


FEW = 20
"""Number of series that are all read back; of more, one stands for those that were sent with it."""


class Series:
    """Record of what this process has sent to a run step by step, so that the run need not be read at every step."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._points: dict[str, array[float]] = {}
        """Steps and values in turn, since the run was last confirmed."""
        self.tags: dict[str, str] = {}

    def goes_on(self, batch: Batch) -> bool:
        """Return whether a batch holds only scalars that were sent before, now at later steps."""
        return not batch.curves and all(
            step is not None and step > self._last.get(key, step) for step, key in batch.scalars
        )

    def sent(self, batch: Batch, stored: Collection[Any]) -> None:
        """Note what has arrived, and the last points the run had before, as far as it was read."""
        known = {metric.key: metric.step for metric in stored}
        for step, key in batch.scalars:
            if step is not None:
                self._last[key] = max(step, known.get(key, step), self._last.get(key, step))
        for (step, key), value in batch.scalars.items():
            if step is not None:
                points = self._points.setdefault(key, array("d"))
                del points[: len(points) // 4 * 2 if len(points) >= 2 * MOST_POINTS else 0]
                points.extend((step, value))
        self.tags.update(batch.tags)

    def points(self) -> dict[str, Points]:
        """Return what was sent, by name and step, since the run was last confirmed."""
        return {
            key: {int(step): value for step, value in zip(points[::2], points[1::2], strict=True)}
            for key, points in list(self._points.items())
        }

    def confirmed(self) -> None:
        """Note that the run has everything."""
        self._points.clear()


@lru_cache(maxsize=16)
def series_of(tracking_uri: str, run_id: str) -> Series:
    """The series of a run, for as long as it is among those written last."""
    return Series()


_SOURCE = "uq_tracking"
_DATASET = ("name", "digest", "source_type", "source", "schema", "profile")
"""What MLflow stores of a data set."""
COLOR_TAG = "mlflow.runColor"
AT_ONCE = 1000
"""Maximum points and tags that MLflow sends in one request."""


class _Open(threading.local):
    """The batch that a thread has open."""

    batch: Batch | None = None


class MLflowRun(Run):
    """The run ``run_id``, found through ``client`` or MLflow's own tracking URI.

    Points of a curve carry the run's start as their time, so that logging an identical curve again gives the same
    rows. MLflow cannot delete or replace points: a curve with other values becomes ``<name>-2``, or the chart would
    draw a zigzag through both. Scores name the active model (MLflow 3) and ``dataset``, a name and a digest, if there
    is one; points of curves name neither, because a model's page lists every metric that does.
    """

    def __init__(
        self,
        run_id: str,
        client: MlflowClient | None = None,
        experiment_id: str | None = None,
        dataset: tuple[str, str] | None = None,
        in_view: set[str] | None = None,
    ) -> None:
        self.run_id = run_id
        self.uri = f"mlflow:{experiment_id}/{run_id}" if experiment_id else f"mlflow:{run_id}"
        self._client = client
        self._connection: Connection | None = None
        self._dataset = dataset
        self._in_view: set[str] = set() if in_view is None else in_view
        """Names that the experiment's view holds, as verified by runs of the same store."""
        self._open = _Open()
        self._stored: StoredEntity | None = None
        """The run as last read, when it was writable."""
        self._is_fresh = False
        """True if nothing has been sent since."""
        self._tagged: dict[str, str] = {}
        """Tags sent since."""
        self._final: dict[str, float] = {}
        self._sizes: dict[str, int] = {}
        """Numbers without a step, last points of curves, and sizes of files, that were sent."""
        self._maps: set[str] = set()
        self._model = _active_model()

    @property
    def place(self) -> str:
        """The tracking URI; see `Run`."""
        return place_of(self._client)

    def log_scalars(self, scalars: Mapping[str, float], *, step: int | None = None) -> None:
        """Write the numbers that are new; without a step, at each one's last step; see `Run`.

        NaN hides a number that the run has, which MLflow cannot delete.
        """
        hidden = {
            name: value
            for name, value in scalars.items()
            if math.isnan(value) and math.isfinite(self._known().data.metrics.get(name, math.nan))
        }
        with self.batch() as waiting:
            waiting.scalars.update(
                {(step, name): value for name, value in {**finite(scalars), **hidden}.items()}
            )

    def log_again(self, scalars: Mapping[str, float], *, step: int) -> None:
        """Write those of the numbers that the step has never had; see `Run`."""
        with self.batch() as waiting:
            waiting.earlier |= {(step, name) for name in scalars}
            self.log_scalars(scalars, step=step)

    def log_curve(self, name: str, curve: Curve) -> None:
        """Write the curve as a metric over integer steps, which the charts overlay run by run; see `Run`."""
        if points := points_of(curve):
            with self.batch() as waiting:
                waiting.curves[name] = points

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags; see `Run`."""
        with self.batch() as waiting:
            waiting.tags.update({tag_key(name): str(value) for name, value in tags.items()})

    def describe(self, description: Description) -> None:
        """Put our part into the run's description; see `Run`."""
        from uq_tracking_mlflow import view  # imports the metrics, which an evaluator need not load

        waiting = {} if self._open.batch is None else self._open.batch.tags
        before = {**self._known().data.tags, **self._tagged, **waiting}.get(view.NOTE_TAG, "")
        listed = self._artifacts.list("")
        text = view.with_part(before, description, self.run_id, {item.path for item in listed})
        if text not in (None, before):
            self.set_tags({view.NOTE_TAG: str(text)})

    def use_dataset(self, dataset: Dataset) -> None:
        """Name the truth as the run's data set, if it has none of its own; see `Run`."""
        inputs = getattr(self._known().inputs, "dataset_inputs", None) or []
        known = {(item.dataset.name, item.dataset.digest) for item in inputs}
        is_ours = {item.dataset.source_type for item in inputs} <= {_SOURCE}
        if self._dataset is not None or not is_ours or (dataset.name, dataset.digest) in known:
            return
        source, profile = json.dumps({"scored_by": _SOURCE}), json.dumps({"num_rows": dataset.n})
        self._use({"name": dataset.name, "digest": dataset.digest, "source": source, "profile": profile})

    def _use(self, about: Mapping[str, str]) -> None:
        """Add a data set to the run's inputs; without a source, it is ours."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        unsaid = {"source_type": _SOURCE, "source": "{}", "schema": None, "profile": None}
        given: dict[str, Any] = {**unsaid, **about}
        entity = Dataset(**{name: given[name] for name in _DATASET})
        used = DatasetInput(entity, [InputTag("mlflow.data.context", "evaluation")])
        self._call("naming the data", lambda: self.client.log_inputs(self.run_id, [used]))

    def relate(self, model_id: str | None, dataset: Mapping[str, str] | None) -> None:
        """Name a logged model and a data set in the scores that follow, and the data set in the run; see `Run`."""
        self._model = model_id or self._model
        if dataset is not None:
            self._dataset = (dataset["name"], dataset["digest"])
            self._use(dataset)

    def show(self) -> str | None:
        """Update the experiment's view, and return its address, or the command that opens it.

        A run without a color gets the color of its method, or else of its name.
        """
        from mlflow import __version__

        from uq_tracking.tracking.names import METHOD_TAG
        from uq_tracking_mlflow import view

        experiment_id, before = self._known().info.experiment_id, self._known().data.metrics
        # Includes names of earlier calls: one may have ended before it got here.
        requested = {name for name in (*before, *self._final, *self._maps) if name.startswith("uq")}
        tags = {**self._known().data.tags, **self._tagged}
        if not requested <= self._in_view or COLOR_TAG not in tags:
            experiment = self._call("reading the view", lambda: self.client.get_experiment(experiment_id))
            known, method = experiment.tags.get(view.TAG), tags.get(METHOD_TAG) or tags.get("mlflow.runName")
            grouped = (
                METHOD_TAG in tags
                and COLOR_TAG not in tags
                and view.has_method(known, tags[METHOD_TAG])
                and self._has_another(experiment_id, tags[METHOD_TAG])
            )
            value = view.updated(known, requested, __version__, method=method or self.run_id, grouped=grouped)
            if value is not None:
                self._call(
                    "writing the view", lambda: self.client.set_experiment_tag(experiment_id, view.TAG, value)
                )
            self._in_view |= requested
            if COLOR_TAG not in tags:
                self.set_tags({COLOR_TAG: view.color(value or known, method or self.run_id)})
        uri = self.connection.uri
        return view.view_link(uri, experiment_id) or view_command(uri, experiment_id)

    def _has_another(self, experiment_id: str, method: str) -> bool:
        """Check whether another run has this method: the view knows this run if an earlier call was cut off."""
        from uq_tracking.tracking.names import METHOD_TAG

        quote = '"' if "'" in method else "'"
        if quote in method:
            return True
        wanted = f"tags.`{tag_key(METHOD_TAG)}` = {quote}{method}{quote}"
        search = partial(self.client.search_runs, [experiment_id], wanted, max_results=2)
        return any(run.info.run_id != self.run_id for run in self._call("reading the method's runs", search))

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Send everything logged inside in one request (in chunks of 1000 points), tags last."""
        if self._open.batch is not None:
            yield self._open.batch
            return
        waiting = self._open.batch = Batch()
        try:
            yield waiting
        finally:
            self._open.batch = None
        self._send(waiting)

    def log_file(self, path: Path, name: str) -> None:
        """Upload a file; see `Run`."""
        *folders, file = name_parts(name)
        self._known()
        with nullcontext(path.parent) if path.name == file else scratch_folder() as folder:
            source = path if path.name == file else Path(shutil.copyfile(path, folder / file))
            self._call(
                f"storing {name}",
                lambda: self.client.log_artifact(self.run_id, str(source), "/".join(folders) or None),
            )
            self._sizes[name] = source.stat().st_size

    def log_map(self, name: str, figure: Figure) -> None:
        """Store the panel at the artifact root, for the compare page, and in the image grid of the charts.

        The grid keeps every image it ever received, so a panel that is already stored is not logged again.
        """
        from mlflow import __version__

        from uq_tracking.figures import to_png

        self._maps.add(name)
        file, png = picture_file(name), to_png(figure)
        if self._holds("", lambda path: path == file, png):
            return
        self._known()
        start = f"images/{name.replace('/', '~')}+step+0+"

        def in_grid(path: str) -> bool:
            return path.replace("#", "~").replace("%", "+").startswith(start)

        # In a late call the grid may have the picture from an upload that was given up.
        if is_at_least(__version__, IMAGE_GRID) and not (is_late() and self._holds("images", in_grid, png)):
            image = _unchanged(png)
            self._call(
                f"storing {name}",
                lambda: self.client.log_image(self.run_id, image, key=name, step=0, synchronous=True),
            )
        self.log_figure(name, figure)

    @property
    def connection(self) -> Connection:
        """The connection, made on first use."""
        if self._connection is None:
            from mlflow import get_tracking_uri

            self._connection = Connection(self._client or _client_of(get_tracking_uri()))
        return self._connection

    @property
    def client(self) -> MlflowClient:
        """MLflow's own client."""
        return self.connection.client

    def _call(self, what: str, function: Any) -> Any:
        check_room(self.connection.uri)
        return self.connection.call(f"{what} in run {self.run_id}", function)

    def read(self) -> StoredEntity:
        """Read the run, and make sure that it is writable."""
        check_room(self.connection.uri)
        stored = read_run(self.connection, f"reading in run {self.run_id}", self.run_id)
        if stored.info.lifecycle_stage == "deleted":
            raise RunNotFoundError(
                f"MLflow run {self.run_id} is deleted; restore it with "
                f"`mlflow runs restore --run-id {self.run_id}`"
            )
        self._stored, self._is_fresh, self._tagged = stored, True, {}
        return stored

    def _known(self) -> StoredEntity:
        """The run as last read, when it was writable."""
        return self._stored or self.read()

    @property
    def _artifacts(self) -> StoredArtifacts:
        return StoredArtifacts(self._known().info, self.connection)

    def _send(self, batch: Batch) -> None:
        if not (batch.scalars or batch.curves or batch.tags):
            return
        from mlflow.entities import RunTag

        if self._stored is not None and not (batch.scalars or batch.curves):
            tags = [RunTag(name, value) for name, value in batch.tags.items()]
            self._call("tagging", lambda: self.client.log_batch(self.run_id, tags=tags, synchronous=True))
            self._tagged.update(batch.tags)
            return
        series = series_of(self.connection.uri, self.run_id)
        if series.goes_on(batch):
            before, latest = series.tags, ()
            points: list[Metric] = []
            metrics = list(self._new_scalars(batch, latest))
        else:
            stored = self._known() if self._is_fresh else self.read()
            if any(step is None for step, _ in batch.scalars):
                stored = self._with_steps(stored)
            before, latest = stored.data.tags, stored.data.to_proto().metrics
            points = list(self._new_points(batch, stored))
            metrics = [*self._new_scalars(batch, latest), *points]
        tags = [RunTag(k, v) for k, v in batch.tags.items() if before.get(k) != v]
        if metrics or tags:
            at_once = [{"metrics": metrics, "tags": tags}]
            if len(metrics) + len(tags) > AT_ONCE:  # MLflow would send tags with the first points
                at_once = [{"metrics": metrics}, {"tags": tags}]
            self._call("logging", lambda: self._log_batches(at_once))
            self._is_fresh = False
        self._tagged.update(batch.tags)
        sent = {key: value for (step, key), value in batch.scalars.items() if step is None}
        self._final |= {**finite(sent), **{point.key: point.value for point in points}}
        series.sent(batch, latest)

    def unconfirmed(self) -> Mapping[int, Mapping[str, float]]:
        """Return what was sent step by step and not read back; see `Run`."""
        found: dict[int, dict[str, float]] = {}
        for key, points in series_of(self.connection.uri, self.run_id).points().items():
            for step, value in points.items():
                found.setdefault(step, {})[key] = value
        return found

    def confirm(self) -> None:
        """Read back series, final numbers, tags, and the names and sizes of files; see `Run`."""
        stored = self.read()
        missing = [f"{key}, step {step}" for step, key in self._missing(stored)]
        last = stored.data.metrics
        for key, value in self._final.items():
            if last.get(key) != value and all(point.value != value for point in self._history(key)):
                missing.append(key)
        missing += [name for name in self._tagged if name not in stored.data.tags]
        for folder in {posixpath.dirname(name) for name in self._sizes}:
            sizes = {item.path: item.file_size for item in self._artifacts.list(folder)}
            here = [name for name in self._sizes if posixpath.dirname(name) == folder]
            missing += [name for name in here if sizes.get(name, -1) not in (self._sizes[name], None)]
        self._raise_if_lost(missing)
        series_of(self.connection.uri, self.run_id).confirmed()

    def _missing(self, stored: StoredEntity) -> dict[tuple[int | None, str], float]:
        """Return the points that this process has sent, and the run does not have.

        Of many scores that were sent at the same steps, hence together, one is read; all, if it lacks any of them or
        the last value of another is missing.
        """
        sent = series_of(self.connection.uri, self.run_id).points()
        last = {metric.key: (metric.step, metric.value) for metric in stored.data.to_proto().metrics}
        one_each = {tuple(points): key for key, points in sent.items()}.values()
        doubtful = [key for key, points in sent.items() if last.get(key) != max(points.items())]

        def lost(key: str) -> dict[tuple[int | None, str], float]:
            there = {(point.step, point.value) for point in (self._history(key) if key in last else ())}
            return {(step, key): value for step, value in sent[key].items() if (step, value) not in there}

        for keys in (sent if len(sent) <= FEW else {*one_each, *doubtful}, sent):
            found = [lost(key) for key in keys]
            if not any(found):
                return {}
        return {place: value for each in found for place, value in each.items()}

    def _with_steps(self, stored: StoredEntity) -> StoredEntity:
        """Send steps again that the server had accepted and not kept; return the run with all of them."""
        missing = self._missing(stored)
        if missing:
            batch = Batch(missing)
            metrics = list(self._new_scalars(batch, stored.data.to_proto().metrics))
            self._call("logging", lambda: self._log_batches([{"metrics": metrics}]))
            stored = self.read()
            self._raise_if_lost([f"{key}, step {step}" for step, key in self._missing(stored)])
            _log.warning(
                "MLflow had accepted %d numbers of run %s that it did not keep; they were sent again",
                len(missing),
                self.run_id,
            )
        series_of(self.connection.uri, self.run_id).confirmed()
        return stored

    def _raise_if_lost(self, names: Sequence[str]) -> None:
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise TrackerUnreachableError(
                f"run {self.run_id} does not have what the server accepted: {names[0]}{more}"
            )

    def _log_batches(self, batches: Sequence[dict[str, Any]]) -> None:
        """Send with no active model, because MLflow adds the calling thread's model to every metric."""

        def send() -> None:
            for each in batches:
                self.client.log_batch(self.run_id, **each, synchronous=True)

        if _active_model() is None:
            send()
        elif (error := Budget(math.inf).begin(send, [])()) is not None:
            raise error

    def _new_scalars(self, batch: Batch, stored: Collection[Any]) -> Iterator[Metric]:
        from mlflow.entities import Metric

        latest = {metric.key: metric for metric in stored}
        now = int(called_at() * 1000)
        belongs: dict[str, str] = {}
        if hasattr(sys.modules["mlflow"], "get_active_model_id"):  # in MLflow 2, metrics belong to nothing
            belongs = {"model_id": self._model} if self._model else {}
            belongs |= dict(zip(("dataset_name", "dataset_digest"), self._dataset or (), strict=False))
        history = cache(self._history)
        for (step, key), value in batch.scalars.items():
            last = latest.get(key)
            if last is None:
                yield Metric(key, value, now, step or 0, **belongs)
                continue
            place = last.step if step is None else step
            known = last.value if place == last.step else _value_at(history, key, place, last.step)
            if known == value:
                continue
            again = (step, key) in batch.earlier
            # it may have arrived, and another call replaced it
            if known is not None and (again or is_late()):
                there = [point for point in history(key) if (point.step, point.value) == (place, value)]
                if any(again or point.timestamp >= now for point in there):
                    continue
            after = now if known is None else last.timestamp + 1  # a later time wins at the same step
            yield Metric(key, value, max(now, after), place, **belongs)

    def _new_points(self, batch: Batch, stored: StoredEntity) -> Iterator[Metric]:
        from mlflow.entities import Metric

        for name, points in batch.curves.items():
            series = (name if version == 1 else f"{name}-{version}" for version in count(1))
            for key in series:
                found = self._history(key) if key in stored.data.metrics else ()
                known = {metric.step: metric.value for metric in found}
                if known.items() <= points.items():
                    break
            for step in sorted(points.keys() - known.keys()):
                yield Metric(key, points[step], stored.info.start_time, step)

    def _history(self, key: str) -> list[Metric]:
        found: list[Metric] = self._call(
            f"reading {key}", lambda: list(self.client.get_metric_history(self.run_id, key))
        )
        return found

    def _holds(self, folder: str, is_meant: Callable[[str], bool], content: bytes) -> bool:
        """Return whether a file in a folder has this content, among those selected by ``is_meant``."""
        listed = self._artifacts.list(folder)
        same = [item.path for item in listed if is_meant(item.path) and item.file_size == len(content)]
        with scratch_folder() as scratch:
            return any(self._artifacts.download(path, scratch).read_bytes() == content for path in same)


def _value_at(
    history: Callable[[str], Sequence[Metric]], key: str, step: int, last_step: int
) -> float | None:
    """Look up the value logged last at a step other than the last one."""
    if step > last_step:
        return None
    points = [metric for metric in history(key) if metric.step == step]
    return max(points, key=lambda metric: metric.timestamp).value if points else None


def _unchanged(png: bytes) -> Any:
    """Return a PNG file as an image that MLflow stores byte by byte, which it would compress again."""
    from PIL.PngImagePlugin import PngImageFile

    class StoredPng(PngImageFile):
        def save(self, fp: Any, format: str | None = None, **options: Any) -> None:
            Path(fp).write_bytes(png)

    return StoredPng(BytesIO(png))


def _active_model() -> str | None:
    """The model (MLflow 3) active in the caller's thread, because another thread sends."""
    return getattr(sys.modules.get("mlflow"), "get_active_model_id", lambda: None)()


@lru_cache(maxsize=4)
def _client_of(tracking_uri: str) -> MlflowClient:
    """MLflow's client for a tracker, cached: making one takes as long as preparing a request."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri)
