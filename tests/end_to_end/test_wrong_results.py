"""A library that computes one element wrongly, once, of one operand set: the case has failed, and has no time."""

import pytest
from shipped import UNTRACED, table

SGEMM, GEMM, CONVOLUTION = "cublasSgemm_v2", "cublasGemmEx", "cudnnConvolutionForward"


def fault(call, **others):
    return {"device": 0, "library": "cudnn" if call == CONVOLUTION else "cublas", "call": call, "times": 1} | others


def measure(run, node, case):
    done, session = run("--devices", "gpu", "--profile", "full", "--runs", 1, "--filter", f"^{case}$", *UNTRACED, node=node)
    (row, *_) = table(session / "summary.csv")
    return done, row


CASES = [
    (SGEMM, "matmul/library/size:384/type:fp32/cache:warm", 0),
    *((GEMM, f"matmul/library/size:384/type:{type_}/cache:warm", 0) for type_ in ("tf32", "fp16", "bf16")),
    (GEMM, "matmul/library/size:256/type:bf16/cache:cold", 1),
    (GEMM, "matmul/library/size:256/type:fp16/cache:cold", 3),
    *(
        (CONVOLUTION, f"convolution/library/layer:conv5_1x1_2048/n:1/type:{type_}/cache:warm", 0)
        for type_ in ("fp32", "fp16")
    ),
    (CONVOLUTION, "convolution/library/layer:conv4_3x3/n:1/type:fp16/cache:cold", 1),
]


@pytest.mark.parametrize("wrong_byte", [-1, 1], ids=["last", "first"])
@pytest.mark.parametrize("call, case, after", CASES, ids=[case for _, case, _ in CASES])
def test_one_wrong_element_is_no_speed(run, make_node, call, case, after, wrong_byte):
    """The last byte of a result holds sign and exponent of its last element; of its first in 16 bits that is the second."""
    if wrong_byte == 1 and ("fp32" in case or "tf32" in case):
        wrong_byte = 3
    done, row = measure(run, make_node(faults=[fault(call, after=after, wrong_byte=wrong_byte)]), case)
    assert done.returncode == 3
    assert row["status"] == "failed" and row["p50"] == "", row
    assert "wrong result: " in row["reason"] and "must be" in row["reason"]


@pytest.mark.parametrize("case", [case for _, case, _ in CASES])
def test_the_same_cases_are_right_without(run, make_node, case):
    done, row = measure(run, make_node(), case)
    assert done.returncode == 0 and row["status"] == "ok", row
