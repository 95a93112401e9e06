"""The settings of the Doom tasks and of their trials.

Novelties change these values; layouts, actors and rules are made from them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openfield.errors import InvalidInput
from openfield.settings import Settings

Count = Annotated[int, Meta(ge=0, le=40)]
Span = tuple[Count, Count]
"""From and to, both included; drawn for every episode."""
Crowd = tuple[Annotated[int, Meta(ge=1, le=4)], Annotated[int, Meta(ge=1, le=4)]]
"""A span of enemies: scripts and arrays know four."""
MAX_AMOUNT = 2000
"""Health, bullets or units: more than there are, and well within the engine's numbers."""
MAX_PLAYER_STRIDE, MAX_ENEMY_STRIDE = 31, 39
"""Units. A stride as long as the player or enemy is wide goes through walls: only where it ends must be free."""
MAX_TICKS = 100_000
MAX_EPISODES = 10_000
Amount = Annotated[int, Meta(ge=0, le=MAX_AMOUNT)]
AmountSpan = tuple[Amount, Amount]
Distance = Annotated[float, Meta(ge=0, le=MAX_AMOUNT)]
Ticks = Annotated[int, Meta(ge=1, le=MAX_TICKS)]
Episodes = Annotated[int, Meta(ge=0, le=MAX_EPISODES)]
Coordinate = Annotated[int, Meta(ge=-512, le=512)]
EngineSeed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
"""A seed the engine takes."""
ImageSize = Literal[
    "160x120", "200x125", "200x150", "256x144", "256x160", "256x192", "320x180", "320x200", "320x240", "320x256",
    "400x225", "400x250", "400x300", "512x288", "512x320", "512x384", "640x360", "640x400", "640x480", "800x450",
    "800x500", "800x600",
]  # fmt: skip
"""Width and height of pictures: what the engine can draw."""
Buffer = Literal["depth", "labels", "automap"]
Behaviour = Literal["random", "approach", "spread", "hide", "march"]
Goal = tuple[Coordinate, Coordinate, Annotated[int, Meta(ge=1, le=512)]]
"""The centre and radius of a place."""


class DoomSettings(Settings, frozen=True):
    """What both tasks share: the shape of a trial, the clock, the player's hands and eyes."""

    training: Annotated[Episodes, Meta(description="Episodes of labelled training, once per experiment.")] = 5
    episodes: Annotated[int, Meta(ge=1, le=MAX_EPISODES, description="Test episodes in a trial.")] = 20
    before: Annotated[Episodes, Meta(description="Test episodes before the onset; 0: 3 of 10.")] = 0
    share: Annotated[float, Meta(ge=0, le=1, description="Share of novel episodes from the onset on.")] = 1.0
    limit: Annotated[Ticks, Meta(description="Ticks until an episode is cut off.")] = 2000
    score_ticks: Annotated[
        int, Meta(ge=0, le=MAX_TICKS, description="Ticks after which performance would be 0; 0: those of limit.")
    ] = 0
    epoch: Annotated[float, Meta(ge=0, le=1e11, description="time_stamp of a trial's first tick.")] = 1_600_000_000.0
    tick: Annotated[float, Meta(gt=0, le=3600, description="Seconds of time_stamp per tick.")] = 1 / 35
    death_counts: Annotated[
        bool, Meta(description="Agents are told 0 for a lost episode; if false, the share of time that is left.")
    ] = True
    light_stays: Annotated[bool, Meta(description="The red light stays on after the onset.")] = False
    observation: Annotated[
        Literal["features", "array", "pixels"],
        Meta(description="The feature vector as a mapping or as an array of numbers, or what the player sees."),
    ] = "features"
    use_image: Annotated[bool, Meta(description="Show what the player sees beside features or array, as 'image'.")] = (
        False
    )
    image_size: Annotated[ImageSize, Meta(description="Width and height of the image.")] = "320x180"
    image_colour: Annotated[
        Literal["rgb", "bgr", "grey"], Meta(description="The image's colours; on the wire it is always bgr.")
    ] = "rgb"
    buffers: Annotated[
        tuple[Buffer, ...],
        Meta(
            description="More that is drawn beside the image: depth, labels (what is where), automap; needs an image."
        ),
    ] = ()
    normalised: Annotated[bool, Meta(description="Numbers of arrays go from -1 or 0 to 1.")] = False
    frame_skip: Annotated[int, Meta(ge=1, le=35, description="Ticks an action lasts; a turn is made once.")] = 1
    buttons: Annotated[bool, Meta(description="An action is a list of buttons, 0 or 1 each, and not a word.")] = False
    reward: Annotated[
        Literal["final", "shaped"],
        Meta(description="A reward only for winning, or also for hits and lost health in every tick."),
    ] = "final"
    episode_seed: Annotated[EngineSeed | None, Meta(description="The seed of every episode; none: drawn for each.")] = (
        None
    )
    player_health: Annotated[int, Meta(ge=1, le=200, description="The player's health at the start.")] = 100
    player_ammo: Annotated[int, Meta(ge=0, le=200, description="The player's bullets at the start.")] = 50
    stride: Annotated[int, Meta(ge=1, le=MAX_PLAYER_STRIDE, description="Units the player goes per tick.")] = 16
    mirrored: Annotated[bool, Meta(description="Left goes right and right goes left.")] = False
    lag: Annotated[int, Meta(ge=0, le=35, description="Ticks until an action takes effect.")] = 0
    buckets: Annotated[int, Meta(ge=0, le=10**6, description="Positions are shown in this many steps; 0: exact.")] = 0
    fog: Annotated[Distance, Meta(description="Entities farther away are shown at this distance; 0: no fog.")] = 0.0
    toll: Annotated[Amount, Meta(description="Health the player loses every toll_period ticks.")] = 0
    toll_period: Annotated[Ticks, Meta(description="Ticks from one toll to the next.")] = 50


