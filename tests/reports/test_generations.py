"""Names of GPUs meet the table of generations, and devices are put in its order."""

from __future__ import annotations

from pathlib import Path

import pytest
from launchgap_report import generations as gen
from launchgap_report.session import Device, Session
from launchgap_report.tables import Header, Record
from report_paths import ROOT

TABLE = gen.load(ROOT / "data" / "generations.csv")


def device(name: str, capability: str = "", backend: str = "cuda") -> Device:
    text = {"device_name": name, "compute_capability": capability, "backend": backend}
    return Device(Session(Path("."), {}), Record(Header(list(text)), tuple(text.values())), 0)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("Tesla K40m", "K40m"),
        ("Tesla K20m", "K20m"),
        ("Tesla K80", "K80 (per die)"),
        ("Tesla P100-SXM2-16GB", "P100 SXM2"),
        ("Tesla V100-PCIE-16GB", "V100 PCIe 16GB"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2 32GB"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA B200", "B200 (HGX)"),
        # Other products, however alike the names are:
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA A100-PCIE-40GB", None),
        ("NVIDIA A100X", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
        ("NVIDIA GH200 480GB", None),
        ("K40", None),
        ("", None),
    ],
)
def test_a_name_finds_its_row_and_no_other(name: str, row: str | None) -> None:
    found = gen.match(device(name), TABLE)
    assert (found.gpu if found else None) == row


def test_hosts_come_first_then_launch_date_then_capability_then_name() -> None:
    devices = [
        device("NVIDIA X900", "13.0"),
        device("NVIDIA B200", "10.0"),
        device("Mystery", ""),
        device("NVIDIA H200", "9.0"),
        device("NVIDIA A100-SXM4-80GB", "8.0"),
        device("NVIDIA H100 80GB HBM3", "9.0"),
        device("NVIDIA A100-PCIE-40GB", "8.0"),
        device("Tesla T4", "7.5"),
        device("Tesla K40m", "3.5"),
        device("GRID K1", "3.0"),
        device("host", backend="host"),
    ]
    ordered = [d.name for d in sorted(devices, key=lambda d: gen.sort_key(d, TABLE))]
    assert ordered == [
        "host",
        "GRID K1",
        "Tesla K40m",
        "Tesla T4",
        "NVIDIA A100-PCIE-40GB",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA H100 80GB HBM3",
        "NVIDIA H200",
        "NVIDIA B200",
        "NVIDIA X900",
        "Mystery",
    ]


def test_a_date_is_only_called_known_where_the_table_has_it() -> None:
    assert gen.launched(device("NVIDIA H200", "9.0"), TABLE) == ("2023-11", True)
    assert gen.launched(device("NVIDIA A100-SXM4-80GB", "8.0"), TABLE) == ("2020-05", True)
    assert gen.launched(device("Mystery", "8.6"), TABLE) == ("2020-09", False)
    assert gen.launched(device("Mystery", ""), TABLE) == ("", False)
