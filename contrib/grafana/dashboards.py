#!/usr/bin/env python3
"""Write the dashboards anew, when it is run. Grafana's own types (its Foundation SDK) are what they are made of.

Each is one look: the site, a circuit, a host. A test makes them again and compares.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as models
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDE, HALF, SMALL = 24, 12, 3  # Grafana's columns: 24 in all


@dataclass(frozen=True, slots=True)
class PanelLook:
    """A panel.

    Attributes:
        title: of it.
        about: what it means, for people.
        unit: Grafana's name of the unit.
        queries: PromQL by its legend, which names labels as ``{{label}}``.
        bad: for one number: green becomes red from here on; below it, if ``is_least``. None for a course in time.
        is_least: whether ``bad`` is what is too little.
        is_stacked: whether the courses are parts of a whole.
        columns: how wide it is.
    """

    title: str
    about: str
    unit: str
    queries: Mapping[str, str]
    bad: float | None = None
    is_least: bool = False
    is_stacked: bool = False
    columns: int = HALF

    def targets(self, *, is_instant: bool) -> list[prometheus.Dataquery]:
        """Return its queries as Grafana has them."""
        found = []
        for number, (legend, expression) in enumerate(self.queries.items()):
            query = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(chr(ord("A") + number))
            found.append(query.instant() if is_instant else query.range())
        return found

    def panel(self, number: int) -> timeseries.Panel | stat.Panel:
        """Return it as Grafana has it."""
        made = self._number() if self.bad is not None else self._course()
        return made.id(number).title(self.title).description(self.about).unit(self.unit).datasource(SOURCE)

    def _number(self) -> stat.Panel:
        good, bad = ("red", "green") if self.is_least else ("green", "red")
        steps = [Threshold(None, good), Threshold(self.bad, bad)]
        return (
            stat.Panel()
            .targets([*self.targets(is_instant=True)])
            .span(SMALL)
            .height(4)
            .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
            .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
            .color_mode(models.BigValueColorMode.BACKGROUND)
            .graph_mode(models.BigValueGraphMode.NONE)
        )

    def _course(self) -> timeseries.Panel:
        made = (
            timeseries.Panel()
            .targets([*self.targets(is_instant=False)])
            .span(self.columns)
            .height(8)
            .min(0)
            .line_width(1)
            .legend(
                common.VizLegendOptions()
                .display_mode(models.LegendDisplayMode.LIST)
                .placement(models.LegendPlacement.BOTTOM)
                .show_legend(True)
            )
            .tooltip(common.VizTooltipOptions().mode(models.TooltipDisplayMode.MULTI).sort(models.SortOrder.DESCENDING))
        )
        if self.is_stacked:
            made = made.stacking(common.StackingConfig().mode(models.StackingMode.NORMAL)).fill_opacity(20)
        return made


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard: its name, its variables beside the controller's address, each with its query, and its panels."""

    name: str
    about: str
    variables: Mapping[str, str]
    looks: tuple[PanelLook, ...]

    def built(self) -> dashboard.Dashboard:
        """Return it as Grafana has it."""
        made = (
            dashboard.Dashboard(f"Headway: {self.name}")
            .uid(f"headway-{self.name}")
            .description(self.about)
            .tags(["headway"])
            .timezone("browser")
            .refresh("30s")
            .time("now-6h", "now")
            .tooltip(DashboardCursorSync.CROSSHAIR)
            .link(dashboard.DashboardLink("Headway").type(DashboardLinkType.DASHBOARDS).tags(["headway"]))
            .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        )
        for name, query in self.variables.items():
            variable = dashboard.QueryVariable(name).query(query).datasource(SOURCE)
            made = made.with_variable(variable.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED))
        for number, look in enumerate(self.looks, 1):
            made = made.with_panel(look.panel(number))
        return made

    @property
    def text(self) -> str:
        """It as JSON, one panel a line."""
        found = json.loads(JSONEncoder(sort_keys=True).encode(self.built().build()))
        panels = ",\n  ".join(json.dumps(panel, ensure_ascii=False) for panel in found.pop("panels"))
        return json.dumps(found, indent=1, ensure_ascii=False)[:-2] + f',\n "panels": [\n  {panels}\n ]\n}}\n'


def main() -> None:
    """Write them."""
    from contrib.grafana.boards import BOARDS

    for board in BOARDS:
        (HERE / f"{board.name}.json").write_text(board.text, encoding="utf-8")


if __name__ == "__main__":
    main()
