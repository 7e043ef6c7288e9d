"""Metrics, confidence intervals, tests, leak audits and suites. scipy and statsmodels load on first use."""

from __future__ import annotations

from likewise.evaluation.correlations import compare_correlations, difference_interval, steiger, williams
from likewise.evaluation.differences import Difference, compare_results, compare_systems
from likewise.evaluation.effects import cohen_d, hedges_g
from likewise.evaluation.intervals import (
    Interval,
    bootstrap_interval,
    combine_intervals,
    fisher_interval,
    mean_interval,
    metric_interval,
    spearman_interval,
    wilson_interval,
)
from likewise.evaluation.leakage import OverlapIndex, audit, filter_overlap, require_below
from likewise.evaluation.metrics import METRICS, Metric, compute, get_metric
from likewise.evaluation.overlap import AuditReport, Overlap
from likewise.evaluation.protocol import Protocol
from likewise.evaluation.results import Predictions, SubsetResult, SuiteResult, TaskResult
from likewise.evaluation.runlog import log_test_run, read_log
from likewise.evaluation.significance import (
    Test,
    arrows,
    holm,
    mcnemar,
    paired_bootstrap,
    paired_t,
    student,
    welch,
)
from likewise.evaluation.sts7 import clean_dev, clean_dev_tasks, clean_train, sts7_evaluation_sets
from likewise.evaluation.suites import SUITES, Suite, get_suite, run_suite, run_tasks
from likewise.evaluation.tasks import Task, load_task

__all__ = [
    "METRICS",
    "SUITES",
    "AuditReport",
    "Difference",
    "Interval",
    "Metric",
    "Overlap",
    "OverlapIndex",
    "Predictions",
    "Protocol",
    "SubsetResult",
    "Suite",
    "SuiteResult",
    "Task",
    "TaskResult",
    "Test",
    "arrows",
    "audit",
    "bootstrap_interval",
    "clean_dev",
    "clean_dev_tasks",
    "clean_train",
    "cohen_d",
    "combine_intervals",
    "compare_correlations",
    "compare_results",
    "compare_systems",
    "compute",
    "difference_interval",
    "filter_overlap",
    "fisher_interval",
    "get_metric",
    "get_suite",
    "hedges_g",
    "holm",
    "load_task",
    "log_test_run",
    "mcnemar",
    "mean_interval",
    "metric_interval",
    "paired_bootstrap",
    "paired_t",
    "read_log",
    "require_below",
    "run_suite",
    "run_tasks",
    "spearman_interval",
    "steiger",
    "sts7_evaluation_sets",
    "student",
    "welch",
    "williams",
    "wilson_interval",
]
