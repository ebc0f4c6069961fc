"""Ways to break what is spoken on connections on purpose: HTTP/1.1, the device link, MQTT (`mutations.py`)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutation import Mutation

MISTAKES_ON_CONNECTIONS: Final = (
    Mutation(
        "an answer of HTTP/1.1 is sent to the next request of its connection",
        "http/wire/http1.py",
        "        exchange = self._parser.requests.popleft()",
        "        exchange = self._parser.requests.pop()",
    ),
    Mutation(
        "a frame of a link is acknowledged before its commit",
        "http/link/session.py",
        "            self._turns.append((frame, turn))",
        "            self._stored([frame], None)",
    ),
    Mutation(
        "a frame of a link that is sent again is stored again",
        "actors/fleet/devices/state/head.py",
        "        return session == self.session and n <= (self.backlog_n if backlog else self.n)",
        "        return session == self.session and n < (self.backlog_n if backlog else self.n)",
    ),
    Mutation(
        "which frames of a link are stored is not stored with them",
        "actors/fleet/devices/actor/actor.py",
        "        if self._head_deferred:\n            self.writes().report_item",
        "        if False:\n            self.writes().report_item",
    ),
    Mutation(
        "a link is not given the commands that came while it was away",
        "actors/fleet/devices/commands/links.py",
        "        self.behind: dict[bytes, None] = {device: None}",
        "        self.behind: dict[bytes, None] = {}",
    ),
    Mutation(
        "that a command is acknowledged is known in memory only",
        "actors/fleet/devices/actor/commands.py",
        "        self._save_waiting()\n        self.after_commit(counted)",
        "        self.after_commit(counted)",
    ),
    Mutation(
        "a link stays open when its key is revoked",
        "http/link/session.py",
        "        principal.watchers[self._check_again] = None",
        "        principal.watchers.pop(self._check_again, None)",
    ),
    Mutation(
        "an older link stays open beside the newer",
        "actors/fleet/devices/commands/links.py",
        "                older.session.end(LinkEnd.SUPERSEDED)",
        "                pass",
    ),
    Mutation(
        "a message of MQTT is acknowledged before its commit",
        "http/mqtt/publishing.py",
        "            session.acknowledgements.after(turn, partial(self._answer, topic, packet, turn))",
        "            session.acknowledgements.at_once(self._answer(topic, packet, turn, None))",
    ),
    Mutation(
        "that a message with QoS 2 was received is forgotten with its connection",
        "http/mqtt/publishing.py",
        "        if packet.qos == 2 and self._session.session is not None:",
        "        if False:",
    ),
    Mutation(
        "a message with QoS 2 is released before it is stored that the client has it",
        "http/mqtt/outgoing.py",
        "        found.received()\n        return False",
        "        return True",
    ),
    Mutation(
        "the oldest message that waits for a session is dropped",
        "http/mqtt/session_queue.py",
        "            for number, entry, publication in page:",
        "            for number, entry, publication in page[len(page) > 1 :]:",
    ),
    Mutation(
        "what waits for a session is sent from the newest on",
        "http/mqtt/session_queue.py",
        "            for number, entry, publication in page:",
        "            for number, entry, publication in page[::-1]:",
    ),
    Mutation(
        "an acknowledgement removes all messages that wait for the session before it",
        "actors/data/topics/session_actor.py",
        "        if self._of(message.session) is not None:\n"
        "            stage_removal(self, message.session, message.numbers)",
        "        if self._of(message.session) is not None:\n"
        "            last = max(message.numbers)\n"
        "            stage_removal(self, message.session, range(max(1, last - 1), last + 1))",
    ),
    Mutation(
        "a session goes on after a clean start",
        "actors/data/topics/session_actor.py",
        "            if message.clean or (",
        "            if (",
    ),
    Mutation(
        "a subscription lasts as long as its connection",
        "http/mqtt/subscribing.py",
        "        if session.session is None or not (added or removed):",
        "        if True:",
    ),
    Mutation(
        "a connection that was taken over stays open",
        "actors/data/topics/broker.py",
        "            older.end(ClientEnd.TAKEN_OVER)",
        "            pass",
    ),
    Mutation(
        "an empty message leaves the retained one",
        "actors/data/topics/retained.py",
        "        actor.delete(keys.MESSAGES, key)",
        "        pass",
    ),
    Mutation(
        "a subscription is sent the retained messages of one topic only",
        "actors/data/topics/retained.py",
        "            yield bytes(key), publication",
        "            yield bytes(key), publication\n            return",
    ),
    Mutation(
        "what waits for a shared subscription is not taken by who comes",
        "http/mqtt/subscribing.py",
        "                queue.take(group, options)",
        "                pass",
    ),
    Mutation(
        "a will is dropped where the connection ends without a goodbye",
        "actors/data/topics/actor.py",
        "        if message.publish_will:\n            self._publish_will(will)",
        "        if message.publish_will and will.delay_s:\n            self._publish_will(will)",
    ),
    Mutation(
        "a response over HTTP/2 is not told that its window has opened",
        "http/wire/http2.py",
        "        elif isinstance(event, h2.events.WindowUpdated):\n            self._wake_senders()",
        "        elif isinstance(event, h2.events.WindowUpdated):\n            pass",
    ),
    Mutation(
        "a request over HTTP/2 counts as open when it is over",
        "http/wire/http2.py",
        "        del self._exchanges[exchange.stream_id]",
        "        pass",
    ),
    Mutation(
        "a connection that has ended keeps its place",
        "http/wire/engine.py",
        "            self.places.leave(place)\n",
        "            pass\n",
    ),
    Mutation(
        "the bytes of a backlog count as waiting when its turn has come",
        "actors/fleet/devices/state/backlog.py",
        "        self.waiting_bytes -= call.size_bytes\n",
        "",
    ),
)
