"""The agent that answers from result files."""

from __future__ import annotations

from pathlib import Path

from openfield.domains.ond.agents.precomputed import PrecomputedAgent
from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.client.step_player import StepOptions, StepPlayer
from openfield.domains.ond.client.workflow import SessionOptions
from support.ond.protocol import TEST
from support.ond.serving import play_session


def test_precomputed_results_are_posted_round_by_round(served: RestClient, tmp_path: Path) -> None:
    ids = [f"{TEST}-{at}.png" for at in range(30)]
    (tmp_path / f"{TEST}_mine_detection.csv").write_text("".join(f"{key},0.3\n" for key in ids[::-1]))
    (tmp_path / f"{TEST}_mine_classification.csv").write_text("".join(f"{key},0,1,0,0,0\n" for key in ids))
    player = StepPlayer(
        "mine", PrecomputedAgent(str(tmp_path), "mine"), options=StepOptions(skip=("CreateFeedbackInstance",))
    )
    scores = play_session(served, player, SessionOptions(tests=(TEST,)))[TEST]
    sheet = (tmp_path / f"data/OND/image_classification/{TEST}_single_df.csv").read_text()
    assert scores["m_acc"]["full_top1"] == round(sheet.count(",0,1\n") / 30, 5)
