"""Nothing in a file is unpickled."""

import pickle

import numpy as np
import pytest

from uq_tracking.errors import (
    FileFormatError,
)
from uq_tracking.files import read_predictions

from .made import made_columns, write_zarr2


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_pickles_in_numpy_files_are_refused(tmp_path):
    trap = np.array([Trap(str(tmp_path / "sprung"))], object)
    np.savez(tmp_path / "p.npz", target=trap, mean=[1.0], std=[1.0])
    np.save(tmp_path / "p.npy", trap, allow_pickle=True)
    for name in ("p.npz", "p.npy"):
        with pytest.raises(FileFormatError, match="cannot be read"):
            read_predictions(tmp_path / name)
    assert not (tmp_path / "sprung").exists()
    with open(tmp_path / "check.pkl", "wb") as file:
        pickle.dump(Trap(str(tmp_path / "sprung")), file)
    with open(tmp_path / "check.pkl", "rb") as file:
        pickle.load(file).close()
    assert (tmp_path / "sprung").exists()  # the trap works, so its silence above means something


@pytest.mark.parametrize("spelling", ['{"id": "pickle"}', '{"id": "\\u0070ickle"}'])
def test_pickle_codec_of_zarr_is_refused(tmp_path, spelling):
    write_zarr2(tmp_path / "p.zarr", made_columns())
    meta = tmp_path / "p.zarr" / "target" / ".zarray"
    text = meta.read_text()
    assert '"filters": null' in text
    meta.write_text(text.replace('"filters": null', f'"filters": [{spelling}]'))
    with pytest.raises(FileFormatError, match="uses the pickle codec, which can run arbitrary code"):
        read_predictions(tmp_path / "p.zarr")
