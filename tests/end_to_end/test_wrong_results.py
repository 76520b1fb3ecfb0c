"""A library that computes one element wrongly, once, of one operand set: the case has failed, and has no time."""

import pytest
from shipped import UNTRACED, launchgap, table

SGEMM, GEMM, CONVOLUTION = "cublasSgemm_v2", "cublasGemmEx", "cudnnConvolutionForward"
DGEMM, BATCHED, LT = "cublasDgemm_v2", "cublasGemmStridedBatchedEx", "cublasLtMatmul"
GRADIENTS = {"data": "cudnnConvolutionBackwardData", "filter": "cudnnConvolutionBackwardFilter"}
HOPPER = {"compute_capability": "9.0", "tflops": {"fp32": 50, "bf16": 700, "fp8": 1500}}


def fault(call, **others):
    return {"device": 0, "library": "cudnn" if call.startswith("cudnn") else "cublas", "call": call, "times": 1} | others


def measure(run, node, case, shapes=None):
    given = ["--shapes", shapes] if shapes else []
    done, session = run(f"^{case}$", "--profile", "full", *given, code=None, node=node)
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


def of_shape(tmp_path, header, row):
    path = tmp_path / "shapes.csv"
    path.write_text(f"{header}\n{row}\n")
    return path


PRODUCTS = [
    (DGEMM, "fp64", 7, "96,72,328,0,1,1"),
    (GEMM, "fp32_pedantic", 3, "96,72,328,1,0,1"),
    (GEMM, "fp16_acc16", 1, "96,72,328,0,0,1"),
    (GEMM, "int8", 3, "96,72,328,0,1,1"),
    (BATCHED, "fp32", 3, "48,40,64,0,1,5"),
    (BATCHED, "bf16", 1, "48,40,64,1,0,5"),
]


@pytest.mark.parametrize("call, type_, first, row", PRODUCTS, ids=[f"{call}-{type_}" for call, type_, *_ in PRODUCTS])
@pytest.mark.parametrize("last", [True, False], ids=["last", "first"])
def test_of_every_type_and_batch(run, make_node, tmp_path, call, type_, first, row, last):
    """Also in the last product of a batch only, and in its last row."""
    shapes = of_shape(tmp_path, "m,n,k,transpose_a,transpose_b,batch", row)
    node = make_node(faults=[fault(call, after=0, wrong_byte=-1 if last else first)])
    done, row = measure(run, node, f"matmul/shapes/shape:.*/library:cublas/type:{type_}", shapes)
    assert (done.returncode, row["status"], row["p50"]) == (3, "failed", ""), row
    assert "wrong result: " in row["reason"]


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "right"])
@pytest.mark.parametrize("type_", ["fp8_e4m3", "fp8_e5m2"])
def test_of_fp8(run, make_node, type_, wrong):
    faults = [fault(LT, after=0, wrong_byte=-1)] if wrong else []
    done, row = measure(run, make_node(faults=faults, **HOPPER), f"matmul/library/size:256/type:{type_}/cache:warm")
    if wrong:
        assert (done.returncode, row["status"], row["p50"]) == (3, "failed", ""), row
        assert "wrong result: " in row["reason"]
    else:
        assert (done.returncode, row["status"]) == (0, "ok"), row
        assert "cublasLtMatmul" in row["method"]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("direction", ["forward", "data", "filter"])
@pytest.mark.parametrize("type_", ["fp64", "fp32", "fp16", "bf16"])
def test_of_every_direction_and_layout(run, make_node, tmp_path, direction, layout, type_):
    shapes = of_shape(tmp_path, "n,c,h,w,k,r,s,stride_h,pad_h,pad_w,groups", "2,8,9,7,12,3,3,2,1,1,2")
    case = f"convolution/shapes/shape:.*/direction:{direction}/layout:{layout}/type:{type_}"
    call = GRADIENTS.get(direction, CONVOLUTION)
    done, row = measure(run, make_node(faults=[fault(call, after=0, wrong_byte=-1)]), case, shapes)
    assert (done.returncode, row["status"], row["p50"]) == (3, "failed", ""), row
    assert "wrong result: " in row["reason"]


@pytest.mark.parametrize(
    "size, library, type_, device",
    [("6,7,9", "cublas", "int8", {}), ("64,64,64", "cublaslt", "fp8_e4m3", HOPPER)],
    ids=["int8-odd", "fp8-nn"],
)
def test_a_shape_that_the_library_refuses_is_unsupported_in_its_words(
    run, make_node, tmp_path, size, library, type_, device
):
    """INT8 wants leading dimensions that are multiples of 4, and FP8 B transposed."""
    shapes = of_shape(tmp_path, "m,n,k", size)
    case = f"matmul/shapes/shape:{size.replace(',', 'x')}/library:{library}/type:{type_}"
    _, row = measure(run, make_node(**device), case, shapes)
    assert row["status"] == "unsupported" and "CUBLAS_STATUS_NOT_SUPPORTED" in row["reason"], row


def test_what_the_fake_keeps_is_of_the_same_operands(make_node, tmp_path):
    """LAUNCHGAP_FAKE_RESULTS: a product is computed once by all processes, and another product is another one."""
    kept, node = tmp_path / "kept", make_node()
    kept.mkdir()

    def status(name, seed):
        case = "^matmul/library/size:1024/type:fp32/cache:warm$"
        options = ("--devices", "gpu", "--runs", 2, "--filter", case, "--seed", seed, "--no-report", *UNTRACED)
        launchgap("run", *options, "-o", tmp_path / name, node=node, LAUNCHGAP_FAKE_RESULTS=kept)
        (row, *_) = table(tmp_path / name / "summary.csv")
        return row["status"]

    assert status("first", 5) == status("again", 5) == "ok"
    (first,) = kept.iterdir()
    assert status("other-operands", 6) == "ok" and len(list(kept.iterdir())) == 2
    first.write_bytes(bytes(first.stat().st_size))
    assert status("spoilt", 5) == "failed", "it is verified like any other"
