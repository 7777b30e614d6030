"""A guard on Terraform plans: what a plan would do to GPU pools and clusters that its author may not have meant."""

from __future__ import annotations

from specdec.plan_check.plan import Plan, read
from specdec.plan_check.rules import NAMES, check

__all__ = ["NAMES", "Plan", "check", "read"]
