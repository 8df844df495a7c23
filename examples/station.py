"""Uses a station's API with nothing but the standard library.

    caisson up --detach
    TOKEN=$(caisson token create example) python3 examples/station.py http://127.0.0.1:7433
"""

import json
import os
import sys
import urllib.error
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7433"
TOKEN = os.environ["TOKEN"]


def request(method, path, body=None, accept="application/json"):
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": accept}
    if isinstance(body, bytes):
        headers["Content-Type"] = "application/octet-stream"
    elif body is not None:
        body = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    return urllib.request.urlopen(urllib.request.Request(URL + path, body, headers, method=method))


def call(method, path, body=None):
    with request(method, path, body) as response:
        text = response.read()
        return json.loads(text) if text else None


def events(method, path, body=None):
    """Yields the data of each server-sent event."""
    with request(method, path, body, accept="text/event-stream") as response:
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[len(b"data: "):])


# Counts the calls in the station's own description of its API.
document = call("GET", "/v1/openapi.json")
print("calls:", sum(len(methods) for methods in document["paths"].values()))

sandbox = call("POST", "/v1/sandboxes", {"spec": {"labels": {"example": "python"}}})["id"]
try:
    request("PUT", f"/v1/sandboxes/{sandbox}/files/content?path=/workspace/words.txt", b"pear\napple\n").close()
    result = call("POST", f"/v1/sandboxes/{sandbox}/exec", {"argv": ["sort", "words.txt"]})
    print("sorted:", result["stdout"]["text"].split())

    for event in events("POST", f"/v1/sandboxes/{sandbox}/exec", {"argv": ["sh", "-c", "for i in 1 2 3; do echo $i; done; exit 3"]}):
        if event.get("type") == "output":
            print("live:", event["text"].split())
        elif event.get("type") == "ended":
            print("exit code:", event["ended"]["exitCode"])

    try:
        call("POST", "/v1/sandboxes", {"spec": {"workspace": {"kind": "folder", "path": "/etc"}}})
    except urllib.error.HTTPError as error:
        print("refused:", json.load(error)["code"])
finally:
    call("DELETE", f"/v1/sandboxes/{sandbox}")
