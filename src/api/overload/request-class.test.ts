import { expect, test } from "vitest";
import { classOf } from "./request-class.ts";

test.each([
  ["GET", "/healthz", "vital"],
  ["GET", "/v1/status?x=1", "vital"],
  ["POST", "/v1/shutdown", "vital"],
  ["POST", "/v1/runs/run_1/stop", "control"],
  ["POST", "/v1/runs/run_1/answers", "control"],
  ["DELETE", "/v1/tokens/x", "control"],
  ["POST", "/v1/runs", "work"],
  ["GET", "/v1/runs/run_1", "work"],
  ["GET", "/v1/inbox", "work"],
  ["GET", "/v1/runs?limit=50", "list"],
  ["GET", "/v1/runs/run_1/events", "list"],
  ["GET", "/v1/sessions/s/diff", "list"],
  ["GET", "/v1/openapi.json", "list"],
  ["GET", "/", "work"],
  ["GET", `/${"/a".repeat(50)}`, "work"],
])("%s %s is %s", (method, target, kind) => {
  expect(classOf(method, target)).toBe(kind);
});

test("console files take precedence over work, so that a page loads completely", () => {
  expect(classOf("GET", "/assets/sandbox-B8fkqTut.css")).toBe("control");
  expect(classOf("POST", "/assets/x")).toBe("work");
});
