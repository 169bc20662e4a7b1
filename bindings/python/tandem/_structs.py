"""The structures of include/tandem.h."""

from __future__ import annotations

import ctypes

_int, _size, _double, _address = ctypes.c_int, ctypes.c_size_t, ctypes.c_double, ctypes.c_void_p


class Options(ctypes.Structure):
    """tandem_options."""

    _fields_ = [
        ("heap_bytes", _size),
        ("staging_bytes", _size),
        ("timeout_s", _double),
        ("arrival_timeout_s", _double),
        ("join_timeout_s", _double),
        ("heap_limit_bytes", _size),
        ("any_memory", _int),
        ("max_blocks", _int),
        ("algorithms", ctypes.c_char_p),
        ("device", _int),
    ]


class Message(ctypes.Structure):
    """tandem_message."""

    _fields_ = [("data", _address), ("count", _size), ("type", _int), ("peer", _int)]


class Problem(ctypes.Structure):
    """tandem_problem."""

    _fields_ = [
        ("m", _size),
        ("n", _size),
        ("k", _size),
        ("type", _int),
        ("ns", ctypes.POINTER(_size)),
        ("num_b", _size),
        ("out_type", _int),
        ("b_layout", _int),
        ("activation", _int),
        ("a_scale_per_row", _int),
        ("b_scale_per_column", _int),
        ("norm", _int),
        ("epsilon", _double),
        ("residual", _int),
        ("norm_bias", _int),
        ("sum", _int),
        ("quantisation", _int),
        ("scale", _double),
        ("shares_memory", _int),
        ("block_scales", _int),
        ("fast_accumulation", _int),
    ]


class Run(ctypes.Structure):
    """tandem_run."""

    _fields_ = [
        ("m", _size),
        ("a", _address),
        ("b", ctypes.POINTER(_address)),
        ("c", ctypes.POINTER(_address)),
        ("bias", ctypes.POINTER(_address)),
        ("a_scale", _address),
        ("b_scale", ctypes.POINTER(_address)),
        ("c_scale", ctypes.POINTER(_address)),
        ("gathered", _address),
        ("residual", _address),
        ("norm_weight", _address),
        ("norm_bias", _address),
        ("sum", _address),
        ("scales", _address),
    ]


class NormProblem(ctypes.Structure):
    """tandem_norm_problem."""

    _fields_ = [
        ("hidden", _size),
        ("max_rows", _size),
        ("type", _int),
        ("norm", _int),
        ("epsilon", _double),
        ("residual", _int),
        ("bias", _int),
        ("norm_bias", _int),
        ("sum", _int),
        ("sharded_residual", _int),
        ("quantisation", _int),
        ("scale", _double),
        ("any_memory", _int),
    ]


class NormRun(ctypes.Structure):
    """tandem_norm_run."""

    _fields_ = [
        ("rows", _size),
        ("in_", _address),
        ("residual", _address),
        ("weight", _address),
        ("bias", _address),
        ("norm_bias", _address),
        ("out", _address),
        ("sum", _address),
        ("scales", _address),
    ]


class HeadsProblem(ctypes.Structure):
    """tandem_heads_problem."""

    _fields_ = [
        ("max_batch", _size),
        ("heads", _size),
        ("head_size", _size),
        ("type", _int),
        ("base_two", _int),
        ("all_heads", _int),
    ]


class HeadsRun(ctypes.Structure):
    """tandem_heads_run."""

    _fields_ = [("batch", _size), ("partial", _address), ("lse", _address), ("out", _address)]


class ExchangeProblem(ctypes.Structure):
    """tandem_exchange_problem."""

    _fields_ = [
        ("max_rows", _size),
        ("segments", ctypes.POINTER(_size)),
        ("num_tensors", _size),
        ("type", _int),
        ("to_rows", _int),
    ]


class ExchangeRun(ctypes.Structure):
    """tandem_exchange_run."""

    _fields_ = [("rows", _size), ("in_", ctypes.POINTER(_address)), ("out", ctypes.POINTER(_address))]


class ExpertsProblem(ctypes.Structure):
    """tandem_experts_problem."""

    _fields_ = [
        ("max_tokens", _size),
        ("hidden", _size),
        ("experts", _int),
        ("top_k", _int),
        ("type", _int),
        ("wire", _int),
        ("layout", _int),
        ("align", _size),
        ("most_rows", _size),
        ("scales_by_group", _int),
        ("transport", _int),
        ("batches", _int),
        ("tp_size", _int),
    ]


class ExpertsSizes(ctypes.Structure):
    """tandem_experts_sizes."""

    _fields_ = [
        ("routing_bytes", _size),
        ("rows", _size),
        ("dispatched_rows", _size),
        ("tokens_at", _size),
        ("counts_at", _size),
        ("starts_at", _size),
        ("slots_at", _size),
        ("ids_at", _size),
        ("places_at", _size),
        ("weights_at", _size),
        ("id_stride", _size),
        ("choice_stride", _size),
    ]


class ExpertsChoices(ctypes.Structure):
    """tandem_experts_choices."""

    _fields_ = [
        ("tokens", _size),
        ("tokens_on_device", _address),
        ("ids", _address),
        ("id_type", _int),
        ("weights", _address),
        ("routing", _address),
    ]


class ExpertsRows(ctypes.Structure):
    """tandem_experts_rows."""

    _fields_ = [
        ("tokens", _size),
        ("x", _address),
        ("x_scales", _address),
        ("routing", _address),
        ("out", _address),
        ("out_scales", _address),
    ]


class ExpertsSums(ctypes.Structure):
    """tandem_experts_sums."""

    _fields_ = [("tokens", _size), ("y", _address), ("routing", _address), ("add", _address), ("out", _address)]


class ExpertGemmsProblem(ctypes.Structure):
    """tandem_expert_gemms_problem."""

    _fields_ = [
        ("max_tokens", _size),
        ("hidden", _size),
        ("intermediate", _size),
        ("experts", _int),
        ("top_k", _int),
        ("type", _int),
        ("activation", _int),
        ("dispatch_gemm", _int),
        ("gemm_combine", _int),
        ("communication_sms", _int),
        ("column_chunks", _int),
        ("wire", _int),
        ("tp_size", _int),
    ]


class DispatchGemm(ctypes.Structure):
    """tandem_dispatch_gemm."""

    _fields_ = [
        ("tokens", _size),
        ("x", _address),
        ("routing", _address),
        ("b", _address),
        ("rows", _address),
        ("out", _address),
        ("x_scales", _address),
        ("b_scales", _address),
        ("row_scales", _address),
        ("out_scales", _address),
    ]


class GemmCombine(ctypes.Structure):
    """tandem_gemm_combine."""

    _fields_ = [
        ("tokens", _size),
        ("a", _address),
        ("routing", _address),
        ("b", _address),
        ("y", _address),
        ("add", _address),
        ("out", _address),
        ("a_scales", _address),
        ("b_scales", _address),
    ]
