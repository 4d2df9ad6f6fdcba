# SPDX-License-Identifier: Apache-2.0
"""Files of a volume as data for training. A volume is a folder that the nodes have at the same path, such as a mount; nothing is copied.

`UCVolumeDataset` makes items of files, `DataLoader` batches them with several workers, `UCVolumeReader` and `UCVolumeWriter` read and write
bytes below one folder and never outside of it. torch is imported when a loader is made, not before; a dataset needs none.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Protocol, Union, runtime_checkable

if TYPE_CHECKING:
    import torch.utils.data

PathLike = Union[str, "os.PathLike[str]"]

NUM_WORKERS = 6  # processes that read ahead
PREFETCH_FACTOR = 4  # batches that each of them holds ready


@runtime_checkable
class Checkpointable(Protocol):
    """What can say where it is, and go on from there."""

    def state_dict(self) -> dict[str, Any]:
        """The state, as plain values."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up that state."""
        ...


class _Volume:
    """A folder, and the paths below it."""

    def __init__(self, root: PathLike):
        self.root = Path(os.path.realpath(os.fspath(root)))

    def resolve(self, path: PathLike) -> Path:
        """The absolute path of a path below the root. Raises ValueError for one that leads out of it, also by a symbolic link."""
        whole = Path(os.path.realpath(self.root / os.fspath(path)))
        if whole != self.root and self.root not in whole.parents:
            raise ValueError(f"{os.fspath(path)!r} leads out of the volume {self.root}: give a path below it")
        return whole

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"


class UCVolumeReader(_Volume):
    """Reads files of a volume: `UCVolumeReader("/Volumes/main/default/data").read("train/0.bin")`. A root that is no folder is an error."""

    def __init__(self, root: PathLike):
        super().__init__(root)
        if not self.root.is_dir():
            raise NotADirectoryError(f"the volume {self.root} is no folder on this machine: mount it on the nodes, too")

    def read(self, path: PathLike) -> bytes:
        """All bytes of a file."""
        return self.resolve(path).read_bytes()

    def exists(self, path: PathLike) -> bool:
        """Whether there is such a file or folder."""
        return self.resolve(path).exists()

    def list(self, pattern: str = "**/*") -> list[str]:
        """The files that match, as sorted paths relative to the root; `**` means folders at any depth."""
        found = (path for path in self.root.glob(pattern) if path.is_file())
        return sorted(path.relative_to(self.root).as_posix() for path in found if self._is_inside(path))

    def _is_inside(self, path: Path) -> bool:
        try:
            return bool(self.resolve(path))
        except ValueError:
            return False


class UCVolumeWriter(_Volume):
    """Writes files of a volume, each whole or not at all; the root and folders below it are made where they are missing."""

    def write(self, path: PathLike, data: bytes | bytearray | memoryview) -> Path:
        """Write a file, in place of one that is there, and return its absolute path. Readers see the old bytes or the new ones."""
        whole = self.resolve(path)
        if whole == self.root:
            raise ValueError("the path of a file in the volume is missing")
        whole.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=whole.parent, prefix=f".{whole.name[:100]}.", delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.chmod(file.name, 0o666 & ~_umask())
                os.replace(file.name, whole)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(file.name)
                raise
        return whole

    def delete(self, path: PathLike) -> None:
        """Delete a file; one that is not there is no error."""
        self.resolve(path).unlink(missing_ok=True)


def _umask() -> int:
    """The bits that new files do not get, as the kernel shows them; asking the usual way would change them for a moment."""
    with open("/proc/self/status") as status:
        return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o022)


class UCVolumeDataset:
    """The files of a volume in the order of their paths: `dataset[i]` is what `transform` makes of the bytes of file i, or the bytes.

    `pattern` is a glob relative to the root ("**/*.jpg"); without one every file is an item. With `with_path` an item is (path, value), the
    path relative to the root. The list of files is made once, so that all ranks and workers count alike while files come.
    """

    def __init__(
        self, root: PathLike, transform: Callable[[bytes], Any] | None = None, pattern: str = "**/*", *, with_path: bool = False
    ):
        self._reader = UCVolumeReader(root)
        self._transform = transform
        self._with_path = with_path
        self.paths = self._reader.list(pattern)

    @property
    def root(self) -> Path:
        """The folder of the volume."""
        return self._reader.root

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        path = self.paths[index]
        data = self._reader.read(path)
        value = data if self._transform is None else self._transform(data)
        return (path, value) if self._with_path else value

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<UCVolumeDataset of {len(self)} files in {self.root}>"


def DataLoader(  # noqa: N802  (it stands for a class)
    dataset: Any, *args: Any, num_workers: int = NUM_WORKERS, prefetch_factor: int | None = None, **kwargs: Any
) -> torch.utils.data.DataLoader[Any]:
    """A torch.utils.data.DataLoader with six workers that hold four batches each; all other arguments are torch's.

    With num_workers=0 the process itself reads, and nothing is read ahead.
    """
    from torch.utils.data import DataLoader as TorchDataLoader

    kwargs["num_workers"] = num_workers
    if num_workers > 0:
        kwargs["prefetch_factor"] = PREFETCH_FACTOR if prefetch_factor is None else prefetch_factor
    return TorchDataLoader(dataset, *args, **kwargs)
