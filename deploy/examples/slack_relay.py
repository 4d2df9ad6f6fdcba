# SPDX-License-Identifier: Apache-2.0
"""Forward deliveries of gpuctl to Slack, or to Mattermost, which takes the same: SLACK_URL is the address of an incoming webhook there.

SLACK_URL=https://hooks.slack.com/services/... SECRET_FILE=secret python3 slack_relay.py
"""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from webhook_relay import sentence, serve


def tell(document: dict[str, Any]) -> None:
    body = json.dumps({"text": sentence(document)}).encode()
    request = urllib.request.Request(os.environ["SLACK_URL"], body, {"Content-Type": "application/json"})  # noqa: S310  (the operator names it)
    with urllib.request.urlopen(request, timeout=8):  # noqa: S310
        pass


if __name__ == "__main__":
    serve(tell)