class DuelSettings(DoomSettings, frozen=True):
    """One player, one stationary enemy."""

    short = {"training": 1, "episodes": 7, "limit": 350}

    tick: Annotated[float, Meta(gt=0, le=3600, description="Seconds of time_stamp per tick.")] = 1 / 30
    player_health: Annotated[int, Meta(ge=1, le=100, description="The player's health at the start.")] = 10
    stride: Annotated[int, Meta(ge=1, le=MAX_PLAYER_STRIDE, description="Units the player goes per tick.")] = 8
    enemies: Annotated[int, Meta(ge=1, le=4, description="Number of enemies.")] = 1
    enemy_radius: Annotated[int, Meta(ge=1, le=64, description="Half the width of an enemy.")] = 20
    enemy_health: Annotated[int, Meta(ge=1, le=100, description="The enemy's health; a hit takes 5.")] = 1
    enemy_stride: Annotated[int, Meta(ge=0, le=32, description="Units the enemy goes per tick.")] = 0
    enemy_pause: Annotated[Ticks, Meta(description="Ticks from one attack of the enemy to the next.")] = 70
    enemy_damage: Annotated[Amount, Meta(description="Health a bullet of the enemy takes.")] = 1
    bolt_speed: Annotated[int, Meta(ge=0, le=64, description="Units a projectile flies per tick; 0 fires bullets.")] = 0
    bolt_damage: Annotated[Amount, Meta(description="Health a projectile takes.")] = 4
    ammo_packs: Annotated[int, Meta(ge=0, le=20, description="Packs of bullets on the floor.")] = 0


