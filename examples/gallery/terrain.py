"""Log depth maps to MLflow
========================

Two predictions of real terrain, by the best and the worst method of the demo.

::

    pip install "uq-tracking[demo]"
    python examples/gallery/terrain.py
    mlflow ui --backend-store-uri sqlite:///mlflow.db
"""

import mlflow

import uq_tracking as uq
from uq_tracking.demo.methods import predict
from uq_tracking.demo.terrain import load_terrain


def main():
    terrain = load_terrain(seed=0)  # 5 % of cells are measured; there the target is NaN and not scored
    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    mlflow.set_experiment("terrain")
    for name in ("gaussian-process", "multi-epochs"):
        with mlflow.start_run(run_name=name):
            estimate = predict(name, terrain)  # your model here: two arrays, mean and standard deviation
            report = uq.log(terrain.target, estimate.mean, estimate.std, method=name, unit="m")
        print(f"{name}: RMSE {report.scores['rmse']:.1f} m, n-MeRCI {report.scores['n_merci']:.2f}")


if __name__ == "__main__":
    main()
