"""The architectures of the zoo: names, families, who defines each, and its usual image size."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ZOO", "Architecture", "Source"]


class Source(StrEnum):
    """Who defines an architecture."""

    TORCHVISION = "torchvision"
    TIMM = "timm"
    HEADS = "heads"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Architecture:
    """size: of the square images it is usually given.  smallest: of those that it can take.
    fixed: its weights are made for images of one size.
    """

    name: str
    family: str
    source: Source
    size: int = 224
    smallest: int = 32
    fixed: bool = False

    def image(self, wanted: int | None) -> int:
        """The image size to use where ``wanted`` is asked for; None: the usual one."""
        if self.source is Source.FILE or wanted is None:
            return self.size
        return max(wanted, self.smallest)


def _rows(source: Source, table: str) -> list[Architecture]:
    """One a line: name, family, then the two sizes where they differ from the defaults, and the
    word "fixed".
    """
    found = []
    for line in table.split("\n"):
        if words := line.split():
            name, family, *more = words
            sizes = [int(word) for word in more if word != "fixed"]
            found.append(Architecture(name, family, source, *sizes, fixed="fixed" in more))
    return found


TORCHVISION = """
    alexnet                 alexnet        224 64
    densenet121             densenet
    efficientnet_b0         efficientnet
    efficientnet_v2_s       efficientnet   384
    googlenet               inception
    inception_v3            inception      299 80
    mnasnet0_5              mnasnet
    mobilenet_v2            mobilenet
    mobilenet_v3_large      mobilenet
    mobilenet_v3_small      mobilenet
    convnext_tiny           convnext
    regnet_x_400mf          regnet
    regnet_y_400mf          regnet
    resnet18                resnet
    resnet50                resnet
    resnext50_32x4d         resnext
    shufflenet_v2_x0_5      shufflenet
    shufflenet_v2_x1_0      shufflenet
    squeezenet1_0           squeezenet
    squeezenet1_1           squeezenet
    vgg11                   vgg
    vgg11_bn                vgg
    wide_resnet50_2         resnet
"""
TIMM = """
    convmixer_768_32        convmixer
    convnextv2_atto         convnext
    cs3darknet_s            cspnet         256
    cspdarknet53            cspnet         256
    cspresnet50             cspnet         256
    cspresnext50            cspnet         256
    darknet53               darknet        256
    dla34                   dla
    dla46_c                 dla
    dm_nfnet_f0             nfnet          192
    dpn68                   dpn
    eca_nfnet_l0            nfnet          256
    eca_resnet33ts          ecanet         256
    efficientnet_es         efficientnet
    efficientnet_lite1      efficientnet
    ese_vovnet19b_dw        vovnet
    fbnetc_100              fbnet
    fbnetv3_b               fbnet
    gernet_s                gernet
    ghostnet_100            ghostnet
    ghostnetv2_100          ghostnet
    ghostnetv3_100          ghostnet
    hardcorenas_a           hardcorenas
    hardcorenas_f           hardcorenas
    hgnetv2_b0              hgnet
    hrnet_w18_small         hrnet
    inception_next_atto     inception
    lcnet_050               lcnet
    legacy_seresnet18       senet
    legacy_xception         xception       299
    mixnet_s                mixnet
    mobilenet_edgetpu_v2_xs mobilenet
    mobilenetv3_rw          mobilenet
    mobilenetv4_conv_medium mobilenet
    mobilenetv4_conv_small  mobilenet
    mobileone_s0            mobileone
    nf_regnet_b0            nfnet          192
    poolformer_s12          metaformer
    poolformerv2_s12        metaformer
    rdnet_tiny              densenet
    regnetz_005             regnet
    regnetz_b16             regnet
    repghostnet_050         ghostnet
    repvgg_a0               repvgg
    repvit_m0_9             repvit
    res2net50_14w_8s        res2net
    resnest14d              resnest
    resnet26t               resnet         256
    resnetv2_50             resnet
    rexnet_100              rexnet
    selecsls42b             selecsls
    semnasnet_075           mnasnet
    skresnet18              sknet
    spnasnet_100            mnasnet
    starnet_s1              starnet
    starnet_s4              starnet
    tf_efficientnet_lite0   efficientnet
    tf_efficientnetv2_b0    efficientnet
    tf_mixnet_s             mixnet
    tf_mobilenetv3_small_minimal_100 mobilenet
    tinynet_e               tinynet        106
    tresnet_m               resnet
    vovnet39a               vovnet
    xception41              xception       299
"""
ATTENTION = """
    caformer_s18            metaformer
    coat_lite_tiny          coat           224 32 fixed
    convit_tiny             vit            224 32 fixed
    crossvit_9_240          vit            240
    deit_tiny_patch16_224   vit            224 32 fixed
    edgenext_xx_small       edgenext       256
    efficientformerv2_s0    efficientformer 224 32 fixed
    efficientvit_b0         efficientvit
    efficientvit_m0         efficientvit   224 64
    fastvit_t8              fastvit        256
    gcresnet33ts            resnet         256
    gmlp_s16_224            mlp            224 32 fixed
    levit_128s              levit          224 64 fixed
    mixer_s32_224           mlp            224 32 fixed
    mobilenetv4_hybrid_medium mobilenet
    mobilevit_xxs           mobilevit      256
    mobilevitv2_050         mobilevit      256
    nextvit_small           nextvit
    pit_ti_224              vit            224 32 fixed
    pvt_v2_b0               pvt
    resmlp_12_224           mlp            224 32 fixed
    shvit_s1                shvit          224 64
    swiftformer_xs          swiftformer    224 64
    swin_tiny_patch4_window7_224 swin      224 32 fixed
    tiny_vit_5m_224         tinyvit
    visformer_tiny          vit            224 32 fixed
    xcit_nano_12_p16_224    xcit
"""
HEADS = """
    deeplab_mobilenet_v3    segmentation   224 64
    fcn_resnet18            segmentation   224 64
    fpn_resnet18            detection      224 64
    lraspp_mobilenet_v3     segmentation   224 64
    pelee                   pelee
    ssdlite_mobilenet_v3    detection      320 64
    unet                    segmentation   128
    yolo_head               detection      320
    yolo_neck               detection      320 64
"""
FILES = """
    ultraface               detection      320
"""

ZOO = {
    each.name: each
    for source, table in (
        (Source.TORCHVISION, TORCHVISION),
        (Source.TIMM, TIMM),
        (Source.TIMM, ATTENTION),
        (Source.HEADS, HEADS),
        (Source.FILE, FILES),
    )
    for each in _rows(source, table)
}
"""By name."""
