#!/usr/bin/env python3
"""Holds protocol/openapi.json against a running daemon: every operation is called, and every answer must be
what the description says of its status. Also: every problem code of the sources is described, and no other.

    check_api.py DELAYD
"""
import datetime
import email.utils
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

from json_schema import breaches
from problem_codes import problem_codes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JSON, LINES = "application/json", "application/x-ndjson"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("delayd")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Api:
    def __init__(self, document, path):
        self.document = document
        self.connection = UnixConnection(path)
        self.faults = []
        self.seen = set()  # (method, path, status)

    def example(self, name):
        return self.document["components"]["schemas"][name]["example"]

    def parameter(self, method, path, name):
        parameters = self.document["paths"][path][method.lower()]["parameters"]
        return next(parameter["schema"] for parameter in parameters if parameter["name"] == name)

    def call(self, method, path, status, body=None, content_type=JSON, query="", headers=None,
             line="EnqueuedJob", **captures):
        """Calls, checks the answer against its description, and gives it."""
        target = path + query
        for name, value in captures.items():
            target = target.replace("{" + name + "}", str(value))
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        self.connection.request(method, target, text,
                                dict(headers or {}, **({"Content-Type": content_type} if text else {})))
        response = self.connection.getresponse()
        raw = response.read().decode()
        self.etag = response.headers["ETag"]
        kind = response.headers.get_content_type()
        where = f"{method} {target} -> {response.status}"
        if response.status != status:
            self.faults.append(f"{where}, not {status}: {raw}")
            return {}
        self.seen.add((method.lower(), path, str(response.status)))
        date = email.utils.parsedate_to_datetime(response.headers["Date"] or "")
        if abs(datetime.datetime.now(datetime.timezone.utc) - date) > datetime.timedelta(minutes=1):
            self.faults.append(f"{where}: it is not {date}")
        responses = self.document["paths"][path][method.lower()]["responses"]
        described = responses.get(str(response.status), responses["default"])
        if "$ref" in described:
            described = self.document["components"]["responses"][os.path.basename(described["$ref"])]
        if kind not in described["content"]:
            self.faults.append(f"{where}: content type {kind} is not described")
            return {}
        if kind == LINES:
            schema = self.document["components"]["schemas"][line]
            for line in raw.splitlines():
                self.faults += [f"{where}: {fault}" for fault in
                                breaches(self.document, schema, json.loads(line))]
            return [json.loads(line) for line in raw.splitlines()]
        if kind == "text/plain":
            return raw
        answer = json.loads(raw)
        schema = described["content"][kind]["schema"]
        self.faults += [f"{where}: {fault}" for fault in breaches(self.document, schema, answer)]
        return answer

    def lease(self):
        self.call("POST", "/v1/jobs", 201, {"queue": "work", "max_attempts": 2, "payload": "é"})
        page = self.call("POST", "/v1/queues/{queue}/lease", 200, {"wait": "5s"}, queue="work")
        return page["jobs"][0]["lease_token"]


