"""The networks of ``make torch-networks``: names, and small configurations of transformers."""

from typing import Any

__all__ = ["SIZES", "TIMM", "TORCHVISION", "TRANSFORMERS"]

TORCHVISION = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet",
    "inception_v3", "maxvit_t", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_large",
    "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnet50",
    "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11_bn",
    "vit_b_16", "wide_resnet50_2", "efficientnet_b2",
)  # fmt: skip

TIMM = (
    "resnet10t", "resnetv2_50", "seresnet18", "ecaresnet26t", "skresnet18", "resnest14d",
    "res2net50_26w_4s", "dla34", "hrnet_w18_small", "darknet53", "cspresnet50", "rexnet_100",
    "ghostnet_100", "mobilenetv4_conv_small", "tinynet_e", "lcnet_050", "hardcorenas_a",
    "fbnetc_100", "mixnet_s", "repvgg_a0", "mobileone_s0", "convmixer_768_32", "poolformer_s12",
    "xcit_nano_12_p8_224", "vit_tiny_patch16_224", "deit_tiny_patch16_224",
    "beit_base_patch16_224", "cait_xxs24_224", "swin_tiny_patch4_window7_224", "mixer_s16_224",
    "gmlp_s16_224", "resmlp_12_224", "pit_ti_224", "levit_128s", "coat_lite_tiny",
    "twins_pcpvt_small", "visformer_tiny", "edgenext_xx_small", "efficientformer_l1",
    "fastvit_t8", "mobilevit_xxs", "nfnet_l0", "selecsls42", "dpn48b", "repghostnet_050",
    "convnextv2_atto", "starnet_s1", "inception_next_atto", "tiny_vit_5m_224", "volo_d1_224",
    "sequencer2d_s", "nest_tiny", "focalnet_tiny_srf", "davit_tiny", "eva02_tiny_patch14_224",
    "efficientvit_b0", "repvit_m0_9", "mobilevitv2_050", "crossvit_9_240", "hgnetv2_b0",
    "pvt_v2_b0", "efficientformerv2_s0", "vgg11", "coatnet_nano_rw_224", "shvit_s1",
    "lambda_resnet26t", "halonet26t", "eca_botnext26ts_256",
)  # fmt: skip

SIZES = {
    "maxvit_t": 224, "mixer_s16_224": 224, "gmlp_s16_224": 224, "resmlp_12_224": 224,
    "levit_128s": 224, "coat_lite_tiny": 224, "visformer_tiny": 224, "crossvit_9_240": 240,
    "efficientformerv2_s0": 224, "coatnet_nano_rw_224": 224, "shvit_s1": 224,
    "lambda_resnet26t": 128, "halonet26t": 256, "eca_botnext26ts_256": 256,
}  # fmt: skip
"""Heights and widths of pictures, where 96 is not possible."""

TEXT: dict[str, Any] = {
    "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 0,
}  # fmt: skip
GROUPED = {**TEXT, "num_key_value_heads": 2}
SMALL = {**TEXT, "embedding_size": 16}
PICTURE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
SOUND = {
    **TEXT, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3),
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}

TRANSFORMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "AlbertModel": ("tokens", SMALL),
    "BartModel": (
        "tokens",
        {"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
         "decoder_ffn_dim": 64, "max_position_embeddings": 32, "decoder_start_token_id": 1, **ENDS},
    ),
    "BertModel": ("tokens", TEXT),
    "BloomForCausalLM": (
        "tokens",
        {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4, **ENDS},
    ),
    "CLIPVisionModel": ("picture", PICTURE),
    "ConvBertModel": ("tokens", {**TEXT, "embedding_size": 32}),
    "DebertaV2Model": ("tokens", TEXT),
    "DeiTModel": ("picture", PICTURE),
    "Dinov2Model": ("picture", PICTURE),
    "DistilBertModel": (
        "tokens",
        {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "ElectraModel": ("tokens", SMALL),
    "GPT2LMHeadModel": (
        "tokens",
        {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, **ENDS},
    ),
    "GPTNeoXForCausalLM": ("tokens", TEXT),
    "GemmaForCausalLM": ("tokens", {**GROUPED, "head_dim": 8}),
    "HubertModel": ("sound", SOUND),
    "LlamaForCausalLM": ("tokens", GROUPED),
    "MPNetModel": ("tokens", TEXT),
    "MambaForCausalLM": (
        "tokens",
        {"vocab_size": 100, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, **ENDS},
    ),
    "MistralForCausalLM": ("tokens", GROUPED),
    "ModernBertModel": ("tokens", {**TEXT, "sep_token_id": 2, "cls_token_id": 1}),
    "OPTForCausalLM": (
        "tokens",
        {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32},
    ),
    "PhiForCausalLM": ("tokens", GROUPED),
    "Qwen2ForCausalLM": ("tokens", GROUPED),
    "Qwen3ForCausalLM": ("tokens", {**GROUPED, "head_dim": 8}),
    "RobertaModel": ("tokens", TEXT),
    "SegformerForSemanticSegmentation": (
        "picture",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "decoder_hidden_size": 16,
         "num_attention_heads": [1, 2, 2, 4]},
    ),
    "T5EncoderModel": (
        "tokens",
        {"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    ),
    "ViTModel": ("picture", PICTURE),
    "Wav2Vec2Model": ("sound", SOUND),
    "YolosModel": (
        "picture", {**PICTURE, "image_size": [32, 32], "num_detection_tokens": 4}
    ),
}  # fmt: skip
"""Kind and configuration of each model's inputs; its first word names the configuration."""
