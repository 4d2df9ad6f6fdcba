# SPDX-License-Identifier: Apache-2.0
"""The contract as a table of tests: every operation of openapi.yaml, requests made from its schemas, and a check of what comes back.

Requests follow from the schemas alone, so an operation that is added to the contract is tested without a line here.
"""

from __future__ import annotations

import functools
import http.client
import json
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import yaml

from harness import ROOT, Api

METHODS = ("get", "put", "post", "patch", "delete", "head")

#: What fits the patterns of the contract.
FITTING = {
    "^[a-z2-7]{16}$": "aaaaaaaaaaaaaaaa",
    "^[a-z2-7]{16}(\\.[0-9]{1,6})?$": "aaaaaaaaaaaaaaaa",
    "^[0-9a-f]{64}$": "0" * 64,
    "^[0-9a-z]+$": "0",  # of a wait: none
    "^/": "/tmp",
    "date-time": "2026-11-21T09:30:00Z",
}


def load() -> Any:
    return yaml.safe_load((ROOT / "proto" / "openapi.yaml").read_text())


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    document: dict[str, Any] = field(hash=False, compare=False)
    parameters: list[dict[str, Any]] = field(hash=False, compare=False)

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


class Contract:
    """The contract with its references followed."""

    def __init__(self, document: Any):
        self.document = document

    def follow(self, part: Any) -> Any:
        while isinstance(part, dict) and "$ref" in part:
            found = self.document
            for name in part["$ref"].removeprefix("#/").split("/"):
                found = found[name.replace("~1", "/")]
            part = found
        return part

    @functools.cached_property
    def operations(self) -> list[Operation]:
        made = []
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    parameters = [self.follow(p) for p in [*item.get("parameters", []), *item[method].get("parameters", [])]]
                    made.append(Operation(method, path, item[method], parameters))
        return made

    def example(self, schema: Any) -> Any:
        """One plausible value."""
        schema = self.follow(schema)
        for word in ("const", "default"):
            if word in schema:
                return schema[word]
        for word in ("examples", "enum"):
            if word in schema:
                return schema[word][0]
        for word in ("oneOf", "allOf"):
            if word in schema and "type" not in schema:
                return self.example(schema[word][0])
        kinds = schema.get("type", "string")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        if kind == "object":
            known = schema.get("properties", {})
            return {name: self.example(known[name]) for name in schema.get("required", []) if name in known}
        if kind == "array":
            return [self.example(schema["items"])] if "items" in schema else []
        if kind in ("integer", "number"):
            return schema.get("minimum", 0)
        return {"boolean": False, "null": None}.get(kind, FITTING.get(schema.get("pattern") or schema.get("format"), "x1"))

    def bodies(self, operation: Operation) -> Iterator[Any]:
        """Plausible documents: none, each member null and of other types, an empty one, the least and the most."""
        body = self.follow(operation.document.get("requestBody"))
        yield None
        schema = self.follow(body["content"].get("application/json", {}).get("schema")) if body else None
        if not schema:
            return
        known = dict(schema.get("properties", {}))
        for part in schema.get("allOf", []):
            known |= self.follow(part).get("properties", {})
        least = self.example(schema)
        others: list[Any] = [None, 1.0, 1.5, "", [], {"x": 1}]
        for name in known:
            for value in others:
                yield {**least, name: value}
        yield {}
        yield least
        yield {name: self.example(part) for name, part in known.items()}

    def queries(self, operation: Operation) -> Iterator[str]:
        """None, and each parameter by itself with a plausible value, an empty one, and one that is none."""
        least = {p["name"]: self.example(p["schema"]) for p in operation.parameters if p["in"] == "query" and p.get("required")}
        yield urllib.parse.urlencode(least)
        for parameter in operation.parameters:
            if parameter["in"] == "query":
                value = self.example(parameter["schema"])
                for said in (value[0] if isinstance(value, list) else value, "", "-1", "%", "x" * 1100):
                    yield urllib.parse.urlencode({**least, parameter["name"]: said})

    def media(self, operation: Operation, status: int) -> dict[str, Any]:
        """The content of what is documented for a status."""
        responses = operation.document["responses"]
        answer = responses.get(str(status), responses.get("default"))
        assert answer is not None, f"{operation}: {status} is not documented"
        content: dict[str, Any] = self.follow(answer).get("content", {})
        return content

    @functools.lru_cache(maxsize=512)  # noqa: B019 # there is one contract
    def validator(self, operation: Operation, status: int, kind: str) -> Any:
        schema = self.media(operation, status)[kind]["schema"]
        return jsonschema.Draft202012Validator({**schema, "components": self.document["components"]})

    @functools.cache  # noqa: B019
    def asking(self, operation: Operation) -> Any:
        """The validator of its body; None: it has none, or leaves out what it does not know."""
        body = self.follow(operation.document.get("requestBody")) or {"content": {}}
        schema = body["content"].get("application/json", {}).get("schema")
        if schema is None or "agents" in operation.document["tags"]:
            return None
        return jsonschema.Draft202012Validator({**schema, "components": self.document["components"]})

    def said(self, schema: Any, text: str) -> Any:
        """What a text stands for in a query; itself where it stands for nothing."""
        kinds = self.follow(schema).get("type")
        if kinds == "array":
            return text.split(",")
        try:
            return int(text) if kinds == "integer" else text
        except ValueError:
            return text

    def check_taken(self, operation: Operation, query: str, document: Any, asked: str) -> None:
        """What was taken in is what the contract allows."""
        for parameter in operation.parameters:
            for text in urllib.parse.parse_qs(query, keep_blank_values=True).get(parameter["name"], []):
                rule = {**parameter["schema"], "components": self.document["components"]}
                for error in jsonschema.Draft202012Validator(rule).iter_errors(self.said(parameter["schema"], text)):
                    raise AssertionError(f"{asked}: it is taken, and the contract does not allow it: {error.message}")
        validator = self.asking(operation)
        if validator is not None and document is not None:
            for error in validator.iter_errors(document):
                raise AssertionError(f"{asked}: it is taken, and the contract does not allow it: {error.message}")

    def check(self, operation: Operation, status: int, kind: str, body: bytes, asked: str) -> None:
        """The reply is one of those that are documented: no defect, its status, its type, its members."""
        assert status < 500, f"{asked}: {status} {body!r}"
        kind = kind.partition(";")[0]
        if operation.method == "head":
            self.media(operation, status)
            return
        assert kind in self.media(operation, status) or not body, f"{asked}: {status} of type {kind} is not documented"
        if kind.endswith("json") and body:
            for error in self.validator(operation, status, kind).iter_errors(json.loads(body)):
                where = "/".join(str(part) for part in error.absolute_path)
                raise AssertionError(f"{asked}: {status}: at {where!r}: {error.message}")


