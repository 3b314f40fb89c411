"""Former module names, kept for code that imports them: each is an alias of the current module."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "rewirl.deploy.c_source": "rewirl.export.c_source",
    "rewirl.deploy.c_template": "rewirl.export.c_template",
    "rewirl.deploy.container": "rewirl.policies.sealed_file",
    "rewirl.deploy.encoding": "rewirl.export.link_encoding",
    "rewirl.deploy.errors": "rewirl.export.errors",
    "rewirl.deploy.export": "rewirl.export.formats",
    "rewirl.deploy.files": "rewirl.files",
    "rewirl.deploy.layer": "rewirl.policies.layer",
    "rewirl.deploy.onnx_graph": "rewirl.export.onnx_graph",
    "rewirl.deploy.policy": "rewirl.policies.policy",
    "rewirl.deploy.scaling": "rewirl.export.action_scaling",
    "rewirl.deploy.weights": "rewirl.export.weights",
    "rewirl.experiments.aggregates": "rewirl.experiments.analysis.aggregates",
    "rewirl.experiments.analysis.inspection": "rewirl.experiments.analysis.wiring.inspection",
    "rewirl.experiments.analysis.wiring_history": "rewirl.experiments.analysis.wiring.history",
    "rewirl.experiments.analysis.wiring_study": "rewirl.experiments.analysis.wiring.study",
    "rewirl.experiments.calibration": "rewirl.experiments.sweep.calibration",
    "rewirl.experiments.comparison": "rewirl.experiments.analysis.comparison",
    "rewirl.experiments.grid": "rewirl.experiments.sweep.grid",
    "rewirl.experiments.groups": "rewirl.experiments.analysis.groups",
    "rewirl.experiments.identity": "rewirl.experiments.sweep.run_identity",
    "rewirl.experiments.metrics": "rewirl.experiments.analysis.metrics",
    "rewirl.experiments.numbers": "rewirl.experiments.analysis.number_format",
    "rewirl.experiments.on_ray": "rewirl.experiments.sweep.ray_tasks",
    "rewirl.experiments.planning": "rewirl.experiments.sweep.plan",
    "rewirl.experiments.presets": "rewirl.experiments.paper.presets",
    "rewirl.experiments.progress": "rewirl.experiments.sweep.progress",
    "rewirl.experiments.report.data": "rewirl.experiments.report.page_data",
    "rewirl.experiments.report.summary_table": "rewirl.experiments.report.tables.summary_table",
    "rewirl.experiments.report.table": "rewirl.experiments.report.tables.table",
    "rewirl.experiments.report.writing": "rewirl.experiments.report.writer",
    "rewirl.experiments.runs": "rewirl.experiments.analysis.trained_runs",
    "rewirl.experiments.search": "rewirl.experiments.tune.search_space",
    "rewirl.experiments.statistics": "rewirl.experiments.analysis.statistics",
    "rewirl.experiments.tuning": "rewirl.experiments.tune.tuning",
    "rewirl.experiments.wiring": "rewirl.experiments.analysis.wiring.study",
    "rewirl.experiments.workers": "rewirl.experiments.sweep.workers",
    "rewirl.nn.together": "rewirl.nn.batched",
    "rewirl.storage.replay_file": "rewirl.storage.logs.replay_file",
    "rewirl.storage.tables": "rewirl.storage.logs.tables",
    "rewirl.storage.wiring_log": "rewirl.storage.logs.wiring_log",
    "rewirl.training.about": "rewirl.storage.provenance",
    "rewirl.training.acting": "rewirl.training.evaluation.rollout",
    "rewirl.training.checkpoint": "rewirl.storage.checkpoint",
    "rewirl.training.environments": "rewirl.envs.environment",
    "rewirl.training.evaluator": "rewirl.training.evaluation.evaluator",
    "rewirl.training.feature_names": "rewirl.envs.feature_names",
    "rewirl.training.files": "rewirl.storage.disk_errors",
    "rewirl.training.folder": "rewirl.storage.folder",
    "rewirl.training.initial": "rewirl.storage.initial_samples",
    "rewirl.training.inspection": "rewirl.experiments.analysis.wiring.inspection",
    "rewirl.training.lock": "rewirl.storage.lock",
    "rewirl.training.loggers": "rewirl.training.observers.loggers",
    "rewirl.training.movement": "rewirl.experiments.analysis.wiring.history",
    "rewirl.training.observer": "rewirl.training.observers",
    "rewirl.training.pace": "rewirl.training.observers.pace",
    "rewirl.training.record": "rewirl.training.run_log",
    "rewirl.training.rendering": "rewirl.envs.rendering",
    "rewirl.training.resuming": "rewirl.storage.resumed_run",
    "rewirl.training.rows": "rewirl.training.measurements",
    "rewirl.training.saved": "rewirl.storage.checkpoint",
    "rewirl.training.starting": "rewirl.storage.new_run",
    "rewirl.training.task_names": "rewirl.envs.task_names",
    "rewirl.training.vector": "rewirl.training.evaluation.vector",
    "rewirl.training.wiring_log": "rewirl.storage.logs.wiring_log",
}


class Moved(MetaPathFinder, Loader):
    """Resolves former module names to current ones."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])


def install() -> None:
    """Called last, so only for names that no module has."""
    sys.meta_path.append(Moved())
