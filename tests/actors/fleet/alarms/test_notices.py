"""Notices of alarms: who is told, step after step, by mail and by calls, until somebody acknowledges the alarm."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.actors.event_house import Events
from tests.actors.fleet.alarms.alarm_house import ABOVE_30, BY, Alarms, Json
from tests.actors.house import START_MS, House, running_again, running_house
from tests.e2e.receivers import CallbackReceiver, kept_messages, listening
from trunkline.actors.core.outgoing.mail_rate import MailRate
from trunkline.actors.core.records.messages import CreateRecord
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.events.alarm_sender import mail_id
from trunkline.actors.fleet.alarms.groups import ALARM_GROUPS, AlarmGroupPost
from trunkline.actors.fleet.alarms.notices import check_notices, quiet_until
from trunkline.limits.table import Limits

STEPS: list[Json] = [
    {"afterSeconds": 0, "emails": ["night@example.com"]},
    {"afterSeconds": 600, "emails": ["boss@example.com", "other@example.com"]},
]


def told(data_dir: Path) -> list[tuple[str, str]]:
    """To whom mails went, in the order of their steps and addresses, and their subjects."""
    mails = sorted(
        kept_messages(data_dir), key=lambda mail: (mail["Message-ID"].rpartition("-")[0], str(mail["To"]))
    )
    return [(str(mail["To"]), str(mail["Subject"])) for mail in mails]


async def warm(house: House, **notify: Any) -> tuple[Alarms, bytes, bytes]:
    """A rule that tells people, a device that is too warm, and the event of its alarm."""
    alarms = Alarms(house)
    rule = await alarms.rule(ABOVE_30, notify={"steps": STEPS, **notify})
    pump = await house.device({"t": "number"})
    await alarms.report(pump, 31)
    (alarm,) = await alarms.open()
    assert alarm["alarmRuleId"] == rule.hex()
    return alarms, pump, bytes.fromhex(alarm["eventId"])


async def test_steps_follow_each_other_until_the_alarm_is_acknowledged(tmp_path: Path) -> None:
    data = tmp_path / "d"
    async with running_house(data) as house:
        alarms, _, event = await warm(house, repeatSeconds=3600)
        first = ("night@example.com", "[warning] too warm: pump")
        assert told(data) == [first]
        (mail,) = kept_messages(data)
        assert "t is above 30: it was 31." in mail.get_content()
        assert f"/events/{event.hex()}" in mail.get_content()
        await alarms.settled(599_000)
        assert len(told(data)) == 1
        await alarms.settled(600_000)
        assert [to for to, _ in told(data)] == ["night@example.com", "boss@example.com", "other@example.com"]
        await alarms.settled(4_200_001)
        assert len(told(data)) == 6
        await Events(house).patch(event, state="acknowledged")
        await alarms.settled(9_000_000)
        assert len(told(data)) == 6


async def test_a_step_that_is_due_while_the_server_is_down_follows_its_start_and_none_is_sent_twice(
    tmp_path: Path,
) -> None:
    data = tmp_path / "d"
    async with running_house(data) as house:
        await warm(house)
        assert len(told(data)) == 1
    async with running_again(data, house, 700_000) as again:
        alarms = Alarms(again)
        await alarms.settled()
        assert len(told(data)) == 3
    async with running_again(data, house, 9_000_000) as again:
        await Alarms(again).settled()
        assert len(told(data)) == 3


async def test_the_end_is_told_to_those_who_were_told_of_the_beginning(tmp_path: Path) -> None:
    data = tmp_path / "d"
    async with running_house(data) as house:
        alarms, pump, event = await warm(house, tellsEnd=True)
        await Events(house).patch(event, state="acknowledged")
        await alarms.settled(700_000)
        await alarms.report(pump, 20)
        await alarms.settled()
        assert told(data) == [
            ("night@example.com", "[warning] too warm: pump"),
            ("night@example.com", "Ended: [warning] too warm: pump"),
        ]


def test_a_mail_is_known_by_its_receiver_whoever_was_reached_before() -> None:
    """A place among those who are left would be another one at the next attempt, and that of somebody else's mail."""
    first = [mail_id(bytes(12), 0, to) for to in ("a@example.com", "b@example.com")]
    assert first == [mail_id(bytes(12), 0, to) for to in ("a@example.com", "b@example.com")]
    assert len({*first, mail_id(bytes(12), 1, "a@example.com"), mail_id(b"1" * 12, 0, "a@example.com")}) == 4


async def test_nobody_is_told_any_more_when_the_rule_is_gone(tmp_path: Path) -> None:
    data = tmp_path / "d"
    async with running_house(data) as house:
        alarms, _, _ = await warm(house, tellsEnd=True)
        await alarms.delete(bytes.fromhex((await alarms.open())[0]["alarmRuleId"]))
        await alarms.settled(700_000)
        assert len(told(data)) == 1


async def test_a_call_that_is_answered_with_nonsense_keeps_nobody_else_from_being_told(
    tmp_path: Path,
) -> None:
    data = tmp_path / "d"
    async with (
        listening(CallbackReceiver(lambda _: "302 Found\r\nlocation: javascript:alert(1)")) as receiver,
        running_house(data, callback_private_networks=True) as house,
    ):
        alarms, _, event = await warm(
            house, steps=[{"url": receiver.url, "emails": ["night@example.com"]}, STEPS[1]]
        )
        for seconds in (10, 30, 60, 120, 900, 901):
            await alarms.settled(1000 * seconds)
        assert [to for to, _ in told(data)] == ["night@example.com", "boss@example.com", "other@example.com"]
        assert len(await receiver.number(Limits().outgoing_attempts_max)) == len(receiver)
        (update,) = (await Events(house).get(event))["updates"]
        assert "was not told of this alarm: 127.0.0.1 answered with 302" in update["comment"]


