"""Frame of all dashboards: the choice of a Prometheus and of a bridge, links to each other, a time, a tag."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

__all__ = ["BRIDGE", "choice", "frame"]

BRIDGE = 'bridge=~"$bridge", instance=~"$instance"'
"""Label matchers for the bridges that are chosen; series without a label `bridge` match while all are chosen."""

_TAG = "jms-bridge"
_SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")


def frame(name: str, title: str, description: str) -> dashboard.Dashboard:
    """A dashboard without panels; `name` is that of its file and, after `jms-bridge-`, its uid."""
    links = dashboard.DashboardLink("JMS bridge").type(model.DashboardLinkType.DASHBOARDS).tags([_TAG])
    return (
        dashboard.Dashboard(title)
        .uid(f"jms-bridge-{name}")
        .description(description)
        .tags([_TAG])
        .link(links.as_dropdown(as_dropdown=True).include_vars(include_vars=True).keep_time(keep_time=True))
        .refresh("10s")
        .time("now-30m", "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(choice("bridge", "Bridge", "jmsbridge_build_info"))
        .with_variable(choice("instance", "Instance", 'jmsbridge_build_info{bridge=~"$bridge"}'))
    )


def choice(label: str, title: str, series: str) -> dashboard.QueryVariable:
    """Lets people choose among the values of a label; nothing chosen is all of them."""
    everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    return (
        dashboard.QueryVariable(label)
        .label(title)
        .datasource(_SOURCE)
        .query(f"label_values({series}, {label})")
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".*")
        .current(everything)
    )