def walk(api):
    """Every operation, with the examples of its own description."""
    job = api.call("POST", "/v1/jobs", 201, api.example("NewJob"))
    api.call("POST", "/v1/jobs", 200, api.example("NewJob"))
    api.call("POST", "/v1/jobs", 409, dict(api.example("NewJob"), payload="other"))
    api.call("POST", "/v1/jobs", 400, {"quue": "x"})
    api.call("POST", "/v1/jobs", 415, "x", content_type="text/plain")
    lines = json.dumps(api.example("NewJob")) + "\n"
    api.call("POST", "/v1/jobs", 200, lines, content_type=LINES)
    api.call("POST", "/v1/jobs", 201, lines + '{"delay":"1h","expires_after":"1m","payload_base64":"/w=="}\n',
             content_type=LINES)
    api.call("GET", "/v1/jobs/{id}", 200, id=job["id"])
    api.call("GET", "/v1/jobs/{id}", 200, id=job["id"] + 1)
    api.call("GET", "/v1/jobs/{id}", 404, id=999)
    api.call("GET", "/v1/jobs/{id}", 400, id="zero")
    last = api.parameter("GET", "/v1/jobs/{id}", "id")["maximum"]
    api.call("GET", "/v1/jobs/{id}", 404, id=last)
    for above in (last + 1, 2**64):
        refused = api.call("GET", "/v1/jobs/{id}", 400, id=above)
        if str(last) not in refused.get("detail", ""):
            api.faults.append(f"job id {above}: {refused}")
    api.call("PATCH", "/v1/jobs/{id}", 200, api.example("Reschedule"), id=job["id"])
    api.call("POST", "/v1/jobs", 201, '{"delay":"1h"}\n', content_type=LINES, line="EnqueuedId",
             headers={"Prefer": "return=minimal"})
    key = {"queue": "orders", "key": "order%3A1001"}
    by_key = "/v1/queues/{queue}/jobs/by-key/{key}"
    api.call("GET", by_key, 200, **key)
    api.call("PATCH", by_key, 200, api.example("Reschedule"), **key)
    if_unchanged(api, job["id"], by_key, key)
    api.call("DELETE", by_key, 200, **key)
    api.call("GET", by_key, 200, **key)  # finished, kept with its key
    api.call("GET", "/v1/jobs/{id}", 200, id=job["id"])
    ended = api.call("GET", "/v1/jobs/{id}", 200, id=job["id"])
    refused = (api.call("DELETE", "/v1/jobs/{id}", 409, id=job["id"]), api.call("DELETE", by_key, 409, **key),
               refused_by_id(api, job["id"]))
    tells(api, ended, "finished", refused, ("outcome", "finished"))
    plain = api.call("POST", "/v1/jobs", 201, {"delay": "1h"})
    api.call("DELETE", "/v1/jobs/{id}", 200, id=plain["id"])

    token = api.lease()
    api.call("POST", "/v1/leases/{token}/extend", 200, api.example("Extend"), token=token)
    api.call("GET", "/v1/jobs", 200, query="?state=leased&queue=work")
    api.call("POST", "/v1/leases/{token}/nack", 200, api.example("Nack"), token=token)
    api.call("POST", "/v1/leases/{token}/nack", 409, token=token)
    api.call("POST", "/v1/leases/{token}/ack", 200, token=api.lease())
    tokens = [api.lease(), "1-1-1"]
    acked = api.call("POST", "/v1/leases:ack", 200, {"tokens": tokens})
    assert acked == {"acked": 1, "lost": tokens[1:]}, acked
    api.call("POST", "/v1/leases:ack", 400, {"tokens": []})
    api.call("POST", "/v1/leases/{token}/bury", 200, api.example("Bury"), token=api.lease())
    api.call("POST", "/v1/queues/{queue}/lease", 200, queue="empty")
    api.call("GET", "/v1/jobs", 200, query="?state=dead&queue=work")
    api.call("GET", "/v1/jobs", 200, query="?state=finished")
    api.call("GET", "/v1/jobs", 200, query="?limit=1&due_before=2h&due_after=2020-01-01T00:00:00Z")
    api.call("GET", "/v1/jobs", 400, query="?stat=dead")

    api.call("POST", "/v1/jobs:cancel", 200, api.example("CancelMany"))
    api.call("POST", "/v1/jobs:cancel", 400, {"filter": {}})
    ids = [api.call("POST", "/v1/jobs", 201, {"delay": "1h"})["id"] for _ in range(2)]
    taken = api.call("POST", "/v1/jobs:cancel-by-id", 200, {"ids": ids + ids[:1]})
    assert taken == {"cancelled": 2, "refused": [{"id": ids[0], "code": "not_found"}]}, taken
    api.call("POST", "/v1/jobs:cancel-by-id", 400, {"ids": []})
    dead = api.call("POST", "/v1/jobs:kick", 200, {"filter": {"queue": "work"}})
    if dead.get("changed", 0) == 0:
        api.faults.append("jobs:kick found no dead job")
    api.call("POST", "/v1/jobs:kick", 200, api.example("KickMany"))
    api.call("POST", "/v1/jobs:kick", 400, {"filter": {"queue": "work", "state": "ready"}})
    api.call("POST", "/v1/jobs:reschedule", 200, api.example("RescheduleMany"))
    api.call("POST", "/v1/jobs:cancel", 200, {"filter": {"due_before": "10h"}, "limit": 1})
    api.call("GET", "/v1/queues", 200)
    api.call("GET", "/v1/queues", 200, query="?limit=1")
    api.call("GET", "/v1/queues", 400, query="?limit=0")
    api.call("GET", "/v1/queues/{queue}", 200, queue="work")
    api.call("GET", "/v1/queues/{queue}", 404, queue="nowhere")
    api.call("GET", "/v1/forecast", 200, query="?queue=work&to=2h&step=10m")
    api.call("GET", "/v1/forecast", 400, query="?step=0s")
    api.call("POST", "/v1/admin/verify", 200)
    api.call("POST", "/v1/admin/verify", 400, {"repair": True})
    with tempfile.TemporaryDirectory(prefix="delayd-api-") as directory:
        api.call("POST", "/v1/admin/backup", 200, {"dir": os.path.join(directory, "copy")})
        api.call("POST", "/v1/admin/backup", 409, {"dir": directory})
    api.call("POST", "/v1/admin/backup", 400, {"dir": "copy"})
    life_of_queues(api)
    rules_of_keys(api)
    api.call("POST", "/v1/clock/accept", 200)
    api.call("POST", "/v1/admin/drain", 200)
    api.call("POST", "/v1/jobs", 503, {"queue": "work", "delay": "1h", "payload": "x"})
    api.call("POST", "/v1/admin/drain", 200, {"on": False})
    api.call("POST", "/v1/admin/drain", 400, {"on": "yes"})
    for path in ("/v1/stats", "/healthz", "/readyz", "/metrics"):
        api.call("GET", path, 200)
    if api.call("GET", "/openapi.json", 200) != api.document:
        api.faults.append("GET /openapi.json is not protocol/openapi.json")


