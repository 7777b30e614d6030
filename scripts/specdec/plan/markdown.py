"""The plan as Markdown, for a pull request."""

from __future__ import annotations

from typing import Any

from specdec.plan.table import beside, continued, errors, gpus, will_not_start


def report(documents: list[dict[str, Any]]) -> str:
    return "\n".join(page(d) for d in documents)


def page(doc: dict[str, Any]) -> str:
    rank = doc["ranks"][doc["deciding_rank"]]
    lines = [
        f"## {doc['engine']}: {will_not_start(doc) or ('fits' if doc['fits'] else 'does not fit')}",
        "",
        f"{doc['target']}"
        + (f" with {doc['draft']}" if doc["draft"] else "")
        + f" on {gpus(doc)}, vLLM {doc['engine_version']}.",
        "",
    ]
    if refusal := will_not_start(doc):
        lines += [f"**{refusal}**; the figures below are what it would do if it did start.", ""]
        lines += [f"- {e['code']}: {e['message']}" for e in errors(doc)]
    lines += [f"- {reason}" for reason in doc["reasons"]] + [
        f"- would fit: {change}" for change in doc["changes_that_fit"]
    ]
    lines += ["", "| GiB a GPU | |", "|---|---:|"]
    for key, name in (
        ("budget_gib", "budget"),
        ("target_weights_gib", "target weights"),
        ("draft_weights_gib", "draft weights"),
        ("activation_gib", "activations"),
        ("non_torch_gib", "driver"),
        ("cuda_graph_gib", "CUDA graphs"),
        ("kv_cache_gib", "KV cache"),
    ):
        lines.append(f"| {name} | {rank[key]:.2f} |")
    lines += [
        "",
        (
            f"{doc['kv_cache_tokens']:,} tokens of KV cache, {doc['max_concurrency']:.1f} sequences of"
            f" {doc['max_model_len']:,}."
        ),
        "",
    ]
    lines += ["| requests | arm | K | ms a token | speed-up | tokens/s |", "|---:|---|---:|---:|---:|---:|"]
    lines += [
        f"| {r['batch']} | {r['arm']} | {r['k'] or ''} | {r['tpot_ms']:.2f} | {r['speedup']:.2f} |"
        f" {r['tokens_per_second']:,.0f} |"
        for r in [*doc["speed"], *beside(doc)]
    ]
    if doc["acceptance"]:
        lines += ["", f"Acceptance {doc['acceptance']['source']}{continued(doc)}."]
    if found := doc["configured"]:
        lines += ["", f"{found['text'][:1].upper()}{found['text'][1:]}."]
    if cost := doc["cost"]:
        lines += [
            "",
            (
                f"{cost['cloud']} {cost['machine']}, {cost['provisioning']}: ${cost['engine_dollars_per_hour']:.2f} an"
                f" hour an engine (price of {cost['price_date']})."
            ),
        ]
    if found := doc.get("claims"):
        lines += ["", f"Published claims about this pair ({found['source']}; unverified) cannot all hold:", ""] + [
            f"- {o}" for o in found["objections"]
        ]
    lines += [""] + [f"> {w['code']}: {w['message']}" for w in doc["warnings"] if w not in errors(doc)]
    return "\n".join(lines).rstrip() + "\n"
