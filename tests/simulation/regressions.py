"""Faults of the server that the simulation has found, with seeds that find them when they are put back.

The seeds are replayed with each ordinary run (`test_simulation.py`). `python -m tests.simulation.mutants` puts each
fault back. Seeds mean other histories when the simulation changes: then the command names the seed that finds a fault
now, which belongs here. A rare fault has none until one is found again.

The file is long because it is a list.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.mutation import Mutation, Regression
from tests.simulation.spread_regressions import FAULTS_BETWEEN_MACHINES

REGRESSIONS: Final = (
    Regression(
        "a call that was stored was answered as not stored, where only its entry in the audit log failed",
        (
            Mutation(
                "no entry is tried again",
                "http/calls/audit.py",
                "for pause_s in _PAUSES_S if status < 400 else ():",
                "for pause_s in ():",
            ),
            Mutation(
                "the call has the error of its entry",
                "http/calls/audit.py",
                "        except DomainError as failure:\n            problem = failure",
                "        except ZeroDivisionError as failure:\n            problem = failure",
            ),
        ),
        "73532b9d",
        3,
    ),
    Regression(
        "trunkline check called a store with an open alarm damaged",
        (
            Mutation(
                "the values of open alarms are read as CBOR",
                "store/backup.py",
                " or not value or (db == keys.EVENTS and keys.is_open_alarm_key(key)):",
                " or not value:",
            ),
        ),
        "101be0c6",
        2,
    ),
    Regression(
        "triggers of inactivity that were saved ahead of the time waited until the clock was there again",
        (
            Mutation(
                "what they count from is not corrected",
                "actors/workflows/flows/stored.py",
                "corrected(before.watches, now_ms)",
                "before.watches",
            ),
        ),
        "cef0437a",
        62,
    ),
    Regression(
        "after the first start a power cut could leave the data directory without its folders",
        (
            Mutation(
                "their names are not synced",
                "store/env.py",
                "                locked.sync()\n",
                "",
            ),
        ),
        "253c5a12",
        13,
    ),
    Regression(
        "contents of deleted files came back by a power cut, and stayed",
        (
            Mutation(
                "their removal is not synced",
                "store/blobs.py",
                "            self._sync_removals()\n",
                "",
            ),
        ),
        "c13ff955",
        128,
    ),
    Regression(
        "a pipelined request had the beginning of the next one in its body",
        (
            Mutation(
                "what has come behind the request before is not looked at",
                "http/wire/exchange_channel.py",
                "        if self.backlog:  # of a body",
                "        if False:  # of a body",
            ),
        ),
        "813b709c",
        45,
    ),
    Regression(
        "a silence was told of twice where the clock was set back and then forward again",
        (
            Mutation(
                "another begin than that which has fired is another silence",
                "actors/fleet/devices/state/silence.py",
                "fired_ms >= began_ms",
                "fired_ms == began_ms",
            ),
        ),
        "073b69d5",
        20009,
    ),
    Regression(
        "a device that reported after the clock was set back was not watched until the clock was there again",
        (
            Mutation(
                "it is looked at when its last report before would be due",
                "actors/fleet/devices/state/silence.py",
                "look_ms = min(due_ms, now_ms + length_ms)",
                "look_ms = due_ms",
            ),
        ),
        "dedb114e",
        13302,
    ),
    Regression(
        "a refused frame of a link was acknowledged when it came again after a frame of the next connection",
        (
            Mutation(
                "what earlier connections have refused is forgotten",
                "actors/fleet/devices/state/head.py",
                " if each > answered and each != n]",
                " if False]",
            ),
        ),
        "bb0d19a2",
        50696,
    ),
    Regression(
        "a file got another byte where the end of its form came in two pieces",
        (
            Mutation(
                "the decoder is given what has come",
                "http/calls/form_data.py",
                "            if found := self._open_end.search(last):",
                "            if (found := self._open_end.search(last)) and not found:",
            ),
        ),
        "f75cc293",
        100002,
    ),
    Regression(
        "a link was told to stay away because of a full disk or a failed commit",
        (
            Mutation(
                "a failed commit is a refusal",
                "http/link/session.py",
                "    return FAILED if isinstance(refusal, Crashed) else NOT_ALLOWED",
                "    return NOT_ALLOWED",
            ),
            Mutation(
                "a full disk is a refusal",
                "http/link/session.py",
                "Overloaded | TooManyRequests | StorageFull | Unanswered):",
                "Overloaded | TooManyRequests | Unanswered):",
            ),
        ),
        "8abf3b58",
        23,
    ),
    Regression(
        "links and MQTT connections were ended for answers that had come while the loop was held up",
        (
            Mutation(
                "deadlines are looked at before what has come is read",
                "http/wire/engine.py",
                "            if not late % 10:",
                "            if True:",
            ),
        ),
        "6513f2be",
        66320,
    ),
    Regression(
        "a token that was revoked while a link was opened kept it open",
        (
            Mutation(
                "the token is not looked at again",
                "http/link/session.py",
                "            else:  # it may have been revoked since the handshake",
                "            elif False:  # it may have been revoked since the handshake",
            ),
        ),
        "2adaf6fd",
        100_341,
    ),
    Regression(
        "an MQTT client was sent a message before its CONNACK",
        (
            Mutation(
                "it is sent at once",
                "http/mqtt/session.py",
                "        if self._is_connected:\n            self.send_message(",
                "        if True:\n            self.send_message(",
            ),
        ),
        "26d10340",
        35,
    ),
    Regression(
        "a file was answered with 500 whose pieces came while the loop was held up for longer than their time-out",
        (
            Mutation(
                "the wait may be for a negative time",
                "http/calls/body_stream.py",
                "await until(began_s + self._left_s, self._receive)",
                "trio.move_on_after(self._left_s) and await until(began_s + self._left_s, self._receive)",
            ),
        ),
        "aa20800c",
        64465,
    ),
    Regression(
        "a stored frame of a link that came again was refused, where it had shared a commit that failed",
        (
            Mutation(
                "frames of backlogs are refused with the commit",
                "http/link/session.py",
                "        for_room = isinstance(refusal, TooManyRequests | Overloaded)\n",
                "        for_room = isinstance(refusal, TooManyRequests | Overloaded)\n"
                "        if not for_room:\n            return False\n",
            ),
        ),
        "15fee525",
    ),
    Regression(
        "a client was ended for a deadline that passed while the loop was held up twice in a row",
        (
            Mutation(
                "the second time counts",
                "http/wire/engine.py",
                "            if not late % 10:",
                "            if not late % 2:",
            ),
        ),
        "0dc3971b",
        66320,
    ),
    Regression(
        "an application whose turn had failed was not given to its new owner, and the call said that it is of another",
        (
            Mutation(
                "a failure counts as a refusal",
                "actors/platform/transfer.py",
                "if isinstance(answer, DomainError) and not isinstance(answer, _NOT_OWNED):",
                "if False:",
                "200001..201000",
            ),
        ),
        "1a36fe9a",
    ),
    Regression(
        "an access whose end a process had stored, and told nobody of before it was killed, went on in the others",
        (
            Mutation(
                "a process that starts tells of nothing",
                "actors/boot.py",
                "        system.store.partitions.numbers.begin()\n",
                "",
            ),
        ),
        "287ce72c",
        400_039,
    ),
    Regression(
        "results of jobs of an application that was moved were lost when the power was cut",
        (
            Mutation(
                "their names are not synced",
                "store/blobs.py",
                "                self._take(path)\n            sync_directory(self._path)\n",
                "                self._take(path)\n",
            ),
        ),
        "f9201501",
        400_134,
    ),
    Regression(
        "a workflow was not created, with 500, where its application was just moved to another process",
        (
            Mutation(
                "triggers cannot be sent to other processes",
                "actors/workflows/flows/triggers.py",
                "        globals()[made.__name__] = made  #",
                "        pass  #",
                "500501..501500",
            ),
        ),
        "124bbe75",
    ),
    Regression(
        "an application was counted that was deleted after the process that was to take it had died with its copy",
        (
            Mutation(
                "the copy counts when the application is not there any more",
                "store/partitioned.py",
                "            if is_given(there, id, number):",
                "            if Snapshot.get(there, keys.RECORDS, record) is None:",
            ),
            Mutation(
                "and is where the application is",
                "actors/core/records/places.py",
                "            if belongs(self._partitions.snapshot_of, id, key, source, number):",
                "            if True:",
            ),
        ),
        "c4c0afcf",
        502_486,
    ),
    Regression(
        "a door that was ended while it started ended with a traceback",
        (
            Mutation(
                "it opens a channel all the same",
                "http/processes/passage.py",
                "            await trio.lowlevel.checkpoint_if_cancelled()  # then",
                "            # then",
            ),
        ),
        "5939999a",
        503_152,
    ),
    Regression(
        "an upload over HTTP/2 lost a piece in its middle, where the loop was held up while its window was opened",
        (
            Mutation(
                "the pieces are taken before the window is opened",
                "http/wire/http2_exchange.py",
                "        if self._unacknowledged_bytes:\n",
                "        taken, self._body = self._body, []\n        if self._unacknowledged_bytes:\n",
            ),
            Mutation(
                "and are returned behind it",
                "http/wire/http2_exchange.py",
                '        body = b"".join(self._body[:count])\n        del self._body[:count]\n',
                '        body = b"".join(taken)\n',
            ),
        ),
        "18f9d6a9",
        100_059,
    ),
    Regression(
        "an MQTT client that was not connected yet was told by CONNACK what only DISCONNECT can say",
        (
            Mutation(
                "the code is not changed",
                "http/mqtt/session.py",
                "said_in(packets.CONNACK, code)",
                "code",
            ),
        ),
        "736f7aea",
        700_066,
    ),
    Regression(
        "a download that was opened kept its place for ever, where its answer was refused as it may be old",
        (
            Mutation(
                "what was opened is not closed",
                "http/calls/request.py",
                "        if body is not None:\n            body.close()\n        raise",
                "        raise",
                "700001..700500",
            ),
        ),
        "bdc864a0",
    ),
    Regression(
        "a machine that was cut off refused what was right by the data of the one that served",
        (
            Mutation(
                "a refusal is told whatever its age",
                "actors/core/runtime/system.py",
                "            return doubt\n",
                "            return refusal\n",
            ),
        ),
        "21963fec",
        700_182,
    ),
    Regression(
        "a door that had something to send in the turn in which it stopped ended with an error",
        (
            Mutation(
                "connections without a task find the nursery closed",
                "http/processes/channel.py",
                "in [*self._open]:\n                        connection.wake()",
                "in ():\n                        connection.wake()",
            ),
        ),
        "e66470a8",
        505_950,
    ),
    *FAULTS_BETWEEN_MACHINES,
)
