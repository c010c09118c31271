"""A store of MLflow for the loggers' tests."""

import pytest


@pytest.fixture
def store(tmp_path, monkeypatch):
    """MLflow with a store of files, as it is until version 4, and a reader of it."""
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # asked for by newer versions
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"file://{tmp_path}/store")
    yield mlflow, mlflow.MlflowClient(f"file://{tmp_path}/store")
    mlflow.end_run()
    mlflow.set_tracking_uri(before)
