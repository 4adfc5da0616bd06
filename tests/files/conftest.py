import pytest

from .made import WRITERS


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Writes columns as one kind of file and returns its path."""

    def write(columns, name=request.param):
        WRITERS[request.param](tmp_path / name, columns)
        return tmp_path / name

    return write
