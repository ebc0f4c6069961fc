"""How many mails workflows send."""

from __future__ import annotations

from trunkline.actors.core.outgoing.mail_rate import MailRate
from trunkline.limits.table import Limits


class FlowMails(MailRate):
    """The mails of each workflow. A component of the system."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits.flow_mails_max, limits.flow_mail_interval_s)
