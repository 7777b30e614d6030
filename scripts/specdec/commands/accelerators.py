"""`specdec accelerators`: GPUs, the machines that have them, how those can be bought and for how much."""

from __future__ import annotations

import typer

from specdec.output import Format


def accelerators(
    cloud: str = typer.Option(None, help="gke or eks: machines of that cloud alone."),
    format: Format = typer.Option(Format.text, help="text or json."),
) -> None:
    """GPU types with memory as the engine sees it, and the machine shapes of each cloud with their prices."""
    from specdec import facts, output
    from specdec.errors import unknown
    from specdec.plan import cost

    clouds = facts.machines()
    if cloud is not None and cloud not in clouds:
        raise unknown("cloud", cloud, clouds, path="--cloud")
    prices = cost.rows()
    machines = [
        {
            "cloud": c,
            "machine": name,
            **shape,
            "prices": [p for p in prices if p["cloud"] == c and p["machine"] == name],
        }
        for c, shapes in clouds.items()
        if cloud in (None, c)
        for name, shape in shapes.items()
    ]
    if format == Format.json:
        output.print_json({"accelerators": facts.accelerators(), "machines": machines})
        return
    from rich.table import Table

    gpus = Table("type", "GPU", "GiB", "GB/s", "bf16 TFLOPS", "FP8")
    for key, a in facts.accelerators().items():
        gpus.add_row(
            key,
            a["name"],
            str(a["memoryGiB"] or "the pod's"),
            f"{a['bandwidthGBs']:,}",
            str(a["tflops"]["bf16"]),
            "yes" if a["fp8"] else "no",
        )
    shapes_table = Table("cloud", "machine", "GPUs", "vCPUs", "GiB", "provisioning", "$ an hour")
    for m in machines:
        dollars = ", ".join(
            f"{p['provisioning']} {'~' if p['approximate'] else ''}{p['dollarsPerHour']:g}" for p in m["prices"]
        )
        shapes_table.add_row(
            m["cloud"],
            m["machine"],
            f"{m['count']} x {m['accelerator']}",
            str(m["vcpus"]),
            str(m["memoryGiB"]),
            ", ".join(m["provisioning"]),
            dollars,
        )
    out = output.console()
    out.print(gpus)
    out.print(shapes_table)