def refused_by_id(api, job):
    taken = api.call("POST", "/v1/jobs:cancel-by-id", 200, {"ids": [job]})
    return taken["refused"][0]


def tells(api, job, code, refusals, names):
    """Each refusal has this code, and these members as the job itself has them."""
    for refusal in refusals:
        if refusal.get("code") != code or any(refusal.get(name) != job[name] for name in names):
            api.faults.append(f"{refusal} is no refusal of {job}")


def if_unchanged(api, job, by_key, key):
    """A change with the tag of an older look is refused, one with the tag of the last look is made."""
    api.call("GET", "/v1/jobs/{id}", 200, id=job)
    old = {"If-Match": api.etag}
    api.call("PATCH", "/v1/jobs/{id}", 200, {"delay": "3h"}, headers=old, id=job)
    new, weak = {"If-Match": '"x", ' + api.etag}, {"If-Match": "W/" + api.etag}
    for path, ref in (("/v1/jobs/{id}", {"id": job}), (by_key, key)):
        api.call("PATCH", path, 412, {"delay": "4h"}, headers=old, **ref)
        api.call("DELETE", path, 412, headers=old, **ref)
        api.call("DELETE", path, 412, headers=weak, **ref)
    api.call("PATCH", by_key, 400, {"delay": "4h"}, headers={"If-Match": "unquoted"}, **key)
    api.call("PATCH", by_key, 200, {"delay": "4h"}, headers=new, **key)


def rules_of_keys(api):
    spec = {"queue": "rules", "key": "k", "delay": "1h", "payload": "first"}
    job = api.call("POST", "/v1/jobs", 201, spec)
    kept = api.call("POST", "/v1/jobs", 200, dict(spec, payload="second", on_conflict="keep"))
    replaced = api.call("POST", "/v1/jobs", 200, dict(spec, payload="3", delay="0s", on_conflict="replace"))
    if not job["id"] == kept["id"] == replaced["id"] or replaced["payload_bytes"] != 1:
        api.faults.append(f"on_conflict: {job}, {kept}, {replaced}")
    api.call("POST", "/v1/queues/{queue}/lease", 200, {"wait": "5s"}, queue="rules")
    api.call("POST", "/v1/jobs", 409, dict(spec, on_conflict="replace"))
    api.call("POST", "/v1/jobs", 400, dict(spec, on_conflict="perhaps"))
    api.call("POST", "/v1/jobs", 400, {"on_conflict": "keep"})
    for key in ("a b", "a+b"):
        api.call("POST", "/v1/jobs", 201, {"queue": "rules", "key": key, "delay": "1h"})
    for prefix, key in (("a%20b", "a b"), ("a+b", "a+b"), ("a%2Bb", "a+b")):
        page = api.call("GET", "/v1/jobs", 200, query=f"?queue=rules&key_prefix={prefix}")
        if [job["key"] for job in page["jobs"]] != [key]:
            api.faults.append(f"key_prefix={prefix}: {page}")


