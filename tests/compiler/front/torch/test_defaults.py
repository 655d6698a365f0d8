"""Arguments that a file leaves out have ATen's defaults (``native_functions.yaml``), and numbers of
element types are those of torch's schema of exported programs (``ScalarType``)."""

import inspect

import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.front.torch.schema import element_type
from dovetail.compiler.front.torch.table import CONVERTERS

DEFAULTS = """
add sub subtract rsub index_add: alpha=1
addmm addmv addbmm baddbmm: beta=1 alpha=1
addcdiv addcmul: value=1
all any argmax argmin: dim=None keepdim=False
amax amin: keepdim=False
max.dim min.dim logsumexp pairwise_distance: keepdim=False
mean sum prod: dim=None keepdim=False dtype=None
var std var_mean: dim=None unbiased=True keepdim=False correction=None
norm: p=2 dim=None keepdim=False
linalg_vector_norm: dim=None keepdim=False dtype=None
argsort: dim=-1 descending=False
sort: dim=-1 descending=False
topk: dim=-1 largest=True
cat concat concatenate stack split chunk unbind unbind_copy split_copy _weight_norm: dim=0
tensor_split tensor_split_copy: dim=0
slice slice_copy slice_scatter: dim=0 start=None end=None step=1
diagonal diagonal_copy diagonal_scatter: offset=0 dim1=0 dim2=1
tril triu: diagonal=0
tril_indices triu_indices: offset=0
flatten flatten_copy: start_dim=0 end_dim=-1
roll: dims=()
arange: start=0 step=1
constant_pad_nd: value=0
pad: mode='constant' value=None
cumsum cumprod: dtype=None
diff: n=1 dim=-1 prepend=None append=None
glu linalg_cross: dim=-1
cross count_nonzero: dim=None
cosine_similarity: dim=1 eps=1e-08
pairwise_distance: p=2 eps=1e-06
pdist cdist: p=2
isclose: rtol=1e-05 atol=1e-08 equal_nan=False
celu: alpha=1.0
elu: alpha=1 scale=1 input_scale=1
leaky_relu: negative_slope=0.01
hardtanh: min_val=-1 max_val=1
hardshrink softshrink: lambd=0.5
softplus: beta=1 threshold=20
rrelu: lower=0.125 upper=0.3333333333333333 training=False
gelu: approximate='none'
logit: eps=None
round: decimals=0
div divide: rounding_mode=None
one_hot: num_classes=-1
embedding: padding_idx=-1 scale_grad_by_freq=False sparse=False
embedding_bag: mode=0 include_last_offset=False padding_idx=None per_sample_weights=None
_embedding_bag: mode=0 include_last_offset=False padding_idx=-1 per_sample_weights=None
mse_loss l1_loss: reduction=1
nll_loss nll_loss2d nll_loss_nd: weight=None reduction=1 ignore_index=-100
cross_entropy_loss: weight=None reduction=1 ignore_index=-100 label_smoothing=0.0
layer_norm group_norm: weight=None bias=None eps=1e-05
rms_norm: weight=None eps=None
conv1d conv2d conv3d: bias=None stride=1 padding=0 dilation=1 groups=1
conv_transpose1d conv_transpose2d: bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1
conv_transpose3d: bias=None stride=1 padding=0 output_padding=0 groups=1 dilation=1
scaled_dot_product_attention: attn_mask=None dropout_p=0.0 is_causal=False scale=None
scaled_dot_product_attention: enable_gqa=False
scatter_reduce: include_self=True
index_put: accumulate=False
linear bilinear: bias=None
gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell: b_ih=None b_hh=None
nan_to_num: nan=None posinf=None neginf=None
"""


def test_an_argument_that_is_left_out_has_its_default() -> None:
    for line in DEFAULTS.strip().splitlines():
        names, _, arguments = line.partition(": ")
        wanted = dict(each.split("=") for each in arguments.split())
        for name in names.split():
            known = inspect.signature(CONVERTERS[f"aten.{name}"]).parameters
            assert {each: repr(known[each].default) for each in wanted} == wanted, name


TYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 12: "bool", 13: "bfloat16", 28: "uint16", 34: "uint32", 35: "uint64",
}  # fmt: skip
OTHERS = {
    9: "complex32", 10: "complex64", 11: "complex128", 29: "float8_e4m3fn", 30: "float8_e5m2",
    31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 99: "99",
}  # fmt: skip


def test_element_types_have_the_numbers_of_torchs_schema() -> None:
    assert {number: element_type(number, "x") for number in TYPES} == TYPES
    for number, name in OTHERS.items():
        with pytest.raises(UnsupportedOperatorError, match=f"'x' has elements of type {name}$"):
            element_type(number, "x")
