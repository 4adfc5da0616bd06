import warnings

with warnings.catch_warnings():  # MLflow's own imports warn of what its dependencies deprecate
    warnings.simplefilter("ignore")
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401  (here, where its warnings are caught)

from tests.wandb_server.fixtures import wandb_stopped

__all__ = ["wandb_stopped"]
