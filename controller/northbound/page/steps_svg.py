"""Transitions as a drawing: a row for each layer, a bar for each step, as SVG. Pure."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from controller.plan.transitions import Stage
from controller.state.installed import StepDone

WIDTH, LEFT, ROW, TOP = 720, 70, 34, 20
ROWS = (Stage.HOSTS, Stage.METERS, Stage.QUEUES)
GAP_US = 20_000  # pauses between transitions are drawn no longer than this


def drawn(steps: Sequence[StepDone]) -> str:
    """Return a picture of steps, oldest first; empty if there are none."""
    if not steps:
        return ""
    height = TOP + ROW * len(ROWS) + 24
    head = f'<svg class="steps" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
    return "\n".join((f'{head} aria-label="The latest steps">', *_rows(), *_bars(steps), "</svg>"))


def _rows() -> Iterator[str]:
    for number, stage in enumerate(ROWS):
        y = TOP + ROW * number
        yield f'<text x="4" y="{y + ROW / 2 + 4}">{stage.value}</text>'
        yield f'<path class="day" d="M{LEFT} {y + ROW}H{WIDTH}"/>'


def _bars(steps: Sequence[StepDone]) -> Iterator[str]:
    starts, now_us = list[int](), 0
    for number, step in enumerate(steps):
        pause_us = step.started_us - steps[number - 1].done_us if number else 0
        now_us += min(max(pause_us, 0), GAP_US)
        starts.append(now_us)
        now_us += max(step.done_us - step.started_us, 1)
    scale = (WIDTH - LEFT - 8) / max(now_us, 1)
    epoch = None
    for step, start_us in zip(steps, starts, strict=True):
        x, wide = LEFT + start_us * scale, max(2.0, (step.done_us - step.started_us) * scale)
        y = TOP + ROW * ROWS.index(step.stage) + 6
        took = f"plan {step.epoch}, {step.stage.value}: {(step.done_us - step.started_us) / 1000:.1f} ms"
        said = f"{took}{', ' + step.error if step.error else ''}"
        kind = "bar failed" if step.error else "bar"
        yield f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW - 12}">'
        yield f"<title>{escape(said)}</title></rect>"
        if step.epoch != epoch:
            epoch = step.epoch
            yield f'<path class="day" d="M{x:.1f} {TOP}v{ROW * len(ROWS)}"/>'
