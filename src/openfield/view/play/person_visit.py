"""A person's visit: consent, instructions, practice, trials, questions and the code in the end.

Where a person is in the study is read from the record: a page that is opened again goes on from there.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from openfield.errors import JournalError, OpenfieldError
from openfield.view.play.browser_channel import BrowserChannel, Gone
from openfield.view.play.messages import Go, QuestionAnswers
from openfield.view.play.people_study import PeopleStudy, Person
from openfield.view.play.play_process import ProcessLost

CONSENT, INSTRUCTIONS, PRACTICE, ANSWERS, DONE = "consent", "instructions", "practice", "answers", "done"
"""What is recorded of a person: the steps of a visit that are behind them."""


class PersonVisit:
    """One connection of a person, until they are done or leave."""

    def __init__(self, study: PeopleStudy, person: Person, channel: BrowserChannel) -> None:
        self._study, self._person, self._channel = study, person, channel
        self._people = study.people

    async def attend(self) -> None:
        """Lead the person through what is left of their study."""
        study, person = self._study, self._person
        try:
            await study.work(partial(study.enter, person))
            known = await study.work(partial(study.facts_about, person))
            await self._introduce(known)
            await self._play_trials()
            await self._ask_questions(known)
            await study.work(partial(self._note_done, known))
            await self._channel.show(DONE, text=self._people.thanks, code=self._people.completion_code)
            study.finish(person)
        except Gone:
            pass
        except OpenfieldError as error:
            kind = "The record cannot be written." if isinstance(error, JournalError) else "This cannot go on."
            await self._say_failure(f"{kind} Please tell the people who sent you the link.")
            raise

    async def _say_failure(self, text: str) -> None:
        with suppress(Gone):
            await self._channel.show("failed", text=text)

    async def _introduce(self, known: dict[str, Any]) -> None:
        """Show what comes before the trials, each once."""
        texts = {CONSENT: self._people.consent, INSTRUCTIONS: self._people.instructions}
        for step, text in texts.items():
            if text and step not in known:
                await self._channel.show(step, text=text, title=self._people.title)
                await self._wait_for_go()
                await self._study.work(partial(self._study.note, self._person, step, True))
        if PRACTICE not in known:
            await self._practise()

    async def _practise(self) -> None:
        study = self._study
        while True:
            if not await study.open_practice(self._person):
                return
            try:
                await study.play(self._person, self._channel, practice=True)
                break
            except ProcessLost:
                await self._channel.show("between", title="The game stopped.", text="Practice begins anew.")
                await self._wait_for_go()
        await study.work(partial(study.note, self._person, PRACTICE, True))
        await self._channel.show("between", title="That was practice.", text="From now on it counts.")
        await self._wait_for_go()

    async def _play_trials(self) -> None:
        study, person = self._study, self._person
        while (trial := await study.open_next(person)) is not None:
            try:
                await study.play(person, self._channel)
            except JournalError:
                raise
            except OpenfieldError as error:
                goes_on = isinstance(error, ProcessLost) and await study.recover(person, error)
                title = "The game stopped." if goes_on else "The game failed."
                text = "It goes on where you were." if goes_on else "This was not your fault."
                await self._channel.show("between", title=title, text=text)
                await self._wait_for_go()
                continue
            if trial.place + 1 < len(person.cells):
                done = f"{trial.place + 1} of {len(person.cells)} done"
                await self._channel.show("between", title=done, text="Your world begins anew.")
                await self._wait_for_go()

    async def _ask_questions(self, known: dict[str, Any]) -> None:
        questions = self._people.questions
        if not questions or ANSWERS in known:
            return
        await self._channel.show("questions", title=self._people.title, questions=questions)
        while True:
            message = await self._channel.receive()
            given = message.answers if isinstance(message, QuestionAnswers) else {}
            wrong = [each.text for each in questions if not each.check(given.get(each.name, ""))]
            if isinstance(message, QuestionAnswers) and not wrong and given.keys() <= {each.name for each in questions}:
                break
            await self._channel.refuse(f"Please answer: {wrong[0]}" if wrong else "This cannot be done now.")
        await self._study.work(partial(self._study.note, self._person, ANSWERS, given))

    def _note_done(self, known: dict[str, Any]) -> None:
        if DONE not in known and not self._people.is_bare:
            self._study.note(self._person, DONE, True)

    async def _wait_for_go(self) -> None:
        while not isinstance(await self._channel.receive(), Go):
            await self._channel.refuse("Press the button to go on.")