def taken(document: Any, answer: bytes) -> Any:
    """What of a document was taken: of a list the items whose parts of the answer say so; None: nothing."""
    if not isinstance(document, list):
        return document
    parts = json.loads(answer)["jobs"]
    return [item for item, part in zip(document, parts, strict=True) if part["status"] < 400] or None


class Asker:
    """Sends requests over one connection that is kept, and holds each reply against the contract."""

    def __init__(self, api: Api, contract: Contract):
        self.api = api
        self.contract = contract
        self.link = api.connection(60.0)

    def close(self) -> None:
        self.link.close()

    def ask(self, operation: Operation, names: dict[str, str], query: str = "", document: Any = None, **headers: str) -> int:
        """The status; of a stream of events the head is enough."""
        path = operation.path
        for name, value in names.items():
            path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
        path += f"?{query}" if query else ""
        sent = {"Authorization": f"Bearer {self.api.token}", **headers}
        body = None
        if document is not None:
            body = json.dumps(document).encode()
            sent["Content-Type"] = "application/json"
        asked = f"{operation.method.upper()} {path} {document} {headers}"
        try:
            self.link.request(operation.method.upper(), path, body, sent)
            reply = self.link.getresponse()
            status, kind = reply.status, reply.getheader("Content-Type", "")
            if kind.startswith("text/event-stream"):
                self.close()
                return status
            got = reply.read()
        except (OSError, http.client.HTTPException) as error:
            raise AssertionError(f"{asked}: no answer: {error!r}") from error
        self.contract.check(operation, status, kind, got, asked)
        if status < 400:
            self.contract.check_taken(operation, query, taken(document, got), asked)
        return status
