# SPDX-License-Identifier: Apache-2.0
"""A server of S3 for reading: objects with entity tags and ranges, lists in pages, and signatures of version 4, which it recomputes from
the request as https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html says.
"""

from __future__ import annotations

import hashlib
import hmac
import urllib.parse
from http.server import BaseHTTPRequestHandler
from xml.sax.saxutils import escape

from file_server import FileServer

REGION = "eu-test-1"
KEY_ID = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#: As ~/.aws/credentials has them.
CREDENTIALS = f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key={SECRET}\nregion = {REGION}\n"
EMPTY = hashlib.sha256(b"").hexdigest()


def hmac_of(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def quoted(text: str, safe: str = "") -> str:
    return urllib.parse.quote(text, safe=f"-._~{safe}")


class S3Server(FileServer):
    """Serves `files` by /BUCKET/KEY; buckets in `public` without a signature. A page has `page` keys."""

    def __init__(self) -> None:
        super().__init__()
        self.public: set[str] = set()
        self.page = 2
        self.session: str | None = None
        self.lists = 0

    def answer(self, handler: BaseHTTPRequestHandler, path: str) -> tuple[int, dict[str, str], bytes, int]:
        path = urllib.parse.unquote(path)
        bucket = path.split("/")[1]
        why = None if bucket in self.public else self.refusal(handler)
        if why is not None:
            return 403, {}, f"<Error><Code>AccessDenied</Code><Message>{why}</Message></Error>".encode(), 0
        if path.strip("/") == bucket:
            return 200, {}, self.list(bucket, dict(urllib.parse.parse_qsl(handler.path.partition("?")[2]))), 0
        return super().answer(handler, path)

    def list(self, bucket: str, query: dict[str, str]) -> bytes:
        assert query["list-type"] == "2", query
        self.lists += 1
        prefix = query.get("prefix", "")
        all_keys = (path.removeprefix(f"/{bucket}/") for path in self.files if path.startswith(f"/{bucket}/"))
        keys = sorted(key for key in all_keys if key.startswith(prefix))
        rest = [key for key in keys if key > query.get("continuation-token", "")]
        page = rest[: self.page]
        rows = ["<IsTruncated>" + ("true" if len(rest) > len(page) else "false") + "</IsTruncated>", "<EncodingType>url</EncodingType>"]
        if len(rest) > len(page):
            rows.append(f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>")
        for key in page:
            content = self.files[f"/{bucket}/{key}"]
            tag = hashlib.md5(content).hexdigest()  # noqa: S324  (as servers of S3 do)
            shown = urllib.parse.quote_plus(key, safe="/-._*")
            rows.append(f"<Contents><Key>{shown}</Key><ETag>&quot;{tag}&quot;</ETag><Size>{len(content)}</Size></Contents>")
        return ('<?xml version="1.0"?><ListBucketResult>' + "".join(rows) + "</ListBucketResult>").encode()

    def refusal(self, handler: BaseHTTPRequestHandler) -> str | None:
        """Why the signature of a request is none; None: it is sound."""
        scheme, _, rest = handler.headers.get("Authorization", "").partition(" ")
        parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
        if scheme != "AWS4-HMAC-SHA256" or "Credential" not in parts:
            return "Access Denied"
        key_id, day, region, service, end = parts["Credential"].split("/")
        names = parts["SignedHeaders"].split(";")
        if (key_id, region, service, end) != (KEY_ID, REGION, "s3", "aws4_request") or not {"host", "x-amz-date"} <= set(names):
            return "The credential is wrong"
        if self.session is not None and ("x-amz-security-token" not in names or handler.headers["x-amz-security-token"] != self.session):
            return "The session is wrong"
        path, _, query = handler.path.partition("?")
        pairs = sorted((quoted(name), quoted(value)) for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical = "\n".join([
            handler.command, quoted(urllib.parse.unquote(path), "/"), "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{' '.join(handler.headers[name].split())}" for name in names), "",
            parts["SignedHeaders"], handler.headers.get("x-amz-content-sha256", EMPTY),
        ])  # fmt: skip
        scope = f"{day}/{region}/{service}/{end}"
        text = "\n".join([scheme, handler.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = hmac_of(hmac_of(hmac_of(hmac_of(f"AWS4{SECRET}".encode(), day), region), service), end)
        sound = hmac.compare_digest(hmac_of(key, text).hex(), parts["Signature"])
        return None if sound else "The request signature we calculated does not match"
