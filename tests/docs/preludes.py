"""What the reader of a page has already: arrays, models, logged runs. Run before the page's own code."""

DEPTH = """
from pathlib import Path

import numpy as np
import uq_tracking as uq

rng = np.random.default_rng(0)
std = rng.uniform(0.2, 1.0, (8, 12, 16))
mean = rng.normal(10, 3, std.shape)
depth = mean + std * rng.normal(size=std.shape)
y_true, y_pred, y_std = depth, mean, std
image_ids = np.broadcast_to(np.arange(8)[:, None, None], depth.shape)
"""

TERRAIN = """
import mlflow

mlflow.set_tracking_uri("sqlite:///mlflow.db")


def logged(experiment, methods, split=None):
    mlflow.set_experiment(experiment)
    for number, method in enumerate(methods):
        with mlflow.start_run() as run:
            for part in split or [None]:
                uq.log(y_true, y_pred, y_std * (1 + number), method=method, unit="m", split=part, figures=False)
            last = run.info.run_id
    return last
"""

CLASSES = """
import numpy as np

rng = np.random.default_rng(0)
logits = rng.normal(size=(40, 3, 6, 6))
probs = np.moveaxis(np.exp(logits) / np.exp(logits).sum(1, keepdims=True), 1, -1)
labels = (probs.cumsum(-1) > rng.uniform(size=(40, 6, 6, 1))).argmax(-1)
names, images = ["a", "b", "c"], rng.uniform(size=(40, 6, 6))
image_ids = patient_ids = np.broadcast_to(np.arange(40)[:, None, None], labels.shape)
"""

PRELUDES = {
    "start": "",
    "dense": "",
    "tabular": "",
    "time-series": "",
    "posteriors": "",
    "segmentation": CLASSES,
    "index": DEPTH,
    "what-is-uncertainty": DEPTH
    + "member_means, member_stds = np.stack([mean + 0.1 * k for k in range(5)]), np.stack([std] * 5)",
    "what-is-calibration": DEPTH + "region = np.where(mean > 10, 'north', 'south')",
    "sharpness": DEPTH,
    "ranking-errors": DEPTH,
    "pixels": DEPTH + "maps_true, maps_pred, maps_std = depth, mean, std",
    "conventions": "from sklearn.metrics import log_loss as my_log_loss",
    "distributions": """
import numpy as np
import pandas as pd
import uq_tracking as uq

rng = np.random.default_rng(0)
y, mean = rng.normal(size=(2, 100))
df = pd.DataFrame({"y": y, "mean": mean, "mu": mean, "std": 1.5, "sigma": 1.5})
df = df.assign(q10=mean - 2, q50=mean, q90=mean + 2, low=mean - 2, high=mean + 2, scene=np.arange(100) % 10)
df[[f"draw_{m}" for m in range(5)]] = rng.normal(mean[:, None], 1, (100, 5))
df["exposure"] = rng.gamma(1, 1, 100)
latitude = np.linspace(-80, 80, 9)
y_pred, y_std = rng.normal(size=(6, 9, 18)), rng.uniform(1, 2, (6, 9, 18))
y_true, w = y_pred + y_std * rng.normal(size=y_pred.shape), rng.gamma(1, 1, y_pred.shape)
acc = uq.Accumulator()
""",
    "mlflow": "",
    "wandb": "",
    "trackers": "",
    "curves": DEPTH
    + TERRAIN
    + 'logged("terrain", ["deep-ensemble"])\n'
    + """
depth, mean, std = (np.stack([a, a, a]).reshape(24, 12, 16) for a in (depth, mean, std))
means, stds = [mean, mean + 0.1, mean - 0.1], [std] * 3
image_ids = room_type = np.broadcast_to(np.arange(24)[:, None, None] % 12, (24, 12, 16))
""",
    "intervals": DEPTH
    + """
report_a = uq.evaluate(depth, mean, std, groups=image_ids)
report_b = uq.evaluate(depth, mean + 0.1, std, groups=image_ids)
times = np.arange(depth.size).reshape(depth.shape)
""",
    "comparison": DEPTH + TERRAIN + 'logged("uq-demo-terrain", ["multi-inits", "mc-dropout"])',
    "rescoring": DEPTH
    + TERRAIN
    + """
logged("five-folds", ["deep-ensemble", "deep-ensemble"])
RUN_ID = logged("terrain", ["deep-ensemble", "mc-dropout"], split=[None, "test", "val"])
uq.recalibrate((y_true, y_pred, y_std), "std_scaling").to_json("scale.json")
Path("outputs").mkdir()
np.savez("outputs/a.npz", y=y_true, mu=y_pred, sigma=y_std)
mlflow.set_experiment("old-experiment")
with mlflow.start_run(run_name="a"):
    mlflow.log_artifacts("outputs", "outputs")
""",
    "recalibration": DEPTH
    + TERRAIN
    + """
RUN_ID = logged("depth", ["mc-dropout"])
y, mu, s = y_true, y_pred, y_std
y_val, mu_val, s_val = y_val, mean_val, std_val = y[1:], mu[1:], s[1:]
scene = image_ids
val_report = uq.evaluate(y_val, mu_val, s_val)
np.savez("maps.npz", y_true=y, y_pred=mu, y_std=s)
""",
    "classification": CLASSES
    + """
correct, confidence = labels > 0, probs[..., 1:].sum(-1) ** 0.7

weather = np.where(image_ids % 2, "rain", "sun")
nets = [lambda images: probs] * 3
heads, head_probs = np.stack([labels, labels], -1), np.stack([probs, probs], -2)
mcmc_probs, val_labels, val_logits = probs, labels, logits
loader, model = [(images, labels)] * 2, lambda batch: logits
""",
    "scale": DEPTH
    + """
import sqlite3

import dask.array as da
import torch

torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
means, stds = mean, std
loader, model = list(zip(range(8), depth, image_ids)), lambda image: (means[image], stds[image])
for name, array in {"y": depth, "mean": mean, "std": std}.items():
    np.save(name, array)
    da.from_array(array, (2, 12, 16)).to_zarr(f"run.zarr/{name}")
with sqlite3.connect("forecasts.db") as connection:
    connection.execute("CREATE TABLE forecasts (y REAL, mu REAL, sigma REAL)")
    rows = zip(depth.ravel().tolist(), mean.ravel().tolist(), std.ravel().tolist())
    connection.executemany("INSERT INTO forecasts VALUES (?, ?, ?)", rows)
""",
}