def life_of_queues(api):
    key = {"queue": "life", "key": "k"}
    by_key = "/v1/queues/{queue}/jobs/by-key/{key}"
    job = api.call("POST", "/v1/jobs", 201, dict(key, delay="1h"))
    api.call("PATCH", by_key, 200, {"touch": True}, **key)
    api.call("POST", by_key + "/kick", 200, **key)
    api.call("POST", "/v1/jobs/{id}/kick", 409, id=job["id"])
    leased = api.call("POST", by_key + "/lease", 200, dict(api.example("LeaseOne"), client="worker-7"), **key)
    api.call("POST", "/v1/jobs", 200, json.dumps(dict(key, delay="1h")) + "\n", content_type=LINES)
    refused = (api.call("POST", "/v1/jobs/{id}/lease", 409, id=job["id"]), refused_by_id(api, job["id"]))
    tells(api, leased["jobs"][0], "leased", refused, ("client",))
    if not all("lease_expires" in refusal for refusal in refused):
        api.faults.append(f"until when a worker has it is missing: {refused}")
    api.call("POST", "/v1/leases/{token}/bury", 200, token=leased["jobs"][0]["lease_token"])
    api.call("POST", "/v1/jobs/{id}/kick", 200, id=job["id"])
    api.call("POST", "/v1/queues/{queue}/pause", 200, api.example("Pause"), queue="life")
    api.call("GET", "/v1/queues/{queue}", 200, queue="life")
    api.call("POST", "/v1/queues/{queue}/resume", 200, queue="life")
    api.call("POST", "/v1/queues/{queue}/pause", 404, queue="nowhere")
    api.call("POST", "/v1/queues/{queue}/kick", 200, api.example("KickQueue"), queue="life")
    api.call("POST", "/v1/jobs/{id}/lease", 200, id=job["id"])
    at = api.call("POST", "/v1/jobs", 201, {"queue": "life", "key": "at", "due": "2099-01-01T00:00:00Z"})
    api.call("PATCH", "/v1/jobs/{id}", 409, {"touch": True}, id=at["id"])


def unseen(api):
    for path, operations in api.document["paths"].items():
        for method, operation in operations.items():
            for status in operation["responses"]:
                if status != "default" and (method, path, status) not in api.seen:
                    yield f"{method} {path} -> {status} is described and was never seen"


def on_a_full_disk(api):
    """As one of less than a TiB is, below a reserve of that."""
    if shutil.disk_usage(os.path.dirname(api.connection.path)).free < 1 << 40:
        api.call("GET", "/healthz", 200)
        api.call("GET", "/readyz", 503)
        api.call("GET", "/readyz", 400, query="?x")
        api.call("POST", "/v1/jobs", 507, {"delay": "1h"})


def with_daemon(document, settings, visit):
    """Calls visit with the API of a daemon that has these settings; gives that and the daemon's log."""
    with tempfile.TemporaryDirectory(prefix="delayd-api-") as directory:
        path = os.path.join(directory, "d.sock")
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ready.bind(os.path.join(directory, "notify"))
        ready.settimeout(60)
        daemon = subprocess.Popen(
            [sys.argv[1], "--data-dir", os.path.join(directory, "data"), "--api-socket", path],
            env=dict(os.environ, NOTIFY_SOCKET=os.path.join(directory, "notify"), **settings),
            stderr=subprocess.PIPE)
        try:
            while b"READY=1" not in ready.recv(4096):
                pass
            api = Api(document, path)
            visit(api)
        finally:
            daemon.terminate()
            log = daemon.communicate()[1]
        return api, log.decode()


def main():
    with open(os.path.join(ROOT, "protocol", "openapi.json"), encoding="utf-8") as source:
        document = json.load(source)
    described = set(document["components"]["schemas"]["ProblemCode"]["enum"])
    made = problem_codes(ROOT)
    faults = [f"problem code {code} is not described" for code in sorted(made - described)]
    faults += [f"problem code {code} is described and never sent" for code in sorted(described - made)]
    log = ""
    for visit, settings in ((walk, {}), (on_a_full_disk, {"DELAYD_STORAGE_RESERVE": "1TiB"})):
        api, told = with_daemon(document, settings, visit)
        faults += api.faults
        if visit is walk:
            faults += unseen(api)
        log += told
    if faults:
        sys.exit("\n".join(faults) + "\n" + log)


if __name__ == "__main__":
    main()