class ArenaSettings(DoomSettings, frozen=True):
    """Two to four moving enemies among walls and items."""

    short = {"training": 1, "episodes": 6, "limit": 525}

    light_stays: Annotated[bool, Meta(description="The red light stays on after the onset.")] = True
    player_ammo: Annotated[int, Meta(ge=0, le=200, description="The player's bullets at the start.")] = 20
    give_up: Annotated[bool, Meta(description="There is an action give_up, which ends an episode.")] = True
    hint_level: Annotated[int, Meta(ge=-1, le=3, description="Words of a hint on the novelty; -1: no hint.")] = -1
    enemies: Annotated[Crowd, Meta(description="How many enemies.")] = (2, 4)
    health_packs: Annotated[Span, Meta(description="How many health packs.")] = (1, 4)
    ammo_packs: Annotated[Span, Meta(description="How many packs of bullets.")] = (1, 4)
    traps: Annotated[Span, Meta(description="How many traps.")] = (1, 4)
    obstacles: Annotated[Span, Meta(description="How many pillars.")] = (1, 4)
    ammo_pack: Annotated[int, Meta(ge=1, le=200, description="Bullets in a pack.")] = 10
    map: Annotated[Literal["own", "published"], Meta(description="The walls: our own, or the published ones.")] = "own"
    enemy_health: Annotated[int, Meta(ge=1, le=100, description="An enemy's health; a hit takes 4, later 5.")] = 10
    enemy_radius: Annotated[int, Meta(ge=1, le=20, description="Half the width of an enemy.")] = 20
    enemy_aim: Annotated[float, Meta(ge=0, le=1, description="Share of enemies' shots that fly where they look.")] = (
        0.45
    )
    enemy_stride: Annotated[int, Meta(ge=0, le=MAX_ENEMY_STRIDE, description="Units an enemy goes per tick.")] = 16
    enemy_damage: Annotated[AmountSpan, Meta(description="Health an enemy's bullet takes.")] = (5, 5)
    closeness: Annotated[
        int, Meta(ge=0, le=32_000, description="Bullets take closeness/distance health; 0: enemy_damage.")
    ] = 0
    behaviour: Annotated[Behaviour, Meta(description="Where enemies go.")] = "random"
    hide_distance: Annotated[int, Meta(ge=1, le=MAX_AMOUNT, description="How far behind a pillar enemies hide.")] = 256
    sentry_after: Annotated[
        int, Meta(ge=-1, le=MAX_TICKS, description="Ticks until enemies only aim and fire; -1: never.")
    ] = -1
    blink: Annotated[AmountSpan, Meta(description="How far an enemy that was hit is moved; (0, 0): not at all.")] = (
        0,
        0,
    )
    wall_harm: Annotated[Amount, Meta(description="Health lost per tick near walls and pillars.")] = 0
    wind: Annotated[int, Meta(ge=0, le=MAX_PLAYER_STRIDE, description="Units of wind in every second tick.")] = 0
    drain: Annotated[Amount, Meta(description="Bullets lost every drain_period ticks after the first kill.")] = 0
    drain_period: Annotated[Ticks, Meta(description="Ticks from one drain to the next.")] = 30
    goal: Annotated[Goal | None, Meta(description="Enemies win when one is within r of x, y; given as x, y, r.")] = None
    respawn: Annotated[
        float, Meta(ge=0, le=1000, description="Growth of the delay after which the dead return; 0: never.")
    ] = 0.0
    respawn_distance: Annotated[Amount, Meta(description="Their least distance from the player then.")] = 64

    def __post_init__(self) -> None:
        """Refuse spans that end before they begin, and a march without a goal."""
        for name in ("enemies", "health_packs", "ammo_packs", "traps", "obstacles", "enemy_damage", "blink"):
            low, high = getattr(self, name)
            if low > high:
                raise InvalidInput(f"Setting '{name}' goes from {low} to {high}; the second must not be smaller.")
        if self.behaviour == "march" and self.goal is None:
            raise InvalidInput("Setting 'behaviour': enemies that march need a 'goal', such as 0,0,64.")


SHARED = (
    *("training", "episodes", "before", "share", "episode_seed", "player_health", "player_ammo"),
    *("observation", "use_image", "image_size", "image_colour", "reward", "give_up", "map"),
    *("buffers", "normalised", "frame_skip", "buttons"),
)
"""The settings that all episodes of a trial share: its shape, those of the one player and packs in its WAD, and what
the agent will see and can do."""


def check_shared(usual: DoomSettings, changed: DoomSettings) -> None:
    """Refuse a novelty that changes a setting all episodes of a trial share: it would have no effect.

    Raises:
        InvalidInput: A shared setting is changed.
    """
    for name in SHARED:
        if getattr(changed, name, None) != getattr(usual, name, None):
            raise InvalidInput(
                f"A novelty cannot change '{name}': all episodes of a trial share it. Set it for all: "
                f"--set {name}={getattr(changed, name)}."
            )
