"""The kinds of panels our dashboards are made of: one look, units and descriptions always set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models import prometheus as prometheus_model

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HEIGHT", "WIDTH", "draw", "heat", "number", "on_off", "versions"]

WIDTH = 24
"""Columns of Grafana's grid."""
HEIGHT = 8
_Panel = TypeVar("_Panel", bound=Any)  # every panel builder has the methods used here, and they share no base
_SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")


def draw(
    title: str, description: str, unit: str, *queries: tuple[str, str], span: int = 12, stacked: bool = False
) -> timeseries.Panel:
    """Lines over time; each query is an expression and the legend of its series."""
    panel = (
        timeseries.Panel()
        .unit(unit)
        .min(0)
        .line_width(2)
        .fill_opacity(30 if stacked else 8)
        .show_points(common_model.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_model.LegendDisplayMode.TABLE)
            .placement(common_model.LegendPlacement.BOTTOM)
            .show_legend(show_legend=True)
            .calcs(["mean", "max", "lastNotNull"])
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_model.TooltipDisplayMode.MULTI)
            .sort(common_model.SortOrder.DESCENDING)
        )
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL))
    return _common(panel, title, description, queries, span, HEIGHT)


def number(
    title: str, description: str, unit: str, query: str, *, limits: Sequence[tuple[float, str]] = (), span: int = 6
) -> stat.Panel:
    """Panel with one figure and its recent course; `limits` are the values from which it changes colour."""
    steps = [model.Threshold(value=None, color="green")]
    steps += [model.Threshold(value=value, color=color) for value, color in limits]
    panel = (
        stat.Panel()
        .unit(unit)
        .decimals(1 if unit != "none" else 0)
        .graph_mode(common_model.BigValueGraphMode.AREA)
        .color_mode(common_model.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(values=False))
        .thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    )
    return _common(panel, title, description, [(query, "")], span, HEIGHT // 2)


def heat(title: str, description: str, unit: str, query: str, span: int = 12) -> heatmap.Panel:
    """Panel with the buckets of a histogram over time, with its exemplars if Prometheus keeps them."""
    panel = (
        heatmap.Panel()
        .calculate(calculate=False)
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_model.HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .scale(heatmap_model.HeatmapColorScale.EXPONENTIAL)
            .exponent(0.5)
            .steps(64)
        )
        .filter_values(heatmap.FilterValueRange().le(1e-9))
    )
    _common(panel, title, description, [], span, HEIGHT)
    return panel.with_target(
        prometheus.Dataquery()
        .expr(query)
        .legend_format("{{le}}")
        .format(prometheus_model.PromQueryFormat.HEATMAP)
        .exemplar(exemplar=True)
        .ref_id("A")
    )


def on_off(title: str, description: str, query: str, legend: str, span: int = 12) -> statetimeline.Panel:
    """Panel that shows over time which of several series were up."""
    words = {
        "0": model.ValueMappingResult(text="down", color="red", index=0),
        "1": model.ValueMappingResult(text="up", color="green", index=1),
        "2": model.ValueMappingResult(text="paused", color="orange", index=2),
    }
    panel = (
        statetimeline.Panel()
        .unit("none")
        .mappings([model.ValueMap(options=words)])
        .merge_values(merge_values=True)
        .show_value(common_model.VisibilityMode.NEVER)
        .row_height(0.8)
        .legend(common.VizLegendOptions().show_legend(show_legend=False))
    )
    return _common(panel, title, description, [(query, legend)], span, HEIGHT)


def versions(title: str, description: str, query: str, span: int = 12) -> table.Panel:
    """The labels of an info metric as a table."""
    panel = table.Panel().unit("none").datasource(_SOURCE).title(title).description(description)
    hidden = {"Time": True, "Value": True, "__name__": True, "job": True}
    return (
        panel.span(span)
        .height(HEIGHT)
        .with_target(
            prometheus.Dataquery().expr(query).instant().format(prometheus_model.PromQueryFormat.TABLE).ref_id("A")
        )
        .with_transformation(model.DataTransformerConfig(id_val="organize", options={"excludeByName": hidden}))
    )


def _common(
    panel: _Panel, title: str, description: str, queries: Sequence[tuple[str, str]], span: int, height: int
) -> _Panel:
    panel.title(title).description(description).datasource(_SOURCE).span(span).height(height)
    for letter, (expression, legend) in zip("ABCDEFGH", queries, strict=False):
        panel.with_target(prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(letter))
    return panel
