"""How an experiment is run: tasks with a file each, so that a run can be stopped and resumed."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structot._extras import optional
from structot._files import json_text, whole_file, write_text
from structot._progress import Progress, progress_bar
from structot.experiments import _records
from structot.solvers.solve import ConvergenceWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Records", "Report", "Settings", "Task", "run"]

Records = dict[str, dict[str, Any]]  # key -> what the task's function returned

RESOLUTION = 130  # dots per inch of saved figures
_SECONDS = "seconds_of_task"


@dataclass(frozen=True)
class Settings:
    """What a user may choose for any experiment.

    Parameters
    ----------
    data
        Folder of the data sets that do not ship with the dependencies.
    seeds
        How many repetitions; None is the experiment's own number.
    jobs
        Processes at a time.
    quick
        A small version that shows the same thing less precisely.

    Examples
    --------
    >>> Settings(quick=True).jobs
    1
    """

    data: Path | None = None
    seeds: int | None = None
    jobs: int = 1
    quick: bool = False


@dataclass(frozen=True)
class Task:
    """One piece of work, the unit of resuming.

    Parameters
    ----------
    key
        Unique, fit for a file name, and holding everything the answer depends on.
    function
        A function of a module (it may be sent to another process) returning JSON values and arrays.
    arguments
        Its keyword arguments.

    Examples
    --------
    >>> task = Task("square-3", lambda x: {"square": x * x}, {"x": 3})
    >>> task.function(**task.arguments)
    {'square': 9}
    """

    key: str
    function: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """What came out: numbers, words, pictures.

    Parameters
    ----------
    results
        JSON values; becomes ``results.json``.
    markdown
        Tables and a plain verdict; becomes ``report.md``.
    figures
        File stem -> function that draws the figure from the records.
    captions
        File stem -> what the figure shows, and what to look at.

    Examples
    --------
    >>> Report({"accuracy": 0.5}, "No better than chance.", {}).results
    {'accuracy': 0.5}
    """

    results: dict[str, Any]
    markdown: str
    figures: Mapping[str, Callable[[], Figure]]
    captions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """What is computed and what is made of it.

    Parameters
    ----------
    name, title
        For folders and for readers.
    tasks
        The tasks known so far; asked again, with their records, until nothing new appears.
    report
        Numbers, words and pictures of finished tasks.
    look
        What a reader should see in it, one sentence.

    Examples
    --------
    >>> from structot import experiments
    >>> experiment = experiments.get("moons")
    >>> len(experiment.tasks(Settings(quick=True), {})) > 0
    True
    """

    name: str
    title: str
    tasks: Callable[[Settings, Records], list[Task]]
    report: Callable[[Settings, Records], Report]
    look: str = ""


def run(
    experiment: Experiment,
    out: Path,
    settings: Settings,
    *,
    progress: bool = True,
    force: bool = False,
) -> Report:
    """Do what is not done yet, then write ``results.json``, ``report.md`` and the figures.

    Parameters
    ----------
    experiment
        From `structot.experiments.get`.
    out
        Everything goes to ``out / experiment.name``; finished tasks to its folder ``tasks``.
    settings
        Size, seeds, processes, data folder.
    progress
        Show a bar with the time left on the error stream.
    force
        Compute everything anew. Without it finished tasks are kept, and results of tasks that
        these settings do not include (a run without ``quick``, more seeds) are not overwritten.

    Returns
    -------
    Report
        Made from the files, so that a resumed run gives the same as an uninterrupted one.

    Examples
    --------
    >>> import tempfile
    >>> one = Task("one", dict, {"answer": 42})
    >>> def report(settings, done):
    ...     return Report(done["one"], "", {})
    >>> tiny = Experiment("tiny", "A tiny one", lambda settings, done: [one], report)
    >>> run(tiny, Path(tempfile.mkdtemp()), Settings(), progress=False).results["answer"]
    42
    """
    folder = Path(out) / experiment.name
    first = [task.key for task in experiment.tasks(settings, {})]
    if force:
        _forget(folder)
    _refuse_loss(folder, first)
    records: Records = {}
    seconds: dict[str, float] = {}
    worked = False
    with progress_bar(experiment.name, progress, lasting=True) as bar:
        while True:
            wanted = {task.key: task for task in experiment.tasks(settings, _copy(records))}
            new = [task for key, task in wanted.items() if key not in records]
            if not new:
                break
            worked |= _finish(new, folder / "tasks", settings.jobs, bar)
            for task in new:
                record = _records.load(_file(folder / "tasks", task.key))
                if record is None:
                    raise OSError(f"{_file(folder / 'tasks', task.key)} cannot be read back.")
                seconds[task.key] = record.pop(_SECONDS)
                records[task.key] = record
    report = experiment.report(settings, records)
    if worked or not _is_written(folder, report):
        _write(folder, report)
        made: dict[str, Any] = {"settings": _settings(settings), "first_tasks": first}
        made |= {"seconds": sum(seconds.values()), "seconds_by_task": seconds}
        made["figures"] = {stem: report.captions.get(stem, "") for stem in report.figures}
        write_text(folder / "run.json", json_text(made))
    return report


def _copy(records: Records) -> Records:
    """An experiment may look at the records, not change them."""
    return {key: dict(record) for key, record in records.items()}


def _settings(settings: Settings) -> dict[str, Any]:
    # Where the data lie and how many processes worked is no part of the answer.
    return {key: value for key, value in asdict(settings).items() if key not in ("data", "jobs")}


def _refuse_loss(folder: Path, first: list[str]) -> None:
    """Results made from tasks that are not wanted now would be lost."""
    try:
        made = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    lost = set(made["first_tasks"]) - set(first)
    if lost:
        raise FileExistsError(
            f"{folder} holds results of other settings ({_words(made['settings'])}); "
            "pass --force to replace them, or another --out."
        )


def _forget(folder: Path) -> None:
    """Remove finished tasks and the mark of a finished run; nothing that others may have put."""
    for path in (*(folder / "tasks").glob("*.npz"), folder / "run.json"):
        path.unlink(missing_ok=True)


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def _file(folder: Path, key: str) -> Path:
    return folder / f"{key}.npz"


def _finish(tasks: list[Task], folder: Path, jobs: int, bar: Progress) -> bool:
    """Do the tasks without a readable file; whether there were any."""
    left = [task for task in tasks if _records.load(_file(folder, task.key)) is None]
    bar.expect(len(tasks), done=len(tasks) - len(left))
    if jobs > 1 and len(left) > 1:
        for key in _in_processes(left, folder, jobs):
            bar.show(key)
            bar.advance()
    else:
        for task in left:
            bar.show(task.key)
            _perform(task, _file(folder, task.key))
            bar.advance()
    return bool(left)


def _in_processes(tasks: list[Task], folder: Path, jobs: int) -> Iterator[str]:
    joblib = optional("joblib", "more than one job")
    pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from pool(joblib.delayed(_perform)(task, _file(folder, task.key)) for task in tasks)


def _perform(task: Task, path: Path) -> str:
    """Run one task and keep its record, in whichever process this is."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # A missed gap is a number of the record; a hundred warnings of it help nobody.
        warnings.simplefilter("ignore", ConvergenceWarning)
        record = task.function(**task.arguments)
    _records.dump(path, {**record, _SECONDS: time.perf_counter() - start})
    return task.key


def _is_written(folder: Path, report: Report) -> bool:
    names = ["results.json", "report.md", "run.json", *(f"{stem}.png" for stem in report.figures)]
    return all((folder / name).exists() for name in names)


def _write(folder: Path, report: Report) -> None:
    """Figures first: where ``results.json`` is, they are."""
    import matplotlib.pyplot as plt

    for stem, draw in report.figures.items():
        figure = draw()
        with whole_file(folder / f"{stem}.png") as aside:
            figure.savefig(aside, dpi=RESOLUTION)
        plt.close(figure)
    write_text(folder / "report.md", report.markdown.rstrip() + "\n")
    write_text(folder / "results.json", json_text(report.results))
