"""Settings of an open-set test.

Trials keep what differs from these defaults; novelties change the second group.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openfield.settings import Settings


class OndSettings(Settings, frozen=True):
    """The source of samples, the length of a test, what agents are granted, and what may become novel."""

    short = {"round_size": 6, "before": 3, "after": 3}

    data: Annotated[
        str,
        Meta(
            description="Where the samples are: `digits`, `glyphs`, an .npz file, a folder of images with a folder for "
            "each class or a labels.csv, or a data directory."
        ),
    ] = "digits"
    side: Annotated[int, Meta(ge=0, le=4096, description="Pixels that images of a folder are resized to; 0 keeps.")] = 0
    classes: Annotated[
        str, Meta(description="Known classes by label or name, joined by +, as columns 1 to K; empty draws them.")
    ] = ""
    test: Annotated[str, Meta(description="The name of a test in a data directory; empty to build one.")] = ""
    protocol: Annotated[Literal["OND", "CONDDA"], Meta(description="K+1 classes, or clusters of novelty as well.")] = (
        "OND"
    )
    area: Annotated[
        Literal["image_classification", "activity_recognition", "transcripts", "nlt"],
        Meta(description="The kind of samples, which fixes formats and feedback."),
    ] = "image_classification"
    level: Annotated[
        Literal["strict", "compat"],
        Meta(description="Whether posted results are checked, or taken as old clients send them."),
    ] = "strict"
    known: Annotated[int, Meta(ge=2, le=1000, description="Known classes.")] = 6
    unknown: Annotated[int, Meta(ge=1, le=1000, description="Unknown classes, where the data set has as many.")] = 4
    training: Annotated[
        int,
        Meta(ge=0, description="Labelled samples of known classes before the test; of a data directory, all or none."),
    ] = 500
    round_size: Annotated[int, Meta(ge=1, description="Samples in a batch.")] = 20
    before: Annotated[int, Meta(ge=0, description="Batches before the onset.")] = 10
    after: Annotated[int, Meta(ge=0, description="Batches from the onset on.")] = 15
    share: Annotated[float, Meta(gt=0, le=1, description="Share of novel samples from the onset on.")] = 0.5
    budget: Annotated[int, Meta(ge=0, description="Labels that may be bought for each batch.")] = 5
    cap: Annotated[int, Meta(ge=-1, description="Another budget than a test's own files grant; -1: no budget.")] = -1
    hints: Annotated[str, Meta(description="Metadata of a named test that are changed: `KEY=NUMBER`, joined by +.")] = (
        ""
    )
    scores: Annotated[bool, Meta(description="Tell top-1 and top-3 accuracy after each batch.")] = False
    threshold: Annotated[
        float, Meta(ge=0, le=1, description="A belief above this declares that the world changed.")
    ] = 0.5
    noise: Annotated[float, Meta(ge=0, le=1, description="Noise on glyphs, which sets their difficulty.")] = 0.05

    typeface: Annotated[
        Literal["sans", "courier"],
        Meta(description="What glyphs are printed in; other data, which have none, are slanted when it changes."),
    ] = "sans"
    new_classes: Annotated[bool, Meta(description="Novel samples are of unknown classes.")] = False
    rotation: Annotated[float, Meta(ge=0, le=180, description="Degrees by which novel samples are turned.")] = 0.0
    blur: Annotated[int, Meta(ge=0, le=5, description="Times novel samples are blurred.")] = 0
    contrast: Annotated[float, Meta(gt=0, le=1, description="Contrast of novel samples.")] = 1.0
    background: Annotated[float, Meta(ge=0, le=1, description="Brightness of a slope behind novel samples.")] = 0.0
    grain: Annotated[float, Meta(ge=0, le=1, description="Standard deviation of noise on novel samples.")] = 0.0
    brightness: Annotated[float, Meta(ge=-1, le=1, description="How much brighter novel samples are.")] = 0.0
    slant: Annotated[float, Meta(ge=-1, le=1, description="Shear of novel samples, as of an italic font.")] = 0.0
    skew: Annotated[
        float, Meta(ge=0, le=5, description="How unevenly the known classes occur among novel samples.")
    ] = 0.0
