"""Take the pictures of MLflow's pages, the comparison page and a notebook: `uq-tracking demo -o FOLDER`, then this.

python docs/screenshots.py FOLDER
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from time import sleep
from urllib.parse import quote

from mlflow import MlflowClient
from playwright.sync_api import Browser, Page, sync_playwright
from tasks import HOME, run

IMAGES = Path(__file__).parent / "images"
PORT = 5937
ADDRESS = f"http://127.0.0.1:{PORT}"
CALM = {  # MLflow opens its assistant over the page otherwise
    "mlflow.assistant.panelOpen_v1": "false",
    "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": "true",
}
COMPARED = ("gaussian-process", "mc-dropout", "multi-epochs")
VIEW = "runs?workflowType=machine_learning&viewStateShareKey=uq-overview&compareRunsMode="
SETTLED = 8000
"""Milliseconds until charts and images of a page are drawn."""


def pictures(folder: Path) -> None:
    """Write all pictures from the demo's folder."""
    store = f"sqlite:///{folder.resolve()}/mlflow.db"
    server = subprocess.Popen(["mlflow", "ui", "--backend-store-uri", store, "--port", str(PORT)])
    try:
        wait_for(PORT)
        client = MlflowClient(store)
        (experiment,) = client.search_experiments(filter_string="name = 'uq-demo-terrain'")
        runs = {run.info.run_name: run.info.run_id for run in client.search_runs([experiment.experiment_id])}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            of_mlflow(browser, experiment.experiment_id, runs)
            page = browser.new_page(viewport={"width": 1240, "height": 1480})
            page.goto((folder / "uq_comparison.html").resolve().as_uri())
            page.screenshot(path=IMAGES / "comparison.png")
            of_a_notebook(browser)
            browser.close()
    finally:
        server.terminate()
        server.wait()


def of_mlflow(browser: Browser, experiment: str, runs: dict[str, str]) -> None:
    """Write the pictures of MLflow's view, list, run and compare page."""
    context = browser.new_context(viewport={"width": 1440, "height": 2320})
    context.add_init_script(
        f"for (const [k, v] of Object.entries({json.dumps(CALM)})) localStorage.setItem(k, v)"
    )
    page = context.new_page()

    def show(path: str) -> None:
        page.goto("about:blank")
        page.goto(f"{ADDRESS}/#/{path}")
        page.wait_for_timeout(SETTLED)

    show(f"experiments/{experiment}/{VIEW}CHART")
    cut(page, "mlflow-view", 215, 153, 1205, 2093)
    show(f"experiments/{experiment}/{VIEW}TABLE")
    cut(page, "mlflow-list", 215, 153, 1205, 388)
    show(f"experiments/{experiment}/runs/{runs[COMPARED[0]]}?workflowType=machine_learning")
    page.get_by_text("Show more").first.click()
    page.wait_for_timeout(SETTLED)
    cut(page, "mlflow-run", 205, 20, 1218, 990)
    ids = quote(json.dumps([runs[name] for name in COMPARED]))
    show(
        f"compare-runs?runs={ids}&experiments={quote(json.dumps([experiment]))}&workflowType=machine_learning"
    )
    page.get_by_text("uq_reliability.png").first.dispatch_event("click")
    page.wait_for_timeout(SETTLED)
    cut(page, "mlflow-compare", 213, 1583, 1206, 402)


def of_a_notebook(browser: Browser) -> None:
    """Write what a notebook shows of a report on the last line of a cell."""
    names = run("index", HOME)
    page = browser.new_page(viewport={"width": 820, "height": 1000})
    page.set_content(names["report"]._repr_html_())
    page.screenshot(path=IMAGES / "notebook.png", full_page=True)


def cut(page: Page, name: str, x: int, y: int, width: int, height: int) -> None:
    """Write a part of the page."""
    page.screenshot(path=IMAGES / f"{name}.png", clip={"x": x, "y": y, "width": width, "height": height})


def wait_for(port: int) -> None:
    """Wait until a server listens."""
    for _ in range(600):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        sleep(0.5)
    raise TimeoutError(f"nothing listens on port {port}")


if __name__ == "__main__":
    pictures(Path(sys.argv[1]))