async def test_calls_are_repeated_with_their_key_and_the_event_says_whom_they_did_not_reach(
    tmp_path: Path,
) -> None:
    answers = ["500 No", "200 OK"] + ["500 No"] * 5
    async with (
        listening(CallbackReceiver(answers.__getitem__)) as receiver,
        running_house(tmp_path / "d", callback_private_networks=True) as house,
    ):
        alarms, log = Alarms(house), Events(house)
        rule = await alarms.rule(ABOVE_30, notify={"steps": [{"url": f"{receiver.url}?token=private"}]})
        pump = await house.device({"t": "number"})
        await alarms.report(pump, 31)
        (alarm,) = await alarms.open()
        await alarms.settled(60_000)
        first, second = await receiver.number(2)
        assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
        assert second.body == {
            "type": "alarm",
            "state": "open",
            "applicationId": house.application.hex(),
            "eventId": alarm["eventId"],
            "alarmRuleId": rule.hex(),
            "alarmRuleName": "too warm",
            "deviceId": pump.hex(),
            "deviceName": "pump",
            "level": "warning",
            "subject": "too warm: pump",
            "message": "t is above 30: it was 31.",
            "openedAt": alarm["openedAt"],
            "number": 0,
        }
        await alarms.report(pump, 20)
        await alarms.report(pump, 31)
        for minutes in range(2, 9):
            await alarms.settled(minutes * 600_000)
        event = await log.get(bytes.fromhex((await alarms.open())[0]["eventId"]))
        assert len(receiver) == 7
        comment = f"{receiver.url} was not told of this alarm: 127.0.0.1 answered with 500"
        assert event["updates"][-1]["comment"].startswith(comment)


async def test_quiet_hours_put_notices_off_until_they_are_over(tmp_path: Path) -> None:
    data = tmp_path / "d"
    now = datetime.fromtimestamp(START_MS / 1000, UTC)
    hour = (now.hour + 2) % 24
    async with running_house(data) as house:
        quiet = {"start": f"{now.hour:02}:00", "end": f"{hour:02}:00"}
        alarms, _, _ = await warm(house, quietHours=quiet)
        assert told(data) == []
        over_ms = 2 * 3_600_000 - (now.minute * 60 + now.second) * 1000
        await alarms.settled(over_ms - 1_000)
        assert told(data) == []
        await alarms.settled(over_ms)
        assert told(data)[0][0] == "night@example.com"


def test_quiet_hours_go_over_midnight_and_follow_their_time_zone() -> None:
    def over(at: str, **quiet: str) -> str | None:
        moment = datetime.fromisoformat(at + ":00+00:00").timestamp() * 1000
        found = quiet_until({"quietHours": {"timeZone": "UTC", **quiet}}, round(moment))
        return None if found is None else f"{datetime.fromtimestamp(found / 1000, UTC):%d %H:%M}"

    night = {"start": "22:00", "end": "06:00"}
    assert over("2026-01-10T21:59", **night) is None
    assert over("2026-01-10T22:00", **night) == "11 06:00"
    assert over("2026-01-11T05:59", **night) == "11 06:00"
    assert over("2026-01-11T06:00", **night) is None
    assert over("2026-01-11T05:30", timeZone="Europe/Berlin", **night) is None
    assert quiet_until({}, 0) is None


@pytest.mark.parametrize(
    ("notify", "fault"),
    [
        ({"steps": [{"emails": [], "afterSeconds": 0}]}, "tells nobody"),
        ({"steps": [{**STEPS[0], "afterSeconds": 600}, STEPS[1]]}, r"steps\[1\].afterSeconds: must be more"),
        ({"steps": [{"emails": [], "afterSeconds": 0, "url": "http://localhost/a"}]}, r"steps\[0\].url"),
        (
            {"steps": STEPS, "quietHours": {"start": "1", "end": "2", "timeZone": "Mars/Base"}},
            "quietHours.timeZone: Mars/Base is not known",
        ),
    ],
)
def test_notices_say_what_they_lack(notify: Json, fault: str) -> None:
    with pytest.raises(Invalid, match=fault):
        check_notices(notify, lambda _url: False)


async def test_a_notice_to_many_counts_as_several(tmp_path: Path) -> None:
    limits = replace(Limits.off(), alarm_notices_max=2, alarm_notice_interval_s=3600)
    async with running_house(tmp_path / "d", limits=limits) as house:
        alarms = Alarms(house)
        body = AlarmGroupPost(name="all", emails=[f"{number}@example.com" for number in range(12)])
        message = CreateRecord(resource=ALARM_GROUPS.name, body=body, by=BY)
        group = (await house.system.ask(alarms.ref, message)).value.id
        await alarms.rule(ABOVE_30, notify={"steps": [{"groupIds": [group.hex()]}]})
        devices = [await house.device({"t": "number"}) for _ in range(2)]
        for device in devices:
            await alarms.report(device, 31)
            await alarms.settled()
        assert len(told(tmp_path / "d")) == 12, "the second notice waits"


def test_more_messages_than_may_be_sent_at_once_take_all_that_may_be() -> None:
    rate = MailRate(3, 10)
    assert rate.take(b"a", 0, 2) == 0
    assert rate.take(b"a", 0, 2) == 10
    assert rate.take(b"a", 10, 2) == 0
    assert rate.take(b"b", 0, 99) == 0
    assert rate.take(b"b", 0) == 10
