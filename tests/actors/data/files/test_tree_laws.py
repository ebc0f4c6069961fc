"""The laws of the trees of files, against a model: a dict from path to what is there.

Whatever is created, moved, uploaded and deleted in whatever order, with the jobs of deletions at any point between: the
model and the trees refuse the same and hold the same, every path leads to its record, and in the end the folder of the
contents has what records name, and nothing else.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.actors.core.contents.shelf import library
from tests.actors.data.files.forest import CHARS_MAX, DIRECTORIES_MAX, Forest
from trunkline.actors.data.files.tree import tree_problems
from trunkline.actors.maintenance.sweep import sweep
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.batch import Batch

LIMITS = Limits.off().override(
    {"file_directories_max": DIRECTORIES_MAX, "file_path_chars_max": CHARS_MAX, "erased_files_max": 2}
)

names = st.sampled_from(["a", "b", "ccc"])
paths = st.lists(names, max_size=3).map(tuple)
leaves = st.lists(names, min_size=1, max_size=2).map(tuple)
trees = st.sampled_from(["privateFile", "privateFile", "file"])
numbers = st.integers(0, 50)
sizes = st.integers(0, 3)

create = st.tuples(st.just("create"), trees, paths, leaves, st.none() | sizes)
move = st.tuples(st.just("move"), trees, numbers, st.none() | paths, st.none() | leaves)
delete = st.tuples(st.just("delete"), trees, numbers)
work = st.tuples(st.just("work"), numbers)
promise = st.tuples(st.just("promise"), trees, numbers, sizes)
upload = st.tuples(st.just("upload"), trees, numbers, st.booleans())
steps = st.lists(
    st.one_of(create, create, create, move, move, delete, work, promise, upload), min_size=30, max_size=60
)


async def take(forest: Forest, step: tuple[Any, ...]) -> None:
    match step:
        case ("create", tree, parent, name, size):
            await forest.create(tree, parent, name, size)
        case ("move", tree, number, parent, name):
            await forest.move(tree, number, parent, name)
        case ("delete", tree, number):
            await forest.delete(tree, number)
        case ("work", number):
            await forest.work(number)
        case ("promise", tree, number, size):
            await forest.promise(tree, number, size)
        case ("upload", tree, number, by_form):
            await forest.upload(tree, number, by_form=by_form)


async def test_a_record_without_its_directory_is_a_problem(tmp_path: Path) -> None:
    async with library(tmp_path / "data", limits=Limits.off()) as house:
        forest = Forest(house)
        await forest.create("privateFile", ("a",), ("b", "c"), 1)
        directory = forest.models["privateFile"][("a", "b")]
        with house.system.store.snapshot() as snapshot:
            assert list(tree_problems(snapshot)) == []
        batch = Batch()
        batch.delete(keys.RECORDS, keys.record_key("privateFile", house.application, directory.id))
        await house.system.journal.submit(batch).wait()
        with house.system.store.snapshot() as snapshot:
            (problem,) = tree_problems(snapshot)
        assert directory.id.hex() in problem


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_the_trees_hold_what_the_model_holds(plan: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with library(Path(directory) / "data", limits=LIMITS) as house:
                forest = Forest(house)
                for step in plan:
                    await take(forest, step)
                    await forest.check()
                while forest.jobs:
                    await forest.work(0)
                await forest.check()
                house.clock.pass_s(2 * LIMITS.upload_form_s)
                while await sweep(house.system):
                    pass
                forest.check_contents()

    trio.run(run)
