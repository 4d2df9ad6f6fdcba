# SPDX-License-Identifier: Apache-2.0
"""Forward deliveries of gpuctl as e-mail, to the owner of the job or to MAIL_TO.

SMTP=mail.example.com:25 MAIL_FROM=gpuctl@example.com MAIL_DOMAIN=example.com SECRET_FILE=secret python3 email_relay.py

Without MAIL_TO the owner "ann" gets it at ann@MAIL_DOMAIN. SMTP_USER and SMTP_PASSWORD log in, over TLS.
"""

from __future__ import annotations

import email.message
import json
import os
import smtplib
from typing import Any

from webhook_relay import sentence, serve


def tell(document: dict[str, Any]) -> None:
    owner = document["job"]["owner"] if document["job"] else "postmaster"
    message = email.message.EmailMessage()
    message["From"] = os.environ["MAIL_FROM"]
    message["To"] = os.environ.get("MAIL_TO") or f"{owner}@{os.environ['MAIL_DOMAIN']}"
    message["Subject"] = sentence(document).split(" - ")[0]
    message.set_content(f"{sentence(document)}\n\n{json.dumps(document, indent=2)}\n")
    host, _, port = os.environ["SMTP"].partition(":")
    with smtplib.SMTP(host, int(port or 25), timeout=8) as server:
        if "SMTP_USER" in os.environ:
            server.starttls()
            server.login(os.environ["SMTP_USER"], os.environ["SMTP_PASSWORD"])
        server.send_message(message)


if __name__ == "__main__":
    serve(tell)
