"""Names of routes are the user's: none of them is taken by a step of the plan."""

from __future__ import annotations

from engine.router.plan.topology import topology
from routes.config import loads

START = "bridge.id=b\nrouting.dead-letter-topic=dead\nrouting.on-unmatched=dead-letter\n"


def test_a_route_may_have_the_name_of_any_step_of_the_plan() -> None:
    def routes(names: list[str]) -> str:
        return START + "".join(
            f"routes.r{number}.name={name}\nroutes.r{number}.in.include=x={number}\nroutes.r{number}.out.topic=t\n"
            for number, name in enumerate(names)
        )

    names = [node.name for node in topology(loads(routes(["any"]))).nodes]
    assert len(names) > 10
    taken = {node.name for node in topology(loads(routes(names))).nodes}
    assert taken >= {*names} - {"route any"} | {f"route {name}" for name in names}
